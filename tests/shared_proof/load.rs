//! Clients that ask in bursts, at every pod.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use redrive::{
    proto::{
        GenerateResponse, Ledger, Sampling, Start, VerdictClass, generate_response::Frame,
        generation_service_client::GenerationServiceClient, start::Input, waiting::Reason,
    },
    simulator::Simulator,
};
use tokio::{
    sync::mpsc,
    task::JoinSet,
    time::{Instant, sleep_until},
};
use tokio_stream::wrappers::ReceiverStream;
use tokio_util::sync::CancellationToken;
use tonic::{Request, Status, transport::Channel};

use super::{
    fleet::Fleet,
    provider::Wish,
    support::{
        cancel,
        check::{Seen, check},
        conversation, generate, request,
    },
};

/// Bursts begin at all pods at once, so often.
const BURST: Duration = Duration::from_millis(500);

/// What clients ask for, and how many they are.
#[derive(Clone, Debug)]
pub struct Clients {
    pub route: &'static str,
    pub per_pod: usize,
    /// Words of an answer, and the time before each.
    pub words: usize,
    pub pace: Duration,
    /// The deadline of a call.
    pub deadline: Option<Duration>,
    pub stays: Stays,
}

/// When a client asks again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stays {
    /// Not.
    Once,
    /// At once.
    Always,
    /// At once, or with the next burst.
    InBursts,
}

impl Clients {
    pub fn new(route: &'static str) -> Self {
        Self {
            route,
            per_pod: 4,
            words: 3,
            pace: Duration::from_millis(30),
            deadline: None,
            stays: Stays::InBursts,
        }
    }
}

/// What became of one call.
#[derive(Debug)]
pub struct Call {
    pub pod: usize,
    pub wish: Wish,
    /// By the clock of the provider's log.
    pub began: Duration,
    pub ended: Duration,
    pub ledger: Option<Ledger>,
    pub class: Option<VerdictClass>,
    pub waits: Vec<(Reason, String)>,
    /// Why it was never told how it ended.
    pub untold: Option<Status>,
}

impl Call {
    pub fn committed(&self) -> bool {
        self.class.is_none() && self.untold.is_none()
    }
}

pub struct Load {
    clients: JoinSet<Vec<Call>>,
    stop: CancellationToken,
}

impl Load {
    pub(super) fn start(
        fleet: &Fleet,
        pods: impl IntoIterator<Item = usize>,
        what: Clients,
    ) -> Self {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let stop = CancellationToken::new();
        let begun = Instant::now();
        let mut clients = JoinSet::new();
        for pod in pods {
            for place in 0..what.per_pod {
                let client = Client {
                    pod,
                    channel: fleet.pods[pod].channel.clone(),
                    clock: Arc::clone(&fleet.provider.simulator),
                    stop: stop.clone(),
                    what: what.clone(),
                };
                clients.spawn(async move {
                    let mut calls = Vec::new();
                    for turn in 0.. {
                        // Every other time it waits for the others.
                        if what.stays == Stays::InBursts && (turn + place) % 2 == 0 {
                            let next = begun.elapsed().as_micros() / BURST.as_micros() + 1;
                            let next = begun + BURST * u32::try_from(next).unwrap();
                            client.stop.run_until_cancelled(sleep_until(next)).await;
                        }
                        if client.stop.is_cancelled() {
                            break;
                        }
                        let call = client.call(NEXT.fetch_add(1, Ordering::Relaxed)).await;
                        let is_over = call.untold.is_some() || what.stays == Stays::Once;
                        calls.push(call);
                        if is_over {
                            break;
                        }
                    }
                    calls
                });
            }
        }
        Self { clients, stop }
    }

    /// Clients that wait or read cancel; what became of all calls.
    pub async fn stop(self) -> Vec<Call> {
        self.stop.cancel();
        self.ended().await
    }

    /// What became of the calls of clients that do not stay.
    pub async fn ended(self) -> Vec<Call> {
        self.clients
            .join_all()
            .await
            .into_iter()
            .flatten()
            .collect()
    }
}

struct Client {
    pod: usize,
    channel: Channel,
    clock: Arc<Simulator>,
    stop: CancellationToken,
    what: Clients,
}

impl Client {
    async fn call(&self, number: usize) -> Call {
        let wish = Wish {
            tenant: self.what.route,
            number,
            words: self.what.words,
            pace: self.what.pace,
        };
        let began = self.clock.now();
        let mut conversation = conversation(&wish.prompt());
        conversation.sampling = Some(Sampling {
            max_output_tokens: Some(u32::try_from(wish.words).unwrap()),
            ..Sampling::default()
        });
        let start = Start {
            route: self.what.route.to_owned(),
            request_id: format!("call-{number}"),
            input: Some(Input::Conversation(conversation)),
            ..Start::default()
        };
        let (frames, end) = self.frames(start).await;
        let mut call = Call {
            pod: self.pod,
            wish,
            began,
            ended: self.clock.now(),
            ledger: None,
            class: None,
            waits: Vec::new(),
            untold: None,
        };
        let mut is_whole = false;
        for frame in frames.iter().filter_map(|frame| frame.frame.as_ref()) {
            match frame {
                Frame::Waiting(wait) => call.waits.push((wait.reason(), wait.budget.clone())),
                Frame::Committed(committed) => {
                    is_whole = committed.r#final;
                    call.ledger = committed.ledger.clone();
                }
                Frame::Failed(failed) => {
                    is_whole = true;
                    call.ledger = failed.ledger.clone();
                    call.class = failed.verdict.as_ref().map(|verdict| verdict.class());
                }
                _ => {}
            }
        }
        match end {
            Err(status) if !is_whole => call.untold = Some(status),
            end => check(&frames, Seen::Ended(end.err().as_ref())),
        }
        call
    }

    /// All frames of one call, and its status.
    async fn frames(&self, start: Start) -> (Vec<GenerateResponse>, Result<(), Status>) {
        let mut client = GenerationServiceClient::new(self.channel.clone());
        let (requests, outbound) = mpsc::channel(2);
        let _ = requests.send(request(generate(start))).await;
        let mut call = Request::new(ReceiverStream::new(outbound));
        if let Some(deadline) = self.what.deadline {
            call.set_timeout(deadline);
        }
        let mut frames = Vec::new();
        let mut responses = match client.generate(call).await {
            Ok(responses) => responses.into_inner(),
            Err(status) => return (frames, Err(status)),
        };
        let mut cancelled = false;
        loop {
            tokio::select! {
                message = responses.message() => match message {
                    Ok(Some(frame)) => frames.push(frame),
                    Ok(None) => return (frames, Ok(())),
                    Err(status) => return (frames, Err(status)),
                },
                () = self.stop.cancelled(), if !cancelled => {
                    cancelled = true;
                    // It may be at its end already.
                    let _ = requests.send(request(cancel("the load ends"))).await;
                }
            }
        }
    }
}
