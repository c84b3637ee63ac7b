//! Many clients that do anything at any time, against providers that do too: every RPC passes the
//! check, and nothing is left. Random, by fixed seeds.

use std::{collections::BTreeMap, time::Duration};

use redrive::proto::{Delivery, GenerateRequest, Start, generate_response::Frame};
use tokio::{task::JoinSet, time};

use crate::support::*;

const SEEDS: u64 = 24;
const CLIENTS: u64 = 24;

/// What stands in the way of every other seed.
const BUDGETS: &str = "\
budgets:
  - {name: all, match: {}, concurrent: 5, max_waiting: 12, fairness: {label: tenant, weights: {t0: 3}}}
  - name: of-a
    match: {provider: a}
    requests: [{limit: 6, window: 20s}]
    output_tokens: [{limit: 20000, window: 30s}]
    smoothing: {requests: 1, per: 1s, burst: 3}
";

/// xorshift64*: small, and the same on every machine.
struct Dice(u64);

impl Dice {
    fn new(seed: u64) -> Dice {
        Dice(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    fn roll(&mut self, sides: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33) % sides
    }

    fn pause(&mut self) -> Duration {
        match self.roll(4) {
            0 => secs(self.roll(60)),
            1 => millis(self.roll(2000)),
            _ => Duration::ZERO,
        }
    }
}

fn script(dice: &mut Dice) -> Script {
    let mut script = match dice.roll(12) {
        0 => return connecting(),
        1 => return sent().wait(dice.pause()),
        2 => return sent().header("retry-after", "3").head(429).end(),
        3 => return status([400, 401, 404, 500, 503, 529][dice.roll(6) as usize]).end(),
        4 => return status(500).data("x"),
        _ => stream().wait(dice.pause()),
    };
    for _ in 0..dice.roll(6) {
        script = match dice.roll(7) {
            0 => script.keepalive(),
            1 => script.data(role()),
            2 => script.text(&"x".repeat(dice.roll(300_000) as usize)),
            _ => script.text("token "),
        };
        script = script.wait(dice.pause());
    }
    match dice.roll(10) {
        0 => script.end(),
        1 => script.reset(),
        2 => script.data("data: {oh\n\n"),
        3 => script.panic(),
        4 => script,
        5 => script.data(finish("stop")),
        _ => script.complete(),
    }
}

fn any_start(dice: &mut Dice) -> Start {
    let mut start = start();
    if dice.roll(2) == 0 {
        start = start.on("pair");
    }
    start.delivery = match dice.roll(4) {
        0 => Delivery::CommittedOnly,
        1 => Delivery::PreviewNoReset,
        _ => Delivery::Preview,
    }
    .into();
    if dice.roll(3) == 0 {
        start = start.with_grace(secs(dice.roll(40)));
    }
    if dice.roll(3) == 0 {
        start.scope = format!("scope-{}", dice.roll(3));
    }
    if dice.roll(3) == 0 {
        // The same body for the same id, now and then another.
        start = start_as(&format!("request-{}", dice.roll(4)));
        start.model = ["", "", "m-2"][dice.roll(3) as usize].to_owned();
    }
    start.include_native_events = dice.roll(8) == 0;
    let tenant = format!("t{}", dice.roll(3));
    start.labels.insert("tenant".to_owned(), tenant);
    start
}

/// What it saw at last.
async fn client(channel: tonic::transport::Channel, mut dice: Dice) -> String {
    time::sleep(dice.pause()).await;
    let deadline = (dice.roll(4) == 0).then(|| secs(1 + dice.roll(100)));
    let mut rpc = rpc::open(&channel, deadline).await;
    match dice.roll(20) {
        0 => return "Vanished".to_owned(),
        1 => rpc.send_raw(GenerateRequest::default()),
        2 => rpc.half_close(),
        3 => rpc.send(attach_by_request(&format!("request-{}", dice.roll(4)))),
        _ => rpc.send(generate(any_start(&mut dice))),
    }
    for _ in 0..dice.roll(8) {
        time::sleep(dice.pause()).await;
        let Some(frame) = rpc.next().await else {
            return end_of(&rpc.frames);
        };
        match (dice.roll(24), frame) {
            (0, _) => return "Vanished".to_owned(),
            (1, _) => rpc.send_late(cancel("chaos")),
            (2 | 6 | 7, Frame::Delta(_)) => rpc.send_late(effects(rpc.sequence())),
            (3, _) => rpc.send_late(effects(dice.roll(10))),
            (4, _) => rpc.half_close(),
            (5, _) => rpc.send_late(generate(start())),
            _ => {}
        }
    }
    end_of(&rpc.end().await.frames)
}

#[tokio::test(start_paused = true)]
async fn whatever_happens_every_rpc_is_well_formed_and_nothing_is_left() {
    let mut ends = BTreeMap::<String, usize>::new();
    for seed in 1..=SEEDS {
        let limited = seed % 2 == 0;
        let config = CONFIG.replace("models:", "client_idle: 20s\n    models:");
        let config = config + if limited { BUDGETS } else { "" };
        let slots = 1 + (seed as usize * 7) % 20;
        let bench = Bench::with_slots(&config, slots).await;
        let mut dice = Dice::new(seed);
        bench.provider.always(move || script(&mut dice));
        let mut clients = JoinSet::new();
        for number in 0..CLIENTS {
            let dice = Dice::new(seed * 1000 + number);
            clients.spawn(client(bench.connect().await, dice));
        }
        while let Some(ended) = clients.join_next().await {
            let end = ended.unwrap_or_else(|error| panic!("seed {seed}: {error}"));
            *ends.entry(end).or_default() += 1;
        }
        // What was detached comes to its end too.
        time::sleep(secs(2000)).await;
        if limited {
            let received = bench.provider.received();
            let of_a = received.iter().filter(|r| r.provider == "a");
            let at: Vec<_> = of_a.filter_map(|r| r.sent_at).collect();
            let window = at.windows(7).map(|w| w[6] - w[0]).min();
            assert!(
                window.is_none_or(|length| length >= secs(20)),
                "seed {seed}: {window:?}"
            );
            let text = bench.telemetry.render_metrics().unwrap();
            let none = |series: &str| {
                assert!(
                    text.contains(&format!("{series} 0\n")),
                    "seed {seed}: {text}"
                )
            };
            none(r#"redrive_budget_used{budget="all",limit="concurrent"}"#);
            none(r#"redrive_budget_waiting{budget="all"}"#);
            none(r#"redrive_budget_waiting{budget="of-a"}"#);
        }
        bench.finish().await;
    }
    // It would prove little if all went well.
    let reached = [
        "Cancelled",
        "Committed",
        "Deadline",
        "InvalidRequest",
        "None",
        "RateLimited",
        "Stall",
        "Transport",
        "Unclassified",
        "Vanished",
    ];
    for end in reached {
        assert!(ends.contains_key(end), "no {end} in {ends:?}");
    }
}
