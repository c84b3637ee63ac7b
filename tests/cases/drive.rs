//! The calls of a case, and what its client does.

use std::{sync::Arc, time::Duration};

use redrive::{
    proto::{
        Delivery, Effects, GenerateRequest, GenerateResponse, NativeBody, Start, generate_request,
        generate_response::Frame, generation_service_client::GenerationServiceClient, start::Input,
    },
    simulator::{End, Received, Simulator},
};
use tokio::{
    sync::mpsc,
    task::JoinSet,
    time::{Instant, sleep, sleep_until, timeout},
};
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Code, Request, Streaming, metadata::MetadataValue, transport::Channel};

use crate::{
    case::{Action, Case, Shown},
    limits, names,
    outcome::{Call, Outcome},
    provider::{Provider, body_of, call_of},
    sidecar::Sidecar,
};

/// No case takes as long.
const LIMIT: Duration = Duration::from_secs(60);

/// How long closings may take to arrive.
const CLOSINGS: Duration = Duration::from_millis(1300);

/// The number of a call that is not among the case's own.
pub const EXTRA_CALL: usize = 90;

/// Plays it.
pub async fn drive(case: &Case, provider: &Provider, sidecar: &Sidecar) -> Outcome {
    let channel = sidecar.connect().await;
    let begun = Instant::now();
    let calls = run_calls(case, provider, sidecar, &channel);
    let signals = run_signals(case, sidecar, &channel, begun);
    let (calls, ()) = timeout(LIMIT, async { tokio::join!(calls, signals) })
        .await
        .expect("the case does not end");
    settle(case, &provider.simulator, &calls).await;
    let requests = provider.simulator.received();
    Outcome {
        calls,
        requests,
        scripts: provider.scripts.clone(),
    }
}

/// All calls: of a sequence one after the other, else all at once.
async fn run_calls(
    case: &Case,
    provider: &Provider,
    sidecar: &Sidecar,
    channel: &Channel,
) -> Vec<Call> {
    let mut calls = Vec::new();
    let one = [crate::case::Requests::default()];
    let requests = if case.input.requests.is_empty() {
        &one[..]
    } else {
        &case.input.requests
    };
    for requests in requests {
        assert_eq!(requests.at_ms, 0, "{}: a time that is not kept", case.id);
        let count = requests.count.unwrap_or(1);
        if !requests.sequential && count > 1 {
            let threads = requests.threads.unwrap_or(1);
            calls.extend(at_once(case, provider, sidecar, calls.len(), count, threads).await);
            continue;
        }
        for turn in 0..count {
            if turn > 0 {
                sleep(Duration::from_millis(requests.gap_ms)).await;
            }
            let index = calls.len();
            calls.push(run_call(case, &provider.simulator, channel.clone(), index).await);
        }
    }
    calls
}

/// `count` calls at the same time, over as many connections as there are `threads`.
async fn at_once(
    case: &Case,
    provider: &Provider,
    sidecar: &Sidecar,
    first: usize,
    count: usize,
    threads: usize,
) -> Vec<Call> {
    let mut channels = Vec::new();
    for _ in 0..threads {
        channels.push(sidecar.connect().await);
    }
    let mut running = JoinSet::new();
    for (index, channel) in (first..first + count).zip(channels.iter().cycle()) {
        let (case, simulator) = (case.clone(), Arc::clone(&provider.simulator));
        let channel = channel.clone();
        running.spawn(async move { run_call(&case, &simulator, channel, index).await });
    }
    let mut calls = running.join_all().await;
    calls.sort_by_key(|call| call.index);
    calls
}

/// Call `index`, to its end or until its client leaves.
pub async fn run_call(case: &Case, simulator: &Simulator, channel: Channel, index: usize) -> Call {
    let begun = Instant::now();
    let mut call = Call {
        index,
        ..Call::default()
    };
    let metadata = case
        .client_actions
        .iter()
        .flat_map(|action| &action.metadata);
    let (stream, to_sidecar) = open(case, channel, index, metadata).await;
    let mut reader = Reader {
        stream,
        acts: case
            .client_actions
            .iter()
            .any(Action::takes_effect)
            .then_some(to_sidecar),
        paused: Vec::new(),
    };
    let leaves = leaves(case, index);
    let arrived = |request: &Received| call_of(request) == Some(index);
    let leave = async {
        match leaves {
            Some(at) => sleep_until(begun + at).await,
            None => std::future::pending().await,
        }
        while case.leaves_in_its_midst() && !simulator.received().iter().any(arrived) {
            sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::pin!(leave);
    loop {
        let next = tokio::select! {
            biased;
            () = &mut leave => {
                call.left = Some(simulator.now());
                break;
            }
            next = reader.stream.message() => next,
        };
        match next {
            Ok(Some(response)) => {
                call.times.push(simulator.now());
                reader.act(&response).await;
                let pause = reader.pause(&case.client_actions, &response, begun.elapsed());
                call.frames.push(response);
                sleep(pause).await;
            }
            Ok(None) => break,
            Err(status) => {
                call.status = Some(status);
                break;
            }
        }
    }
    drop(reader);
    call.ended = simulator.now();
    call
}

/// How long after its beginning the client of call `index` leaves.
fn leaves(case: &Case, index: usize) -> Option<Duration> {
    if case.leaves_in_its_midst() {
        let millis = case.input.requests_of(index)?.client_cancel_at_ms?;
        return Some(Duration::from_millis(millis));
    }
    let mut actions = case.client_actions.iter();
    let leaves = actions.find(|action| action.cancels()).and_then(Action::at);
    leaves.or_else(|| limits::looked_at(case))
}

struct Reader {
    stream: Streaming<GenerateResponse>,
    /// The way to the sidecar, while the client has yet to act on a delta.
    acts: Option<mpsc::Sender<GenerateRequest>>,
    /// Pauses that have been made.
    paused: Vec<usize>,
}

impl Reader {
    /// Acts on `response` if it is the first delta, and says so.
    async fn act(&mut self, response: &GenerateResponse) {
        if !matches!(response.frame, Some(Frame::Delta(_))) {
            return;
        }
        let Some(to_sidecar) = self.acts.take() else {
            return;
        };
        let effects = Effects {
            through_sequence: response.sequence,
        };
        let frame = GenerateRequest {
            frame: Some(generate_request::Frame::Effects(effects)),
        };
        to_sidecar.send(frame).await.unwrap();
    }

    /// How long to look away after `response`.
    fn pause(&mut self, actions: &[Action], response: &GenerateResponse, at: Duration) -> Duration {
        let is_delta = matches!(response.frame, Some(Frame::Delta(_)));
        for (number, action) in actions.iter().enumerate() {
            let Some(pause) = action.pause_reading_ms else {
                continue;
            };
            let due = match action.after.as_deref() {
                None => action.at().is_some_and(|due| at >= due),
                Some("first Delta") => is_delta,
                Some(other) => panic!("a pause after {other}"),
            };
            if due && !self.paused.contains(&number) {
                self.paused.push(number);
                return Duration::from_millis(pause);
            }
        }
        Duration::ZERO
    }
}

async fn open(
    case: &Case,
    channel: Channel,
    index: usize,
    metadata: impl Iterator<Item = (&String, &String)>,
) -> (Streaming<GenerateResponse>, mpsc::Sender<GenerateRequest>) {
    let native = NativeBody {
        protocol: names::protocol(&case.protocol).0.into(),
        json: body_of(case, index).into(),
    };
    let requests = case.input.requests_of(index);
    let route = requests.and_then(|requests| requests.route.clone());
    let delivery = match requests.and_then(|requests| requests.delivery) {
        None => Delivery::Preview,
        Some(Shown::PreviewNoReset) => Delivery::PreviewNoReset,
        Some(Shown::CommittedOnly) => Delivery::CommittedOnly,
    };
    let start = Start {
        route: route.unwrap_or_else(|| "case".to_owned()),
        delivery: delivery.into(),
        input: Some(Input::Native(native)),
        ..Start::default()
    };
    let frame = GenerateRequest {
        frame: Some(generate_request::Frame::Start(start)),
    };
    let (to_sidecar, frames) = mpsc::channel(1);
    to_sidecar.send(frame).await.unwrap();
    let mut request = Request::new(ReceiverStream::new(frames));
    for (name, value) in metadata {
        let name = tonic::metadata::MetadataKey::from_bytes(name.as_bytes()).unwrap();
        request
            .metadata_mut()
            .insert(name, MetadataValue::try_from(value).unwrap());
    }
    let mut client = GenerationServiceClient::new(channel).max_decoding_message_size(4 << 20);
    let answer = client.generate(request).await.expect("response headers");
    (answer.into_inner(), to_sidecar)
}

/// SIGTERM and calls that come after it.
async fn run_signals(case: &Case, sidecar: &Sidecar, channel: &Channel, begun: Instant) {
    let mut actions: Vec<&Action> = case.client_actions.iter().collect();
    actions.sort_by_key(|action| action.at_ms);
    for action in actions {
        let due = begun + action.at().unwrap_or_default();
        if let Some(signal) = &action.signal {
            assert_eq!(signal, "TERM");
            sleep_until(due).await;
            sidecar.terminate();
        }
        if let Some(expected) = &action.new_call {
            assert_eq!(expected, "expect UNAVAILABLE with 0 sends");
            sleep_until(due).await;
            let none = std::iter::empty();
            let (mut stream, _) = open(case, channel.clone(), EXTRA_CALL, none).await;
            let status = loop {
                match stream.message().await {
                    Ok(Some(_)) => {}
                    Ok(None) => panic!("a new call went well while draining"),
                    Err(status) => break status,
                }
            };
            assert_eq!(status.code(), Code::Unavailable, "{status:?}");
        }
    }
}

/// Waits for closings to arrive, and after a cancel for what must not come.
pub async fn settle(case: &Case, simulator: &Simulator, calls: &[Call]) {
    let asked_wait = simulator
        .received()
        .iter()
        .any(|request| request.served.iter().any(|(name, _)| name == "retry-after"));
    let left = calls.iter().any(|call| call.left.is_some());
    let quiet = if left && asked_wait { 2500 } else { 150 };
    sleep(Duration::from_millis(quiet)).await;
    let open = |request: &Received| request.end.is_none();
    let closed = async {
        while simulator.received().iter().any(open) {
            sleep(Duration::from_millis(10)).await;
        }
    };
    let _ = timeout(CLOSINGS, closed).await;
    let late = simulator.received();
    assert!(
        late.iter().all(|request| request.end != Some(End::TimeUp)),
        "{}: a script ran out of time",
        case.id
    );
}
