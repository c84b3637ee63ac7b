//! Where a domain's state is kept, and the script that keeps it.

/// The script: what it does, and what its keys hold, stands at its top.
pub(super) const SCRIPT: &str = concat!(
    include_str!("script/domain.lua"),
    include_str!("script/budget.lua"),
    include_str!("script/lease.lua"),
    include_str!("script/configured.lua"),
    include_str!("script/flows.lua"),
    include_str!("script/verbs.lua"),
);

/// The longest name of a domain.
const MAX_DOMAIN: usize = 64;

/// The keys of a domain, in the order in which the script is given them. Their hash tag puts them in one
/// slot of a cluster.
#[derive(Clone, Debug)]
pub(super) struct Keys(pub(super) [String; 4]);

impl Keys {
    /// `None` where `domain` is no name: 1 to 64 letters, digits, `-`, `_` or `.`.
    pub(super) fn of(domain: &str) -> Option<Self> {
        let named = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
        let is_name = (1..=MAX_DOMAIN).contains(&domain.len()) && domain.bytes().all(named);
        is_name.then(|| {
            let parts = ["meta", "log", "leases", "due"];
            Self(parts.map(|part| format!("{{redrive:{domain}}}:{part}")))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_keys_of_a_domain_have_one_hash_tag() {
        let Keys(keys) = Keys::of("eu-1").unwrap();
        assert_eq!(keys[0], "{redrive:eu-1}:meta");
        assert!(keys.iter().all(|key| key.starts_with("{redrive:eu-1}:")));
    }

    #[test]
    fn a_domain_cannot_break_out_of_its_tag() {
        for bad in ["", "a}b", "a b", "a:b", &"a".repeat(65)] {
            assert!(Keys::of(bad).is_none(), "{bad:?}");
        }
    }

    #[test]
    fn the_script_reads_the_servers_clock_once_and_never_rounds() {
        assert_eq!(SCRIPT.matches("redis.call('TIME')").count(), 1);
        assert!(SCRIPT.starts_with("#!lua\n"));
        assert!(!SCRIPT.contains("%.14g") && !SCRIPT.contains("tostring"));
    }
}
