//! `engines.redis`, and the budgets that are counted there.

use std::{path::Path, time::Duration};

use redrive::config::{Config, EnginePlace, LocalShare, OnLoss, SharedEngine};
use secrecy::ExposeSecret as _;

use crate::support::*;

/// A file with an engine; its keys begin at line 5, column 17.
fn file(engine: &str) -> String {
    minimal_and(&format!("engines: {{redis: {{{engine}}}}}\n"))
}

fn engine(engine: &str) -> SharedEngine {
    let config = parse(&file(engine)).unwrap_or_else(|errors| panic!("{errors}"));
    config.engine.unwrap()
}

#[test]
fn the_contract_s_engine_is_taken_with_its_defaults() {
    let budget = "budgets:
  - {name: here, match: {}, concurrent: 1}
  - {name: shared, match: {}, engine: redis, concurrent: 1}
";
    let text = format!(
        "{}{budget}",
        minimal_and(
            "engines:
  redis:
    url: rediss://valkey:6379
    username: redrive
    password: {file: redis-password}
    on_loss: closed
    timeout: 100ms
"
        )
    );
    let environment = environment().file("/etc/redis-password", "pass wörd\n");
    let config = Config::parse(&text, Path::new("/etc/redrive.yaml"), &environment).unwrap();
    let is_shared: Vec<bool> = config.budgets.iter().map(|b| b.is_shared).collect();
    assert_eq!(is_shared, [false, true]);
    assert!(!format!("{config:?}").contains("pass wörd"));

    let engine = config.engine.unwrap();
    let url = "rediss://valkey:6379".to_owned();
    assert_eq!(engine.place, EnginePlace::One(url));
    assert_eq!(engine.username.as_deref(), Some("redrive"));
    assert_eq!(engine.password.unwrap().expose_secret(), "pass wörd");
    assert_eq!(engine.authority, None);
    assert_eq!(engine.domain, "default");
    assert_eq!(engine.on_loss, OnLoss::Closed);
    assert_eq!(engine.timeout, Duration::from_millis(100));
    let share = LocalShare {
        fraction: 0.1,
        max_pods: 10,
    };
    assert_eq!(engine.local_share, share);
}

#[test]
fn an_engine_is_one_server_a_cluster_or_what_sentinels_say() {
    let texts = |texts: [&str; 2]| texts.map(str::to_owned).to_vec();
    for (written, place) in [
        (
            "url: 'redis://[::1]:6379/1'",
            EnginePlace::One("redis://[::1]:6379/1".into()),
        ),
        (
            "cluster: ['rediss://a:1', 'rediss://b:2/']",
            EnginePlace::Cluster(texts(["rediss://a:1", "rediss://b:2/"])),
        ),
        (
            "sentinel: {master: mymaster, urls: ['redis://s1:26379', 'redis://s2:26379']}",
            EnginePlace::Sentinel {
                urls: texts(["redis://s1:26379", "redis://s2:26379"]),
                master: "mymaster".into(),
            },
        ),
    ] {
        assert_eq!(engine(written).place, place, "{written}");
    }
}

#[test]
fn no_engine_is_none() {
    for nothing in ["", "engines: \n", "engines: {}\n", "engines: {redis: }\n"] {
        assert!(parse(&minimal_and(nothing)).unwrap().engine.is_none());
    }
}

#[test]
fn every_other_key_reaches_the_model() {
    let engine = engine(
        "url: 'redis://h:6379', domain: eu-1.prod, on_loss: local_share, local_share: {fraction: 0.25, \
         max_pods: 4}, timeout: 1500ms",
    );
    assert_eq!(engine.domain, "eu-1.prod");
    assert_eq!(engine.on_loss, OnLoss::LocalShare);
    assert_eq!(engine.local_share.of_pod(100), 6);
    assert_eq!(engine.local_share.of_engine(100), 76);
    assert_eq!(engine.timeout, Duration::from_millis(1500));
}

#[test]
fn a_shared_budget_without_an_engine_is_refused() {
    let budgets = "budgets:\n  - {name: b, match: {}, concurrent: 1, engine: redis}\n";
    assert_eq!(
        refusal(&minimal_and(budgets)),
        "redrive.yaml:6:49: budgets[0].engine: there is no engine `redis` under `engines`
  hint: say where it is, such as engines: {redis: {url: rediss://valkey:6379}}"
    );
}

#[test]
fn what_is_wrong_with_the_engine_is_not_told_again_of_its_budgets() {
    let budgets = "budgets:\n  - {name: b, match: {}, concurrent: 1, engine: redis}\n";
    for wrong in [
        "engines: {redis: {url: x}}\n",
        "engines: {redis: 5}\n",
        "engines: 5\n",
    ] {
        let errors = refusal(&minimal_and(&format!("{wrong}{budgets}")));
        assert_eq!(errors.matches("redrive.yaml:").count(), 1, "{errors}");
        assert!(errors.contains(": engines"), "{errors}");
    }
}

#[test]
fn what_is_wrong_with_an_engine_is_told_once() {
    let long = "a".repeat(65);
    let domain = format!("url: 'redis://h:1', domain: {long}");
    for (written, error) in [
        (
            "",
            "5:11: engines.redis.url: an engine needs one of url, cluster and sentinel, such as url: \
             rediss://valkey:6379",
        ),
        (
            "url: 'redis://h:1', cluster: ['redis://h:1']",
            "5:18: engines.redis: expected only one of url, cluster and sentinel: an engine is in one place",
        ),
        (
            "cluster: ['redis://a:1', 'rediss://b:1']",
            "5:44: engines.redis.cluster[1]: all nodes are encrypted (rediss://) or none is",
        ),
        (
            "sentinel: {urls: ['redis://s:1']}",
            "5:19: engines.redis.sentinel.master: the sentinels' name of the primary is needed, such as \
             mymaster",
        ),
        (
            "sentinel: {master: m}",
            "5:19: engines.redis.sentinel.urls: at least one sentinel is needed, such as \
             [redis://sentinel:26379]",
        ),
        (
            "sentinel: {master: 'my master', urls: ['redis://s:1']}",
            "5:38: engines.redis.sentinel.master: the name of a primary is 1 to 128 visible ASCII \
             characters, no spaces",
        ),
        (
            "url: 'redis://h:1', username: ''",
            "5:49: engines.redis.username: the name of a user is 1 to 128 visible ASCII characters, no spaces",
        ),
        (
            "url: 'valkey:6379'",
            "5:24: engines.redis.url: expected a URL such as rediss://valkey:6379 (TLS) or \
             redis://valkey:6379",
        ),
        (
            "url: 'http://h:1'",
            "5:24: engines.redis.url: expected a URL such as rediss://valkey:6379 (TLS) or \
             redis://valkey:6379",
        ),
        (
            "url: 'rediss://valkey'",
            "5:24: engines.redis.url: expected rediss://HOST:PORT",
        ),
        (
            "url: 'redis://h:1/x'",
            "5:24: engines.redis.url: nothing but the number of a database may follow HOST:PORT",
        ),
        (
            "url: 'redis://h:1?db=1'",
            "5:24: engines.redis.url: nothing but the number of a database may follow HOST:PORT",
        ),
        (
            "cluster: ['redis://h:1/1']",
            "5:29: engines.redis.cluster[0]: nothing may follow HOST:PORT",
        ),
        (
            &domain,
            "5:47: engines.redis.domain: a name is 1 to 64 letters, digits, `-`, `_` or `.`",
        ),
        (
            "url: 'redis://h:1', ca: {file: ca.crt}",
            "5:43: engines.redis.ca: only `rediss://` is encrypted and has an authority",
        ),
        (
            "url: 'redis://h:1', timeout: 9ms",
            "5:48: engines.redis.timeout: 9ms is out of range: 10ms to 5s",
        ),
        (
            "url: 'redis://h:1', timeout: 5001ms",
            "5:48: engines.redis.timeout: 5s 1ms is out of range: 10ms to 5s",
        ),
        (
            "url: 'redis://h:1', local_share: {fraction: 0.91}",
            "5:63: engines.redis.local_share.fraction: 0.91 is out of range: 0 to 0.9",
        ),
        (
            "url: 'redis://h:1', local_share: {max_pods: 0}",
            "5:63: engines.redis.local_share.max_pods: 0 is out of range: 1 to 10000",
        ),
        (
            "url: 'redis://h:1', on_loss: ignore",
            "5:48: engines.redis.on_loss: \"ignore\" is not one of the values here",
        ),
        (
            "url: 'redis://h:1', passwrod: {env: P}",
            "5:39: engines.redis.passwrod: unknown key",
        ),
    ] {
        let errors = refusal(&file(written));
        assert!(
            errors.starts_with(&format!("redrive.yaml:{error}")),
            "{written}: {errors}"
        );
        assert_eq!(errors.matches("redrive.yaml:").count(), 1, "{errors}");
    }
}

#[test]
fn a_credential_in_a_url_is_refused_and_not_repeated() {
    for url in [
        "redis://redrive:hunter2@h:1",
        "rediss://:hunter2@h:1",
        "redis://u:hunter/2@h:1",
    ] {
        for (written, key) in [
            (format!("url: '{url}'"), "url"),
            (format!("cluster: ['{url}']"), "cluster[0]"),
            (
                format!("sentinel: {{master: m, urls: ['{url}']}}"),
                "sentinel.urls[0]",
            ),
        ] {
            let errors = refusal(&file(&written));
            let told = format!(
                "engines.redis.{key}: credentials do not belong in a URL
  hint: write username: NAME and password: {{file: PATH}} or {{env: NAME}} beside it"
            );
            assert!(errors.ends_with(&told), "{errors}");
            assert!(!errors.contains("hunter"), "{errors}");
        }
    }
}

#[test]
fn nodes_are_bounded() {
    let nodes = |n: usize| {
        let nodes: Vec<String> = (0..n).map(|n| format!("'redis://n{n}:1'")).collect();
        format!("cluster: [{}]", nodes.join(", "))
    };
    engine(&nodes(64));
    let errors = refusal(&file(&nodes(65)));
    assert!(
        errors.ends_with("engines.redis.cluster: there are at most 64 nodes here"),
        "{errors}"
    );
}

#[test]
fn an_authority_is_read_and_must_be_one() {
    let text = file("url: 'rediss://h:1', ca: {file: ca.crt}");
    let parse = |content: &str| {
        let environment = environment().file("ca.crt", content);
        Config::parse(&text, Path::new("redrive.yaml"), &environment)
    };
    let pem = rcgen::generate_simple_self_signed(vec!["h".to_owned()])
        .unwrap()
        .cert
        .pem();
    let engine = parse(&pem).unwrap().engine.unwrap();
    assert_eq!(engine.authority.as_deref(), Some(pem.as_bytes()));
    assert_eq!(
        parse("none").unwrap_err().to_string(),
        "redrive.yaml:5:44: engines.redis.ca: file \"ca.crt\" holds no PEM certificates"
    );
}

#[test]
fn limits_that_leave_a_pod_no_share_are_warned_of() {
    let budgets = "budgets:
  - {name: here, match: {}, concurrent: 1}
  - name: shared
    match: {}
    engine: redis
    requests: [{limit: 100, window: 60s}, {limit: 99, window: 1s}]
    concurrent: 5
    daily: {output_tokens: 7}
";
    let warnings = |on_loss: &str| {
        let engine = file(&format!("url: 'redis://h:1', on_loss: {on_loss}"));
        parse(&format!("{engine}{budgets}")).unwrap().warnings()
    };
    let nothing = "leaves a pod no share, so it sends nothing while the engine is lost: 0.1 of it for 10 \
                   pods is less than one each";
    assert_eq!(
        warnings("local_share"),
        [
            format!("budget shared: requests in 1s: 99 {nothing}"),
            format!("budget shared: concurrent: 5 {nothing}"),
            format!("budget shared: daily.output_tokens: 7 {nothing}"),
        ]
    );
    assert!(warnings("closed").is_empty());
    assert!(warnings("open").is_empty());
}
