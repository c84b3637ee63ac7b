//! What the server says of itself, and what is wrong with that.

/// The oldest version with all that the script needs.
const OLDEST: u64 = 7;

/// The server at the other end of the connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Server {
    /// `redis`, `valkey`, or empty where it is not known.
    pub name: String,
    /// Its version.
    pub version: String,
    /// Another one after each start: what was held in memory only is gone then. `-` where it is not known.
    pub run: String,
    /// What it does when its memory is full.
    pub maxmemory_policy: String,
    /// Whether it does not say that it is a replica.
    pub is_primary: bool,
}

impl Server {
    /// From the answer to `INFO`.
    pub(super) fn read(info: &str) -> Self {
        let field = |name: &str| {
            let mut lines = info.lines();
            let value = lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
            value.unwrap_or_default().trim().to_owned()
        };
        let valkey = field("valkey_version");
        let (name, version) = if valkey.is_empty() {
            ("redis", field("redis_version"))
        } else {
            ("valkey", valkey)
        };
        let run = field("run_id");
        let is_id = !run.is_empty() && run.bytes().all(|byte| byte.is_ascii_hexdigit());
        Self {
            name: name.into(),
            version,
            run: if is_id { run } else { "-".into() },
            maxmemory_policy: field("maxmemory_policy"),
            is_primary: field("role") != "slave",
        }
    }

    pub(super) fn too_old(&self) -> Option<String> {
        let major = self.version.split('.').next()?.parse::<u64>().ok()?;
        let oldest = if self.name == "valkey" {
            OLDEST + 1
        } else {
            OLDEST
        };
        (major < oldest).then(|| {
            let Self { name, version, .. } = self;
            format!("{name} {version} is too old: Redis 7 or Valkey 8 is needed")
        })
    }

    /// What puts the limits at risk, and how it is mended.
    pub fn warnings(&self) -> Vec<String> {
        let policy = &self.maxmemory_policy;
        if policy.is_empty() || policy == "noeviction" {
            return Vec::new();
        }
        vec![format!(
            "maxmemory-policy is `{policy}`: when memory is short the server may drop budgets, and nothing \
             is granted for a window after it did. `CONFIG SET maxmemory-policy noeviction` (and in its \
             configuration) mends it"
        )]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const VALKEY: &str = "# Server\r\nredis_version:7.2.4\r\nserver_name:valkey\r\nvalkey_version:9.1.2\r\n\
                          run_id:00ff\r\n# Memory\r\nmaxmemory_policy:allkeys-lru\r\n";

    #[test]
    fn a_server_is_known_by_what_it_says() {
        let server = Server::read(VALKEY);
        assert_eq!((&*server.name, &*server.version), ("valkey", "9.1.2"));
        assert_eq!(server.run, "00ff");
        assert!(server.is_primary);
        assert!(!Server::read("role:slave\r\n").is_primary);
        assert!(server.warnings()[0].contains("noeviction"));
        assert_eq!(server.too_old(), None);
    }

    #[test]
    fn an_old_server_and_one_that_says_nothing() {
        let old = Server::read("redis_version:6.2.1\r\nrun_id: \r\n");
        assert!(old.too_old().unwrap().starts_with("redis 6.2.1 is too old"));
        assert_eq!(old.run, "-");
        let fork = Server::read("redis_version:7.2.4\r\nvalkey_version:7.2.5\r\n");
        assert!(
            fork.too_old()
                .unwrap()
                .starts_with("valkey 7.2.5 is too old")
        );
        let silent = Server::read("");
        assert_eq!((silent.too_old(), silent.warnings()), (None, Vec::new()));
    }
}
