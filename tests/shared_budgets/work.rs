//! Clients that ask, send and settle as fast as they can, and what that took.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use redrive::budgets::shared::*;
use tokio::task::JoinSet;

use crate::{
    domain::{PATIENCE, one, tokens},
    server::Beside,
};

/// Those who are denied ask again soon: the limit is always wanted.
const AGAIN: Duration = Duration::from_millis(2);

/// When it is over.
#[derive(Clone, Copy, Debug)]
pub enum Ends {
    After(Duration),
    /// So many were granted.
    Granted(u64),
}

/// What it took.
#[derive(Debug, Default)]
pub struct Work {
    /// How long each `acquire` took, in microseconds.
    pub acquires: Vec<u32>,
    /// When each send left, in microseconds since the work began; `None` in a client that keeps no log.
    pub left: Vec<u64>,
    pub granted: u64,
    pub took: Duration,
}

impl Work {
    /// In microseconds: so many of a hundred took no longer.
    pub fn percentile(&mut self, of_hundred: usize) -> u32 {
        self.acquires.sort_unstable();
        let last = self.acquires.len().saturating_sub(1);
        let place = (self.acquires.len() * of_hundred / 100).min(last);
        self.acquires.get(place).copied().unwrap_or_default()
    }

    /// The most that left within any `window`.
    pub fn worst(&mut self, window: Duration) -> usize {
        self.left.sort_unstable();
        let window = u64::try_from(window.as_micros()).unwrap();
        let (mut first, mut worst) = (0, 0);
        for (place, at) in self.left.iter().enumerate() {
            while self.left[first] + window <= *at {
                first += 1;
            }
            worst = worst.max(place + 1 - first);
        }
        worst
    }
}

/// So many clients, spread over the connections of `pods`; one send of two calls each: `acquire`, and
/// `settle`, which tells that it left, too.
pub async fn work(pods: &[Arc<Shared>], clients: usize, ends: Ends) -> Work {
    let begun = Instant::now();
    let tickets = Arc::new(AtomicU64::new(0));
    let mut tasks = JoinSet::new();
    for number in 0..clients {
        let shared = Arc::clone(&pods[number % pods.len()]);
        tasks.spawn(client(shared, begun, Arc::clone(&tickets), ends));
    }
    let mut all = Work::default();
    for mut one in tasks.join_all().await {
        all.acquires.append(&mut one.acquires);
        all.left.append(&mut one.left);
        all.granted += one.granted;
    }
    all.took = begun.elapsed();
    all
}

async fn client(shared: Arc<Shared>, begun: Instant, tickets: Arc<AtomicU64>, ends: Ends) -> Work {
    let mut work = Work::default();
    let micros = |from: Instant| u64::try_from(from.elapsed().as_micros()).unwrap();
    loop {
        let is_over = match ends {
            Ends::After(time) => begun.elapsed() >= time,
            Ends::Granted(most) => tickets.fetch_add(1, Ordering::Relaxed) >= most,
        };
        if is_over {
            break;
        }
        let id = Id::random();
        loop {
            let from = Instant::now();
            let ask = Ask {
                lease: id,
                ..one(0)
            };
            let answer = shared.acquire(ask, PATIENCE).await.unwrap();
            work.acquires
                .push(u32::try_from(micros(from)).unwrap_or(u32::MAX));
            match answer {
                Answer::Granted => break,
                Answer::Denied { wait, .. } => {
                    tokio::time::sleep(wait.unwrap_or(AGAIN).min(AGAIN)).await;
                }
                Answer::Learning { .. } => tokio::time::sleep(AGAIN).await,
                other => panic!("{other:?}"),
            }
            if let Ends::After(time) = ends
                && begun.elapsed() >= time
            {
                return work;
            }
        }
        assert!(shared.leave(id), "it is late");
        work.left.push(micros(begun));
        work.granted += 1;
        let settled = shared.settle(id, tokens(5, 5), PATIENCE).await;
        assert_eq!(settled, Ok(Heard::Done));
    }
    work
}

/// What a server has done so far, in microseconds.
#[derive(Clone, Copy, Debug)]
pub struct Cost {
    /// Of its processor.
    pub processor: f64,
    /// Calls of scripts.
    pub calls: f64,
    /// Inside of scripts.
    pub scripts: f64,
}

impl Cost {
    pub fn so_far(beside: &mut Beside) -> Self {
        let info: String = beside.run(&["INFO", "everything"]);
        let number = |text: &str, name: &str| {
            let (_, rest) = text.split_once(name).unwrap();
            let end = rest.find([',', '\r']).unwrap();
            rest[..end].parse::<f64>().unwrap()
        };
        let (_, scripts) = info.split_once("cmdstat_evalsha:").unwrap();
        let seconds = number(&info, "used_cpu_user:") + number(&info, "used_cpu_sys:");
        Self {
            processor: seconds * 1e6,
            calls: number(scripts, "calls="),
            scripts: number(scripts, "usec="),
        }
    }

    /// Of one call since `before`: of the processor, and inside of the script.
    pub fn per_call(&self, before: &Self) -> (f64, f64) {
        let calls = self.calls - before.calls;
        (
            (self.processor - before.processor) / calls,
            (self.scripts - before.scripts) / calls,
        )
    }
}
