//! The provider: the simulator on a thread and a runtime of its own, so that nobody's work keeps it from
//! stamping what arrives.

use std::{sync::Arc, thread, time::Duration};

use redrive::simulator::{Asked, Choose, Chosen, Options, Received, Script, Simulator, chat};
use serde_json::Value;
use tokio::{runtime::Builder, time::sleep};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::lag::Lag;

/// What a client wants; its prompt says it, so that the provider's log names whose request it was.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Wish {
    /// The value of the label `tenant`.
    pub tenant: &'static str,
    /// Tells it from others.
    pub number: usize,
    /// Words of the answer: tokens.
    pub words: usize,
    /// Before each of them.
    pub pace: Duration,
}

impl Wish {
    pub fn prompt(&self) -> String {
        let (tenant, number, words) = (self.tenant, self.number, self.words);
        format!("{tenant} {number} {words} {}", self.pace.as_micros())
    }
}

/// How many words, and how fast, a prompt asks for.
pub fn asked_for(prompt: &str) -> Option<(usize, Duration)> {
    let mut words = prompt.split(' ').skip(2);
    let count = words.next()?.parse().ok()?;
    let pace = Duration::from_micros(words.next()?.parse().ok()?);
    Some((count, pace))
}

/// The whole answer to a prompt. Its connection is closed where the next request is to open one.
pub fn answer(prompt: &str, keep: bool) -> Script {
    let (count, pace) = asked_for(prompt).expect("a prompt of ours");
    let script = chat::answer("m", "la ".repeat(count).trim_end(), pace);
    match keep {
        true => script,
        false => script.with_header("connection", "close"),
    }
}

/// Answers by prompt.
struct ByPrompt<F>(F);

impl<F: Fn(&str) -> Script + Send + Sync + 'static> Choose for ByPrompt<F> {
    fn choose(&self, asked: Asked<'_>) -> Option<Chosen> {
        if !asked.complete {
            return None;
        }
        let body: Value = serde_json::from_slice(asked.body).expect("JSON");
        let prompt = body["messages"][0]["content"].as_str().expect("a prompt");
        Some(Chosen {
            script: Arc::new((self.0)(prompt)),
            name: prompt.to_owned(),
            place: 0,
        })
    }
}

pub struct Provider {
    pub simulator: Arc<Simulator>,
    _stop: DropGuard,
}

impl Provider {
    /// Serves `script` of each prompt; `lag` is how late its loop gets.
    pub fn start(lag: Lag, script: impl Fn(&str) -> Script + Send + Sync + 'static) -> Self {
        let stop = CancellationToken::new();
        let (tell, told) = std::sync::mpsc::channel();
        let stopped = stop.clone();
        thread::spawn(move || {
            let runtime = Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async move {
                lag.watch();
                let simulator = Simulator::start(Options::default(), ByPrompt(script));
                tell.send(Arc::new(simulator.await.unwrap())).unwrap();
                stopped.cancelled().await;
            });
        });
        Self {
            simulator: told.recv().unwrap(),
            _stop: stop.drop_guard(),
        }
    }

    pub fn base_url(&self) -> String {
        self.simulator.base_url()
    }

    /// The log, once it knows how each answer ended.
    pub async fn at_rest(&self) -> Vec<Received> {
        loop {
            let log = self.simulator.received();
            if log.iter().all(|request| request.ended.is_some()) {
                return log;
            }
            sleep(Duration::from_millis(10)).await;
        }
    }
}
