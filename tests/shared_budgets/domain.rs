//! A domain whose clock the test sets, and words for limits.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use redrive::{
    budgets::shared::*,
    clock::Clock,
    limits::{Measure, Micros, Refund, Settings, Weights, WindowLimit},
};

use crate::server::{Beside, Server};

/// Long enough for a busy machine: whether answers come in time is not what these tests are about.
pub const PATIENCE: Duration = Duration::from_secs(20);

pub const SECOND: Micros = 1_000_000;

/// Where tests begin.
pub const START: Micros = 1_000_000 * SECOND;

/// A domain, and a connection beside it.
pub struct Domain {
    pub shared: Shared,
    pub beside: Beside,
    pub name: String,
    budgets: Vec<usize>,
    now: Micros,
    /// By how much the server's clock is ahead of the time that passes.
    ahead: i64,
}

pub fn settings(name: &str, windows: &[(Measure, u64, Micros)]) -> Settings {
    let windows = windows.iter().map(|&(measure, limit, window)| WindowLimit {
        measure,
        limit,
        window,
    });
    Settings {
        name: name.into(),
        windows: windows.collect(),
        concurrent: None,
        daily: Vec::new(),
        refund: Refund::All,
        margin: 0,
    }
}

/// Requests in a window of seconds.
pub fn requests(limit: u64, seconds: u64) -> Settings {
    settings("a", &[(Measure::Requests, limit, seconds * SECOND)])
}

pub fn tokens(input_tokens: u64, output_tokens: u64) -> Weights {
    Weights {
        input_tokens,
        output_tokens,
    }
}

pub fn options(server: &Server) -> Options {
    Options {
        timeout: Duration::from_secs(10),
        connect_timeout: Duration::from_secs(10),
        ..Options::new(&server.url())
    }
}

/// Options whose script reads the time that the test sets; and what pods know of it, if the test says so.
pub fn with_set_clock(options: Options) -> Options {
    let time = "{ 0, redis.call('GET', META .. ':test_now') }";
    let known = "tonumber(redis.call('GET', META .. ':test_at_least') or -1), 100000";
    options.with_script(|script| {
        let script = replace(script, "redis.call('TIME')", time);
        replace(&script, "tonumber(ARGV[9]), tonumber(ARGV[10])", known)
    })
}

/// Options whose script's clock steps as the test says, and runs by itself.
pub fn with_steps(options: Options) -> Options {
    let time = "(function() local time = redis.call('TIME') return { time[1] + \
                (redis.call('GET', META .. ':test_step') or 0), time[2] } end)()";
    options.with_script(|script| replace(script, "redis.call('TIME')", time))
}

fn replace(script: &str, from: &str, to: &str) -> String {
    assert_eq!(script.matches(from).count(), 1, "{from}");
    script.replace(from, to)
}

/// A name that no other test of this process uses.
pub fn unused_name() -> String {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    format!("d{}", NEXT.fetch_add(1, Ordering::Relaxed))
}

pub fn connect(options: Options, name: &str, settings: &[Settings]) -> Shared {
    Shared::connect(Clock::start(), options, name, settings).unwrap()
}

impl Domain {
    /// That knows what it granted.
    pub async fn new(server: &Server, options: Options, settings: &[Settings]) -> Self {
        let mut domain = Self::learning(server, options, settings).await;
        domain.learn().await;
        domain
    }

    /// That has just begun.
    pub async fn learning(server: &Server, options: Options, settings: &[Settings]) -> Self {
        let name = unused_name();
        let mut beside = server.beside();
        set(&mut beside, &name, START);
        let shared = connect(with_set_clock(options), &name, settings);
        let domain = Self {
            shared,
            beside,
            name,
            budgets: (0..settings.len()).collect(),
            now: START,
            ahead: 0,
        };
        domain.status(&[]).await;
        domain
    }

    /// A further pod of the same domain.
    pub fn pod(&self, options: Options, settings: &[Settings]) -> Shared {
        connect(with_set_clock(options), &self.name, settings)
    }

    /// Lets as much time pass as nothing is granted for.
    pub async fn learn(&mut self) {
        let left = self.status(&self.budgets).await.budgets;
        let left = left.iter().map(|budget| budget.learning).max();
        self.pass(u64::try_from(left.unwrap_or_default().as_micros()).unwrap());
        self.status(&[]).await;
    }

    pub fn key(&self, part: &str) -> String {
        format!("{{redrive:{}}}:{part}", self.name)
    }

    pub fn now(&self) -> Micros {
        self.now
    }

    pub fn pass(&mut self, time: Micros) {
        self.now += time;
        self.set();
    }

    /// The server's clock steps, and no time passes.
    pub fn step(&mut self, by: i64) {
        self.ahead += by;
        self.set();
    }

    /// Every pod knows that it is `now` at least; or nothing.
    pub fn pods_know(&mut self, now: Option<Micros>) {
        let key = self.key("meta:test_at_least");
        match now {
            Some(now) => self.beside.run::<()>(&["SET", &key, &now.to_string()]),
            None => self.beside.run::<()>(&["DEL", &key]),
        }
    }

    /// A call of one who knows what time it is.
    pub async fn tell_the_time(&mut self) {
        self.pods_know(Some(self.now));
        self.status(&[]).await;
        self.pods_know(None);
    }

    fn set(&mut self) {
        let now = self.now.checked_add_signed(self.ahead).unwrap();
        set(&mut self.beside, &self.name, now);
    }

    pub async fn status(&self, budgets: &[usize]) -> Status {
        self.shared.status(budgets, &[], PATIENCE).await.unwrap()
    }

    pub async fn ask(&self, id: u128) -> Answer {
        ask(&self.shared, id).await.unwrap()
    }

    /// Granted, and left.
    pub async fn send(&self, id: u128) {
        send(&self.shared, id).await;
    }
}

/// Asks for a lease of budget 0.
pub async fn ask(shared: &Shared, id: u128) -> Result<Answer, Lost> {
    shared.acquire(one(id), PATIENCE).await
}

/// Granted, and left.
pub async fn send(shared: &Shared, id: u128) {
    assert_eq!(ask(shared, id).await, Ok(Answer::Granted));
    assert!(shared.leave(id.into()));
    assert_eq!(shared.tell(id.into(), PATIENCE).await, Ok(Heard::Done));
}

/// A lease of budget 0, of no tokens.
pub fn one(id: u128) -> Ask<'static> {
    Ask {
        lease: id.into(),
        budgets: &[0],
        days: &[],
        tokens: Weights::default(),
        send_within: Duration::from_secs(10),
        turn: None,
    }
}

/// Denied, and for how long.
pub fn wait_of(answer: &Answer) -> Option<Micros> {
    match answer {
        Answer::Denied { wait, .. } => wait.map(|wait| u64::try_from(wait.as_micros()).unwrap()),
        other => panic!("{other:?}"),
    }
}

fn set(beside: &mut Beside, name: &str, now: Micros) {
    let key = format!("{{redrive:{name}}}:meta:test_now");
    beside.run::<()>(&["SET", &key, &now.to_string()]);
}
