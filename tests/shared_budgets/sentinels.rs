//! Whichever server is the primary, as Sentinels say.

use std::time::{Duration, Instant};

use redrive::{budgets::shared::*, config::EnginePlace, limits::Settings};

use crate::{
    domain::*,
    server::{Kind, Server, each},
};

/// A primary, its replica, and a Sentinel, all with a password or none of them.
struct Guarded {
    primary: Server,
    replica: Server,
    sentinel: Server,
}

fn run(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread();
    { runtime }.enable_all().build().unwrap().block_on(test);
}

/// Tries until it is so.
fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < Duration::from_secs(30), "never {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

impl Guarded {
    fn start(kind: Kind) -> Self {
        let primary = Server::start(kind);
        let port = primary.port.to_string();
        let replica = Server::start_with(kind, &["--replicaof", "127.0.0.1", &port]);
        let sentinel = Server::sentinel(kind, primary.port, &[]);
        let mut beside = replica.beside();
        until("a replica", || {
            let info: String = beside.run(&["INFO", "replication"]);
            info.contains("master_link_status:up")
        });
        let mut beside = sentinel.beside();
        until("a Sentinel that knows it", || {
            let known: Vec<redis::Value> = beside.run(&["SENTINEL", "REPLICAS", "main"]);
            known.len() == 1
        });
        Self {
            primary,
            replica,
            sentinel,
        }
    }

    fn options(&self) -> Options {
        self.options_of(vec![self.sentinel.url()], "main")
    }

    fn options_of(&self, urls: Vec<String>, master: &str) -> Options {
        let master = master.to_owned();
        Options {
            place: EnginePlace::Sentinel { urls, master },
            connect_timeout: Duration::from_secs(2),
            timeout: Duration::from_millis(500),
            ..options(&self.primary)
        }
    }
}

/// One send at a time: where nobody was before, it is granted at once.
fn budget() -> Settings {
    Settings {
        concurrent: Some(1),
        ..settings("a", &[])
    }
}

/// Asks until there is an answer; the server may be another by then.
async fn first_answer(shared: &Shared) -> Answer {
    let begun = Instant::now();
    for id in 1_000.. {
        match shared.acquire(one(id), Duration::from_secs(1)).await {
            Ok(answer) => return answer,
            Err(lost) => assert!(begun.elapsed() < Duration::from_secs(30), "{lost:?}"),
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    unreachable!()
}

#[test]
fn a_primary_that_died_is_followed_by_the_next() {
    each(|kind| {
        let mut guarded = Guarded::start(kind);
        run(async {
            let shared = connect(guarded.options(), &unused_name(), &[budget()]);
            send(&shared, 1).await;
            let first = shared.server().unwrap().run;
            guarded.primary.kill();
            // It may have lost what was granted last.
            let answer = first_answer(&shared).await;
            assert!(
                matches!(answer, Answer::Learning { budget: 0, .. }),
                "{answer:?}"
            );
            let server = shared.server().unwrap();
            assert!(server.is_primary && server.run != first);
            let mut beside = guarded.replica.beside();
            let role: Vec<redis::Value> = beside.run(&["ROLE"]);
            assert_eq!(role[0], redis::Value::BulkString(b"master".into()));
        });
    });
}

#[test]
fn a_primary_that_was_told_to_be_a_replica_is_let_go() {
    each(|kind| {
        let guarded = Guarded::start(kind);
        run(async {
            let shared = connect(guarded.options(), &unused_name(), &[budget()]);
            send(&shared, 1).await;
            let first = shared.server().unwrap().run;
            let mut sentinel = guarded.sentinel.beside();
            sentinel.run::<()>(&["SENTINEL", "FAILOVER", "main"]);
            let mut old = guarded.primary.beside();
            until("a replica", || {
                // Its clients were cut, too.
                let role = old.try_run::<String>(&["INFO", "replication"]);
                if role.is_err() {
                    old = guarded.primary.beside();
                }
                role.is_ok_and(|role| role.contains("role:slave"))
            });
            let answer = first_answer(&shared).await;
            assert!(matches!(answer, Answer::Learning { .. }), "{answer:?}");
            assert_ne!(shared.server().unwrap().run, first);
        });
    });
}

#[test]
fn a_sentinel_that_is_gone_or_knows_nothing_is_not_the_last_word() {
    each(|kind| {
        let guarded = Guarded::start(kind);
        let other = Server::start(kind);
        let ignorant = Server::sentinel(kind, other.port, &[]);
        let mut beside = ignorant.beside();
        beside.run::<()>(&["SENTINEL", "REMOVE", "main"]);
        run(async {
            let urls = vec![
                "redis://127.0.0.1:1".into(),
                ignorant.url(),
                guarded.sentinel.url(),
            ];
            let options = guarded.options_of(urls, "main");
            let shared = connect(options, &unused_name(), &[budget()]);
            send(&shared, 1).await;
            let options = guarded.options_of(vec![guarded.sentinel.url()], "another");
            let shared = connect(options, &unused_name(), &[budget()]);
            let lost = ask(&shared, 1).await.unwrap_err();
            let Lost::Refused(Refused::Other(why)) = &lost else {
                panic!("{lost:?}");
            };
            assert!(why.contains("`another`"), "{why}");
        });
    });
}

#[test]
fn one_that_is_named_and_is_no_primary_is_not_used() {
    each(|kind| {
        let guarded = Guarded::start(kind);
        // It is told that the replica is one, and does not look for long.
        let slow = ["--sentinel", "down-after-milliseconds", "main", "60000"];
        let mistaken = Server::sentinel(kind, guarded.replica.port, &slow);
        run(async {
            let urls = vec![mistaken.url(), guarded.sentinel.url()];
            let options = guarded.options_of(urls, "main");
            let shared = connect(options, &unused_name(), &[budget()]);
            send(&shared, 1).await;
            assert!(shared.server().unwrap().is_primary);
        });
    });
}

#[test]
fn servers_and_sentinels_may_ask_for_a_user() {
    each(|kind| {
        for guards in [true, false] {
            let secret = ["--requirepass", "secret"];
            let primary = Server::start_with(kind, &secret);
            let more = if guards { &secret[..] } else { &[] };
            let sentinel = Server::sentinel(kind, primary.port, more);
            run(async {
                let options = Options {
                    place: EnginePlace::Sentinel {
                        urls: vec![sentinel.url()],
                        master: "main".into(),
                    },
                    password: Some("secret".into()),
                    ..options(&primary)
                };
                let shared = connect(options, &unused_name(), &[budget()]);
                send(&shared, 1).await;
            });
        }
    });
}
