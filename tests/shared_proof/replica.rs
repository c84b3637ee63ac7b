//! A replica, and a link to it that can be cut without anybody being told: in a network namespace of its own
//! where this process may make one, else behind a proxy that swallows.

use std::{
    net::SocketAddr,
    process::{Child, Command, Stdio},
    time::Duration,
};

use redis::{Connection, FromRedisValue};
use tempfile::TempDir;
use tokio::time::{Instant, sleep};

use super::{
    fleet::PATIENCE,
    road::Road,
    server::{Kind, Server, program},
};

/// Where a server in a namespace listens.
const PORT: u16 = 6379;

pub struct Replica {
    address: SocketAddr,
    link: Link,
    server: Child,
    _folder: TempDir,
}

enum Link {
    /// Two ways into a namespace: one for the replication, one for everybody else.
    Namespace(Namespace),
    Proxy(Road),
}

/// A network namespace; it and its links go when this is dropped.
struct Namespace {
    name: String,
    /// The ends of its links, outside and inside.
    replication: [String; 2],
    clients: [String; 2],
}

/// Runs `ip` with these words; whether it did as it was told.
fn ip(words: &str) -> bool {
    let mut command = Command::new("ip");
    command.args(words.split(' ')).stdin(Stdio::null());
    command.stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

impl Namespace {
    fn new() -> Option<Self> {
        // Of networks that are set aside for measurements: nobody else should have them.
        let process = std::process::id();
        let network = |which| [1, 2].map(|end| format!("198.{which}.{}.{end}", process % 250));
        let namespace = Self {
            name: format!("rd{process}"),
            replication: network(18),
            clients: network(19),
        };
        let name = &namespace.name;
        let made = ip(&format!("netns add {name}"))
            && namespace.link("r", &namespace.replication)
            && namespace.link("c", &namespace.clients);
        made.then_some(namespace)
    }

    /// A pair of interfaces, one end outside, one inside.
    fn link(&self, kind: &str, [outside, inside]: &[String; 2]) -> bool {
        let name = &self.name;
        [
            format!("link add {name}{kind} type veth peer name {kind} netns {name}"),
            format!("addr add {outside}/30 dev {name}{kind}"),
            format!("link set {name}{kind} up"),
            format!("-n {name} addr add {inside}/30 dev {kind}"),
            format!("-n {name} link set {kind} up"),
        ]
        .iter()
        .all(|words| ip(words))
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        for kind in ["r", "c"] {
            ip(&format!("link del {}{kind}", self.name));
        }
        ip(&format!("netns del {}", self.name));
    }
}

impl Replica {
    pub async fn of(primary: &Server) -> Self {
        let program = program(Kind::Redis).as_ref().unwrap();
        let folder = tempfile::tempdir().unwrap();
        let (link, address, of) = match Namespace::new() {
            Some(namespace) => {
                let address = SocketAddr::new(namespace.clients[1].parse().unwrap(), PORT);
                let of = (namespace.replication[0].clone(), primary.port);
                (Link::Namespace(namespace), address, of)
            }
            None => {
                let road = Road::to(([127, 0, 0, 1], primary.port).into()).await;
                let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
                let (address, port) = (free.local_addr().unwrap(), road.port);
                (Link::Proxy(road), address, ("127.0.0.1".to_owned(), port))
            }
        };
        let mut command = match &link {
            Link::Namespace(namespace) => {
                let mut command = Command::new("ip");
                command.args(["netns", "exec", &namespace.name, program]);
                command
            }
            Link::Proxy(_) => Command::new(program),
        };
        command.args(["--port", &address.port().to_string(), "--save", ""]);
        command.args(["--bind", "0.0.0.0", "--protected-mode", "no"]);
        command.arg("--dir").arg(folder.path());
        command.args(["--replicaof", &of.0, &of.1.to_string()]);
        command.stdin(Stdio::null()).stdout(Stdio::null());
        let server = command.stderr(Stdio::null()).spawn().unwrap();
        let replica = Self {
            address,
            link,
            server,
            _folder: folder,
        };
        replica.is_in_step(primary).await;
        replica
    }

    /// Where clients find it.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    pub fn cut_by(&self) -> &'static str {
        match self.link {
            Link::Namespace(_) => "a network namespace",
            Link::Proxy(_) => "a proxy",
        }
    }

    fn connect(&self) -> redis::RedisResult<Connection> {
        redis::Client::open(format!("redis://{}", self.address))?.get_connection()
    }

    fn ask<T: FromRedisValue>(&self, words: &[&str]) -> redis::RedisResult<T> {
        redis::cmd(words[0])
            .arg(&words[1..])
            .query(&mut self.connect()?)
    }

    /// How much of the primary's stream it has.
    fn offset(&self) -> Option<u64> {
        let info: String = self.ask(&["INFO", "replication"]).ok()?;
        let is_up = info.contains("master_link_status:up");
        is_up.then(|| number(&info, "slave_repl_offset:"))?
    }

    /// Waits until it is connected, and knows what its primary knew.
    pub async fn is_in_step(&self, primary: &Server) {
        let offset = offset_of(primary);
        let begun = Instant::now();
        while self.offset().is_none_or(|own| own < offset) {
            assert!(begun.elapsed() < PATIENCE, "the replica does not follow");
            sleep(Duration::from_millis(50)).await;
        }
    }

    /// From now on nothing of its primary arrives, and nobody is told.
    pub fn cut(&self) {
        match &self.link {
            Link::Namespace(namespace) => {
                assert!(ip(&format!("-n {} link set r down", namespace.name)));
            }
            Link::Proxy(road) => road.swallow(),
        }
    }

    /// How many bytes of its primary's stream it does not know.
    pub fn is_behind(&self, primary: &Server) -> u64 {
        let info: String = self.ask(&["INFO", "replication"]).unwrap();
        let own = number(&info, "slave_repl_offset:").unwrap();
        offset_of(primary) - own
    }

    pub fn promote(&self) {
        let () = self.ask(&["REPLICAOF", "NO", "ONE"]).unwrap();
    }
}

fn offset_of(primary: &Server) -> u64 {
    let info: String = primary.beside().run(&["INFO", "replication"]);
    number(&info, "master_repl_offset:").unwrap()
}

fn number(info: &str, name: &str) -> Option<u64> {
    let line = info.lines().find_map(|line| line.strip_prefix(name))?;
    line.trim().parse().ok()
}

impl Drop for Replica {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}
