//! A server that refuses, hangs, or answers nonsense: nothing is granted, it is said why, and nobody waits.

use std::{
    io::{BufRead, BufReader, Write},
    net::{TcpListener, TcpStream},
    thread,
    time::{Duration, Instant},
};

use redrive::{budgets::shared::*, config::EnginePlace};

use crate::{
    domain::*,
    server::{Server, each, with_each},
};

/// No patience: one answer within the time-out, or none.
const NONE: Duration = Duration::ZERO;

fn run(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread();
    { runtime }.enable_all().build().unwrap().block_on(test);
}

/// What one hears who asks until it is something else than that there is no connection.
async fn refusal(options: Options) -> Lost {
    let shared = connect(options, "d", &[requests(1, 1)]);
    ask(&shared, 1).await.unwrap_err()
}

#[test]
fn keys_that_hold_something_else() {
    with_each(async |server| {
        for part in ["meta", "log", "leases", "due"] {
            let mut domain = Domain::new(&server, options(&server), &[requests(1, 1)]).await;
            let key = domain.key(part);
            domain.beside.run::<()>(&["SET", &key, "hello"]);
            let answer = ask(&domain.shared, 1).await;
            assert_eq!(answer, Err(Lost::Refused(Refused::Keys)), "{part}");
        }
    });
}

#[test]
fn a_replica_is_read_only() {
    with_each(async |server| {
        let mut domain = Domain::new(&server, options(&server), &[requests(1, 1)]).await;
        domain.beside.run::<()>(&["REPLICAOF", "127.0.0.1", "1"]);
        let answer = ask(&domain.shared, 1).await;
        let known = [Lost::Refused(Refused::ReadOnly)];
        let answer = answer.unwrap_err();
        assert!(
            known.contains(&answer) || matches!(answer, Lost::NotReady(_)),
            "{answer:?}"
        );
    });
}

#[test]
fn a_server_whose_memory_is_full() {
    with_each(async |server| {
        let mut domain = Domain::new(&server, options(&server), &[requests(1, 1)]).await;
        domain
            .beside
            .run::<()>(&["CONFIG", "SET", "maxmemory", "1"]);
        let answer = ask(&domain.shared, 1).await;
        assert_eq!(answer, Err(Lost::Refused(Refused::Memory)));
        domain
            .beside
            .run::<()>(&["CONFIG", "SET", "maxmemory", "0"]);
        // What was asked for and not answered is not asked for again.
        assert_eq!(domain.ask(1).await, Answer::Over);
        assert_eq!(domain.ask(2).await, Answer::Granted);
    });
}

#[test]
fn a_wrong_password_and_a_user_without_permission() {
    each(|kind| {
        let server = Server::start_with(kind, &["--requirepass", "secret"]);
        run(async {
            let none = refusal(options(&server)).await;
            assert_eq!(none, Lost::Refused(Refused::Authentication));
            let wrong = Options {
                password: Some("wrong".into()),
                ..options(&server)
            };
            assert_eq!(refusal(wrong).await, Lost::Refused(Refused::Authentication));
            let right = Options {
                password: Some("secret".into()),
                ..options(&server)
            };
            let shared = connect(right, "d", &[requests(1, 1)]);
            assert!(matches!(ask(&shared, 1).await, Ok(Answer::Learning { .. })));
        });
        let server = Server::start(kind);
        let mut beside = server.beside();
        let rules = [
            "ACL",
            "SETUSER",
            "redrive",
            "on",
            ">pw",
            "~{redrive:*",
            "+@all",
            "-evalsha",
        ];
        beside.run::<()>(&rules);
        run(async {
            let options = Options {
                username: Some("redrive".into()),
                password: Some("pw".into()),
                ..options(&server)
            };
            let lost = refusal(options.clone()).await;
            assert!(
                matches!(lost, Lost::Refused(Refused::Permission(_))),
                "{lost:?}"
            );
            // What the documentation says is enough is.
            let enough = "reset on >pw ~{redrive:* +eval +evalsha +script|load +info +hello +client \
                          +auth +ping +time +hmget +hget +hset +hdel +hlen +zadd +zrem +zcard \
                          +zrangebyscore +unlink +pexpire";
            let rules = ["ACL", "SETUSER", "redrive"].into_iter();
            let rules: Vec<_> = rules.chain(enough.split_whitespace()).collect();
            beside.run::<()>(&rules);
            let shared = connect(options, "d", &[requests(1, 1)]);
            assert!(matches!(ask(&shared, 1).await, Ok(Answer::Learning { .. })));
        });
    });
}

#[test]
fn what_is_no_place_is_refused_at_once() {
    run(async {
        let clock = redrive::clock::Clock::start();
        let bad = |options: Options, domain: &str| {
            Shared::connect(clock, options, domain, &[requests(1, 1)]).map(|_| ())
        };
        let fine = || Options::new("redis://127.0.0.1:1");
        assert_eq!(bad(fine(), "d"), Ok(()));
        assert_eq!(bad(fine(), "a}b"), Err(BadOptions::Name("a}b".into())));
        assert!(matches!(
            bad(Options::new("http://x"), "d"),
            Err(BadOptions::Url(_))
        ));
        let place = EnginePlace::Cluster(Vec::new());
        assert_eq!(
            bad(Options { place, ..fine() }, "d"),
            Err(BadOptions::NoUrl)
        );
        let life = Duration::ZERO;
        assert_eq!(bad(Options { life, ..fine() }, "d"), Err(BadOptions::Zero));
    });
}

#[test]
fn nobody_waits_for_a_server_that_is_not_there_or_silent() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = silent.local_addr().unwrap().port();
    for port in [port, 1] {
        run(async {
            let options = Options::new(&format!("redis://127.0.0.1:{port}"));
            let shared = connect(options, "d", &[requests(1, 1)]);
            let begun = Instant::now();
            let lost = shared.acquire(one(1), NONE).await.unwrap_err();
            let took = begun.elapsed();
            assert!(took < Duration::from_secs(1), "{took:?}");
            assert!(
                matches!(lost, Lost::Timeout | Lost::Disconnected(_)),
                "{lost:?}"
            );
        });
    }
}

#[test]
fn a_server_that_hangs_is_given_up_and_found_again() {
    with_each(async |server| {
        let options = Options {
            timeout: Duration::from_millis(100),
            ..options(&server)
        };
        let domain = Domain::new(&server, options, &[requests(9, 60)]).await;
        signal(server.id(), "STOP");
        let begun = Instant::now();
        let lost = domain.shared.acquire(one(1), NONE).await;
        let took = begun.elapsed();
        // Why is not forgotten where the connection is given up for it.
        let down = loop {
            match domain.shared.down() {
                Some(lost) => break lost,
                None => tokio::time::sleep(Duration::from_millis(1)).await,
            }
        };
        signal(server.id(), "CONT");
        assert_eq!((lost, down), (Err(Lost::Timeout), Lost::Timeout));
        assert!(took < Duration::from_secs(1), "{took:?}");
        assert!(matches!(domain.ask(2).await, Answer::Granted));
        // What was asked while it hung goes back.
        let mut tries = 0;
        loop {
            let account = domain.status(&[0]).await.account;
            if account.granted == 1 + account.returned {
                break;
            }
            tries += 1;
            assert!(tries < 1_000, "{account:?}");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    });
}

fn signal(id: u32, name: &str) {
    let mut kill = std::process::Command::new("kill");
    assert!(
        kill.args([&format!("-{name}"), &id.to_string()])
            .status()
            .unwrap()
            .success()
    );
}

#[test]
fn nonsense_is_no_grant() {
    let long = format!("*{}\r\n", 5).to_owned() + ":1\r\n:1\r\n:1\r\n:1\r\n:1\r\n";
    for nonsense in [
        "+OK\r\n",
        "$7\r\ngranted\r\n",
        "*0\r\n",
        "*1\r\n$7\r\ngranted\r\n",
        "*6\r\n$7\r\ngranted\r\n:1\r\n$1\r\ne\r\n:0\r\n$1\r\nx\r\n:0\r\n",
        "*4\r\n$6\r\ndenied\r\n:1\r\n$1\r\ne\r\n:0\r\n",
        "*2\r\n$2\r\nno\r\n:1\r\n",
        ":12\r\n",
        "$-1\r\n",
        "-ERR no\r\n",
        "HTTP/1.1 200 OK\r\n\r\n",
        "*-7\r\n",
        &long,
    ] {
        let server = Liar::start(nonsense.to_owned());
        run(async {
            let options = Options::new(&format!("redis://127.0.0.1:{}", server.port));
            let shared = connect(options, "d", &[requests(1, 1)]);
            let answer = shared.acquire(one(1), Duration::from_millis(500)).await;
            assert!(answer.is_err(), "{nonsense:?}: {answer:?}");
        });
    }
}

/// A server that joins well, and answers all else with nonsense.
struct Liar {
    port: u16,
}

impl Liar {
    fn start(nonsense: String) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let nonsense = nonsense.clone();
                thread::spawn(move || lie(client, &nonsense));
            }
        });
        Self { port }
    }
}

fn lie(client: TcpStream, nonsense: &str) -> Option<()> {
    let mut answers = client.try_clone().ok()?;
    let mut reader = BufReader::new(client);
    loop {
        let words = command(&mut reader)?;
        let has = |word: &str| words.iter().any(|known| known == word);
        let info = "redis_version:7.0.0\r\nrun_id:00\r\n";
        let answer = if has("INFO") {
            format!("${}\r\n{info}\r\n", info.len())
        } else if has("SCRIPT") {
            "$2\r\naa\r\n".into()
        } else if has("join") {
            "*4\r\n$2\r\nok\r\n:1\r\n$1\r\ne\r\n:0\r\n".into()
        } else if has("acquire") {
            nonsense.into()
        } else {
            "+OK\r\n".into()
        };
        answers.write_all(answer.as_bytes()).ok()?;
    }
}

/// The words of one command.
fn command(reader: &mut impl BufRead) -> Option<Vec<String>> {
    let mut number = |mark: char| {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        line.trim()
            .strip_prefix(mark)?
            .parse::<usize>()
            .ok()
            .map(|n| (n, ()))
    };
    let (count, ()) = number('*')?;
    let mut words = Vec::new();
    for _ in 0..count {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let length: usize = line.trim().strip_prefix('$')?.parse().ok()?;
        let mut word = vec![0; length + 2];
        reader.read_exact(&mut word).ok()?;
        word.truncate(length);
        words.push(String::from_utf8_lossy(&word).into_owned());
    }
    Some(words)
}
