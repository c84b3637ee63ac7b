//! Clients: when each asks, for what, and whether it stays.

use std::{collections::HashMap, time::Duration};

use redrive::proto::{
    Ledger, Sampling, Start, VerdictClass, generate_response::Frame, start::Input, waiting::Reason,
};
use tokio::{
    task::JoinSet,
    time::{Instant, sleep, sleep_until, timeout},
};
use tonic::transport::Channel;

use super::{
    provider::Wish,
    support::{Rpc, attach_by_request, cancel, conversation, generate, rpc},
};

/// How long a client that vanished waits before it asks what became of its generation.
const LATER: Duration = Duration::from_millis(300);

/// Random numbers that are the same in every run.
pub struct Dice(u64);

impl Dice {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Below `bound`. (SplitMix64.)
    pub fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut x = self.0;
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (x ^ (x >> 31)) % bound
    }

    pub fn millis(&mut self, below: u64) -> Duration {
        Duration::from_micros(self.below(below * 1000))
    }
}

/// What a client does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Manner {
    /// Reads to the end.
    Stays,
    /// Sends `cancel` after so long.
    Cancels(Duration),
    /// Drops the RPC after so long.
    Vanishes(Duration),
}

/// One client.
#[derive(Clone, Debug)]
pub struct Visit {
    /// From the beginning of the run.
    pub after: Duration,
    pub wish: Wish,
    pub manner: Manner,
}

/// What became of it.
#[derive(Debug)]
pub struct Outcome {
    pub wish: Wish,
    pub manner: Manner,
    /// `None`: the client left before there was a generation.
    pub ledger: Option<Ledger>,
    /// `None`: committed.
    pub class: Option<VerdictClass>,
    /// What it was told to wait for: the reason, and the budget's name.
    pub waits: Vec<(Reason, String)>,
}

/// The start that asks for `wish`.
fn start(wish: &Wish) -> Start {
    let mut conversation = conversation(&wish.prompt());
    conversation.sampling = Some(Sampling {
        max_output_tokens: Some(u32::try_from(wish.words).unwrap()),
        ..Sampling::default()
    });
    Start {
        route: "default".to_owned(),
        request_id: format!("{}-{}", wish.tenant, wish.number),
        labels: HashMap::from([("tenant".to_owned(), wish.tenant.to_owned())]),
        input: Some(Input::Conversation(conversation)),
        ..Start::default()
    }
}

/// All visits, spread over `channels`; in the order of the visits.
pub async fn play(channels: &[Channel], visits: Vec<Visit>) -> Vec<Outcome> {
    let begun = Instant::now();
    let mut clients = JoinSet::new();
    for (index, visit) in visits.into_iter().enumerate() {
        let channel = channels[index % channels.len()].clone();
        clients.spawn(async move {
            sleep_until(begun + visit.after).await;
            (index, client(&channel, visit).await)
        });
    }
    let mut outcomes = clients.join_all().await;
    outcomes.sort_unstable_by_key(|(index, _)| *index);
    outcomes.into_iter().map(|(_, outcome)| outcome).collect()
}

async fn client(channel: &Channel, visit: Visit) -> Outcome {
    let Visit { wish, manner, .. } = visit;
    let start = start(&wish);
    let request_id = start.request_id.clone();
    let mut rpc = rpc::open(channel, None).await;
    rpc.send(generate(start));
    match manner {
        Manner::Stays => read(&mut rpc).await,
        Manner::Cancels(after) => {
            if timeout(after, read(&mut rpc)).await.is_err() {
                rpc.send_late(cancel("changed its mind"));
                read(&mut rpc).await;
            }
        }
        Manner::Vanishes(after) => {
            if timeout(after, read(&mut rpc)).await.is_err() {
                let seen = account(wish.clone(), manner, &rpc);
                rpc.vanish();
                sleep(LATER).await;
                let mut again = rpc::open(channel, None).await;
                again.send(attach_by_request(&request_id));
                read(&mut again).await;
                return Outcome {
                    waits: seen.waits,
                    ..account(wish, manner, &again)
                };
            }
        }
    }
    account(wish, manner, &rpc)
}

/// Reads to the end.
async fn read(rpc: &mut Rpc) {
    while rpc.next().await.is_some() {}
}

fn account(wish: Wish, manner: Manner, rpc: &Rpc) -> Outcome {
    let mut waits = Vec::new();
    let (mut ledger, mut class) = (None, None);
    for frame in rpc.frames.iter().filter_map(|frame| frame.frame.as_ref()) {
        match frame {
            Frame::Waiting(waiting) => waits.push((waiting.reason(), waiting.budget.clone())),
            Frame::Committed(committed) => ledger = committed.ledger.clone(),
            Frame::Failed(failed) => {
                ledger = failed.ledger.clone();
                class = failed.verdict.as_ref().map(|verdict| verdict.class());
            }
            _ => {}
        }
    }
    Outcome {
        wish,
        manner,
        ledger,
        class,
        waits,
    }
}
