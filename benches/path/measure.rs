//! Many streams at once, and what they came to.

use std::time::{Duration, Instant};

use tokio::task::JoinSet;
use tonic::transport::Channel;

use super::{
    client::{self, Seen},
    process::Process,
};

/// What one load came to.
#[derive(Default)]
pub struct Load {
    pub tokens: usize,
    pub messages: usize,
    /// From the first open to the last end.
    pub elapsed: Duration,
    /// CPU time of the process between provider and client.
    pub cpu: Duration,
    /// How old tokens were when the client had them, in microseconds.
    pub ages: Vec<u32>,
}

impl Load {
    /// CPU time per token, in microseconds.
    pub fn cpu_us_per_token(&self) -> f64 {
        self.cpu.as_secs_f64() * 1e6 / self.tokens as f64
    }

    pub fn messages_per_token(&self) -> f64 {
        self.messages as f64 / self.tokens as f64
    }

    fn add(&mut self, other: Self) {
        self.tokens += other.tokens;
        self.messages += other.messages;
        self.ages.extend(other.ages);
    }
}

/// `streams` streams of `tokens` tokens each, over one connection. Panics if a token is missing.
pub async fn load(process: &Process, streams: usize, tokens: usize, pace: Duration) -> Load {
    let channel = client::connect(process.port).await;
    let model = format!("plain-{tokens}-{}", pace.as_micros());
    let cpu = process.cpu();
    let started = Instant::now();
    let mut running = JoinSet::new();
    for _ in 0..streams {
        running.spawn(stream(channel.clone(), model.clone(), tokens));
    }
    let mut load = Load::default();
    for one in running.join_all().await {
        load.add(one);
    }
    load.elapsed = started.elapsed();
    load.cpu = process.cpu() - cpu;
    load
}

async fn stream(channel: Channel, model: String, tokens: usize) -> Load {
    let mut frames = client::open(&channel, "default", &model).await;
    let mut load = Load::default();
    while let Some(frame) = frames.message().await.unwrap() {
        if let Seen::Tokens(_, ages) = client::see(&frame) {
            load.tokens += ages.len();
            load.messages += usize::from(!ages.is_empty());
            load.ages.extend(ages);
        }
    }
    assert_eq!(load.tokens, tokens, "tokens of one stream");
    load
}

/// The value below which `percent` of `values` lie.
pub fn percentile(values: &[u32], percent: f64) -> u32 {
    let mut values = values.to_vec();
    values.sort_unstable();
    let at = (values.len() as f64 * percent / 100.0) as usize;
    values[at.min(values.len() - 1)]
}
