//! The rows of the table.

use std::time::{Duration, Instant};

use tonic::{Streaming, transport::Channel};

use super::{
    client::{self, Seen},
    measure::{Load, load, percentile},
    process::Process,
    report::Report,
};
use redrive::proto::GenerateResponse;

/// How many streams the memory rows open, one after the other.
const OPEN: [usize; 4] = [1, 100, 1_000, 5_000];

/// Streams on one connection in the memory rows.
const STREAMS_PER_CONNECTION: usize = 250;

/// Streams that are opened at once in the memory rows.
const OPENED_AT_ONCE: usize = 50;

/// Generations of the rows that run one at a time.
const ONE_BY_ONE: usize = 200;

/// How long memory may settle before it is read.
const SETTLE: Duration = Duration::from_secs(2);

/// Provider, sidecar and floor, and how often comparisons are repeated.
pub struct Bench {
    rounds: usize,
    folder: tempfile::TempDir,
    provider: Process,
    sidecar: Process,
    floor: Process,
}

impl Bench {
    pub async fn new(rounds: usize) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let provider = Process::role(&["provider"]);
        let sidecar = sidecar(&provider, folder.path());
        let floor = floor(&provider);
        let bench = Self {
            rounds,
            folder,
            provider,
            sidecar,
            floor,
        };
        // First calls pay for what later ones find.
        for process in [&bench.sidecar, &bench.floor] {
            load(process, 32, 20, Duration::from_millis(1)).await;
        }
        bench
    }

    /// The binding row: one message a token.
    pub async fn paced(&self, report: &mut Report) {
        let rounds = self.alternate(32, 1_000, Duration::from_millis(5)).await;
        let what = "32 streams at 5 ms a token";
        let cpu = median_of(&rounds, Load::cpu_us_per_token);
        report.compare(&format!("{what}: CPU per token"), " µs", cpu, "≤ 1.3");
        report.alone("… ratio of each round", ratios(&rounds), "");
        for (name, percent, target) in [("p50", 50.0, ""), ("p99", 99.0, "≤ 1.5")] {
            let ages = median_of(&rounds, |load| f64::from(percentile(&load.ages, percent)));
            report.compare(&format!("… added latency, {name}"), " µs", ages, target);
        }
        report.compare(
            "… messages per token",
            "",
            median_of(&rounds, Load::messages_per_token),
            "",
        );
    }

    /// At full speed tokens are merged, which flatters.
    pub async fn burst(&self, report: &mut Report) {
        let rounds = self.alternate(64, 200, Duration::ZERO).await;
        let what = "64 streams × 200 tokens at full speed";
        let cpu = median_of(&rounds, Load::cpu_us_per_token);
        report.compare(&format!("{what}: CPU per token"), " µs", cpu, "");
        let rate = |load: &Load| load.tokens as f64 / load.elapsed.as_secs_f64() / 1e3;
        report.compare(
            "… thousand tokens a second",
            "",
            median_of(&rounds, rate),
            "",
        );
        report.compare(
            "… messages per token",
            "",
            median_of(&rounds, Load::messages_per_token),
            "",
        );
    }

    /// Runs the same load on the sidecar and on the floor in turn; what each came to in each round.
    async fn alternate(&self, streams: usize, tokens: usize, pace: Duration) -> Vec<[Load; 2]> {
        let mut rounds = Vec::new();
        for round in 0..self.rounds {
            let mut pair = [Load::default(), Load::default()];
            let mut order = [(0, &self.sidecar), (1, &self.floor)];
            if round % 2 == 1 {
                order.reverse();
            }
            for (which, process) in order {
                pair[which] = load(process, streams, tokens, pace).await;
            }
            rounds.push(pair);
        }
        rounds
    }

    /// One stream at a time: from the call to its first token.
    pub async fn first_token(&self, report: &mut Report) {
        let mut times = [Vec::new(), Vec::new()];
        let channels = [
            client::connect(self.sidecar.port).await,
            client::connect(self.floor.port).await,
        ];
        for round in 0..ONE_BY_ONE {
            for which in [round % 2, (round + 1) % 2] {
                times[which].push(first_token(&channels[which]).await);
            }
        }
        for (name, percent) in [("p50", 50.0), ("p99", 99.0)] {
            let of = times
                .each_mut()
                .map(|times| f64::from(percentile(times, percent)));
            report.compare(
                &format!("one stream: call to first token, {name}"),
                " µs",
                of,
                "",
            );
            report.alone(
                "… added to the floor",
                format!("{:.0} µs", of[0] - of[1]),
                "",
            );
        }
    }

    /// From a cut connection to the first token of the replacement, at the client.
    pub async fn recovery(&self, report: &mut Report) {
        let channel = client::connect(self.sidecar.port).await;
        for (route, backoff) in [("at-once", "0"), ("soon", "1 ms")] {
            let mut times = Vec::new();
            for _ in 0..ONE_BY_ONE {
                times.push(replacement(&channel, route).await);
            }
            let (p50, p99) = (percentile(&times, 50.0), percentile(&times, 99.0));
            let value = format!(
                "{:.1} ms, {:.1} ms",
                f64::from(p50) / 1e3,
                f64::from(p99) / 1e3
            );
            let what = format!("cut to first replacement token, backoff {backoff}: p50, p99");
            report.alone(&what, value, "≤ 50 ms after the lease");
        }
    }

    /// Resident memory, on processes of their own.
    pub async fn memory(&self, report: &mut Report) {
        let sidecar = resident(&sidecar(&self.provider, self.folder.path())).await;
        let floor = resident(&floor(&self.provider)).await;
        let mib = |kib: u64| kib as f64 / 1024.0;
        let base = [mib(sidecar[0].1), mib(floor[0].1)];
        report.compare("resident, no stream yet", " MiB", base, "≤ 20 MiB");
        for (ours, theirs) in sidecar.iter().zip(&floor).skip(1) {
            let what = format!("resident, {} open", ours.0);
            report.compare(&what, " MiB", [mib(ours.1), mib(theirs.1)], "");
        }
        for at in 3..sidecar.len() {
            let per_stream = [&sidecar, &floor].map(|of| {
                let (more, fewer) = (of[at], of[1]);
                (more.1 - fewer.1) as f64 / (more.0 - fewer.0) as f64
            });
            let what = format!("… per open stream, {} open", sidecar[at].0);
            report.compare(&what, " KiB", per_stream, "≤ 1.5");
        }
    }
}

/// The median over all rounds, of the sidecar and of the floor: one bad moment of the machine is not it.
fn median_of(rounds: &[[Load; 2]], value: impl Fn(&Load) -> f64) -> [f64; 2] {
    [0, 1].map(|which| {
        let mut values: Vec<f64> = rounds.iter().map(|pair| value(&pair[which])).collect();
        values.sort_unstable_by(f64::total_cmp);
        values[values.len() / 2]
    })
}

/// How CPU times compare in each round.
fn ratios(rounds: &[[Load; 2]]) -> String {
    let ratio = |[sidecar, floor]: &[Load; 2]| {
        format!(
            "{:.2}",
            sidecar.cpu_us_per_token() / floor.cpu_us_per_token()
        )
    };
    rounds.iter().map(ratio).collect::<Vec<_>>().join(", ")
}

async fn first_token(channel: &Channel) -> u32 {
    let started = Instant::now();
    let mut frames = client::open(channel, "default", "plain-1-0").await;
    let mut first = None;
    while let Some(frame) = frames.message().await.unwrap() {
        if let Seen::Tokens(..) = client::see(&frame) {
            first.get_or_insert_with(|| started.elapsed());
        }
    }
    first.unwrap().as_micros() as u32
}

async fn replacement(channel: &Channel, route: &str) -> u32 {
    let mut frames = client::open(channel, route, "cut-10-0").await;
    let (mut reset, mut first) = (false, None);
    while let Some(frame) = frames.message().await.unwrap() {
        match client::see(&frame) {
            Seen::Reset => reset = true,
            Seen::Tokens(2, ages) => {
                first.get_or_insert(ages[0]);
            }
            _ => {}
        }
    }
    assert!(reset, "the cut attempt was reset");
    first.unwrap()
}

/// Resident memory in KiB, by how many streams are open.
async fn resident(process: &Process) -> Vec<(usize, u64)> {
    let mut channels = Vec::new();
    let mut open = Vec::new();
    tokio::time::sleep(SETTLE).await;
    let mut measured = vec![(0, process.resident_kib())];
    for streams in OPEN {
        while open.len() < streams {
            if open.len() >= channels.len() * STREAMS_PER_CONNECTION {
                channels.push(client::connect(process.port).await);
            }
            let channel = channels.last().unwrap();
            let more = OPENED_AT_ONCE.min(streams - open.len());
            let mut opening = tokio::task::JoinSet::new();
            for _ in 0..more {
                opening.spawn(begun(channel.clone()));
            }
            open.extend(opening.join_all().await);
        }
        tokio::time::sleep(SETTLE).await;
        measured.push((streams, process.resident_kib()));
    }
    measured
}

/// A stream that has brought some tokens and stays open.
async fn begun(channel: Channel) -> Streaming<GenerateResponse> {
    const TOKENS: usize = 20;
    let mut frames = client::open(&channel, "default", &format!("open-{TOKENS}-2000")).await;
    let mut tokens = 0;
    while tokens < TOKENS {
        if let Seen::Tokens(_, ages) = client::see(&frames.message().await.unwrap().unwrap()) {
            tokens += ages.len();
        }
    }
    frames
}

fn floor(provider: &Process) -> Process {
    Process::role(&["relay", &format!("127.0.0.1:{}", provider.port)])
}

fn sidecar(provider: &Process, folder: &std::path::Path) -> Process {
    let provider = provider.port;
    let yaml = |[grpc, admin, public]: [u16; 3]| {
        format!(
            "listen: {{grpc: \"127.0.0.1:{grpc}\", admin: \"127.0.0.1:{admin}\", \
                       public: \"127.0.0.1:{public}\"}}\n\
             providers:\n  \
               bench: {{base_url: \"http://127.0.0.1:{provider}/v1\", connections: {{max: 6000}}}}\n\
             retry_budget: {{floor: 1000000}}\n\
             routes:\n{}{}{}",
            route("default", "1s"),
            route("at-once", "0"),
            route("soon", "1ms"),
        )
    };
    Process::sidecar(yaml, folder)
}

fn route(name: &str, backoff: &str) -> String {
    format!(
        "  {name}:\n    targets: [{{provider: bench, model: none}}]\n    models: [\"*\"]\n    \
         recovery: {{backoff: {{base: {backoff}}}}}\n"
    )
}
