//! Drives one generation on a virtual clock, as the real driver would, and records what it says.

use std::time::Duration;

use redrive::{
    proto::{
        Delivery, Failed, FinishReason, GenerateResponse, Ledger, Usage, generate_response::Frame,
        waiting::Reason,
    },
    protocol::{self, Delta},
    recovery::{
        Command, Event, FollowUp, Generation, Next, Observation, Params, Takes, Time, Upstream,
        Wait,
    },
    verdict::{Denied, Failure},
};

use super::{
    fixtures::{Shared, at, commons},
    show::show_all,
};

/// One physical request, as the driver was told to make it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Send {
    pub attempt: u32,
    pub target: usize,
    pub credential: Option<usize>,
    pub at: Time,
    /// What the model is told of an answer that was rejected.
    pub hint: Option<String>,
    /// What it asked for, if that was not the original request.
    pub follow_up: Option<FollowUp>,
}

/// A generation and its surroundings.
pub struct Script {
    pub now: Time,
    pub commons: Shared,
    pub generation: Generation,
    pub sends: Vec<Send>,
    /// Every command that is not an observation.
    pub commands: Vec<Command>,
    /// What the gate rejected, and what became of it.
    pub rejections: Vec<String>,
    pub frames: Vec<GenerateResponse>,
    /// Whether the client takes frames as soon as they are there.
    pub reads: bool,
    /// What the newest reservation may go with, and takes.
    pub asked: (Vec<usize>, Takes),
    /// Whether slot and lease are there as soon as they are asked for.
    pub slots: bool,
    rpc: u64,
}

impl Script {
    /// A started generation of its own.
    pub fn start(params: Params) -> Self {
        Self::start_at(at(0), params, &commons())
    }

    /// A started generation among others.
    pub fn start_at(now: Time, params: Params, commons: &Shared) -> Self {
        let mut script = Self::new(now, params, commons);
        script.handle(Event::Start);
        script
    }

    /// One that was not started.
    pub fn new(now: Time, params: Params, commons: &Shared) -> Self {
        let generation = Generation::new(now, params, &**commons).unwrap();
        Self {
            now,
            commons: commons.clone(),
            generation,
            sends: Vec::new(),
            commands: Vec::new(),
            rejections: Vec::new(),
            frames: Vec::new(),
            reads: true,
            asked: (Vec::new(), Takes::Whole),
            slots: true,
            rpc: 1,
        }
    }

    /// One input, then every output.
    pub fn handle(&mut self, event: Event<'_>) {
        self.generation.handle(self.now, event, &*self.commons);
        let mut reserved = false;
        while let Some(command) = self.generation.poll_command() {
            match &command {
                Command::Observe(Observation::GateRejected { reason, then }) => {
                    let line = format!("{} {}", reason.as_str(), then.as_str());
                    self.rejections.push(line);
                    continue;
                }
                Command::Observe(_) => continue,
                Command::Reserve {
                    credentials, takes, ..
                } => {
                    self.asked = (credentials.clone(), *takes);
                    reserved = true;
                }
                Command::Send {
                    attempt,
                    target,
                    credential,
                    hint,
                    follow_up,
                } => self.sends.push(Send {
                    attempt: *attempt,
                    target: *target,
                    credential: *credential,
                    at: self.now,
                    hint: hint.as_ref().map(|hint| hint.as_str().to_owned()),
                    follow_up: follow_up.as_deref().cloned(),
                }),
                Command::Answered | Command::Penalise { .. } | Command::Settle(_) => {}
                Command::Abort { .. } | Command::Finish => reserved = false,
            }
            self.commands.push(command);
        }
        if reserved && self.slots {
            self.reserved();
        }
        if self.reads {
            self.read();
        }
    }

    /// Slot and lease are there, for the first credential that was offered.
    pub fn reserved(&mut self) {
        let credential = *self.asked.0.first().expect("a reservation");
        self.handle(Event::Reserved { credential });
    }

    /// A slot has to be waited for.
    pub fn queued(&mut self) {
        self.handle(Event::Waiting(Wait {
            reason: Reason::Connection,
            denied: None,
            expected: None,
        }));
    }

    /// A lease has to be waited for.
    pub fn held_by(&mut self, budget: &str, expected: Option<Duration>) {
        self.handle(Event::Waiting(Wait {
            reason: Reason::Budget,
            denied: Some(Denied {
                budget: budget.into(),
                limit: "requests: 1 in 1m".into(),
            }),
            expected,
        }));
    }

    /// The client takes all that is there.
    pub fn read(&mut self) {
        while self.read_one() {}
    }

    /// The client takes one frame; `false` if there was none.
    pub fn read_one(&mut self) -> bool {
        let Next::Frame(frame) = self.generation.next_frame(self.now, self.rpc) else {
            return false;
        };
        assert_eq!(frame.sequence, self.sequence() + 1);
        assert!(!self.has_terminal(), "a frame after the terminal one");
        self.frames.push(*frame);
        true
    }

    fn has_terminal(&self) -> bool {
        match self.frames.last().and_then(|frame| frame.frame.as_ref()) {
            Some(Frame::Committed(committed)) => committed.r#final,
            Some(Frame::Failed(_)) => true,
            _ => false,
        }
    }

    /// What is told to the driver when it asks for a frame and there is none.
    pub fn next(&mut self) -> Next {
        self.generation.next_frame(self.now, self.rpc)
    }

    /// Time passes; what falls due on the way is handed in at its time.
    pub fn pass(&mut self, time: Duration) {
        let end = self.now + time;
        let mut at_once = 0;
        while let Some(due) = self.generation.poll_timeout().filter(|due| *due <= end) {
            at_once = if due <= self.now { at_once + 1 } else { 0 };
            assert!(at_once < 8, "a time-out that is due again and again");
            self.now = self.now.max(due);
            self.handle(Event::TimerDue);
        }
        self.now = end;
    }

    /// Time passes until the next request is made or the generation ends.
    pub fn next_send(&mut self) {
        let sends = self.sends.len();
        while self.sends.len() == sends && !self.generation.has_ended() {
            let due = self
                .generation
                .poll_timeout()
                .expect("something to wait for");
            self.pass(due.since(self.now));
        }
    }

    fn upstream(&mut self, signal: Upstream<'_>) {
        let attempt = self.sends.last().expect("an attempt").attempt;
        self.upstream_of(attempt, signal);
    }

    /// A signal of a certain attempt's exchange.
    pub fn upstream_of(&mut self, attempt: u32, signal: Upstream<'_>) {
        self.handle(Event::Upstream { attempt, signal });
    }

    /// The request was handed over.
    pub fn sent(&mut self) {
        self.upstream(Upstream::Sent);
    }

    /// The request was handed over and answered with a 200.
    pub fn open(&mut self) {
        self.sent();
        self.upstream(Upstream::Head {
            status: 200,
            request_id: None,
        });
    }

    pub fn decoded(&mut self, event: protocol::Event<'_>) {
        self.upstream(Upstream::Decoded(event));
    }

    pub fn delta(&mut self, delta: Delta<'_>) {
        self.decoded(protocol::Event::Delta(delta));
    }

    pub fn text(&mut self, text: &str) {
        self.delta(Delta::Text(text));
    }

    pub fn keepalive(&mut self) {
        self.decoded(protocol::Event::Keepalive { content: false });
    }

    pub fn usage(&mut self, output_tokens: u64) {
        self.decoded(protocol::Event::Usage(Usage {
            output_tokens,
            ..Usage::default()
        }));
    }

    pub fn tool_call(&mut self, call: u32, name: &str, arguments: &str) {
        let id = format!("id{call}");
        self.delta(Delta::ToolCallStart {
            call,
            id: &id,
            name,
        });
        if !arguments.is_empty() {
            self.delta(Delta::ToolArguments {
                call,
                fragment: arguments,
            });
        }
    }

    pub fn finish(&mut self, reason: FinishReason) {
        self.decoded(protocol::Event::Finish {
            reason,
            native: "native",
        });
    }

    /// `[DONE]` of a dialect in which it completes nothing.
    pub fn done(&mut self) {
        self.decoded(protocol::Event::End { completes: false });
    }

    pub fn end(&mut self) {
        self.upstream(Upstream::End);
    }

    pub fn fail(&mut self, failure: Failure) {
        self.upstream(Upstream::Failed(failure));
    }

    /// The whole response: head, one text, usage, finish reason, `[DONE]`.
    pub fn answer(&mut self, text: &str) {
        self.open();
        self.text(text);
        self.finish(FinishReason::Stop);
        self.usage(1);
        self.done();
    }

    pub fn cancel(&mut self) {
        self.handle(Event::Cancel { reason: "" });
    }

    pub fn effects(&mut self, through_sequence: u64) {
        self.handle(Event::Effects { through_sequence });
    }

    /// Another RPC takes over; what the first one got is kept in `frames` no longer.
    pub fn attach(&mut self, delivery: Delivery) {
        self.rpc += 1;
        self.frames.clear();
        self.handle(Event::Attach {
            delivery,
            caller_deadline: None,
        });
    }

    /// The frames so far, one line each; the next call begins after them.
    pub fn told(&self) -> Vec<String> {
        show_all(&self.frames)
    }

    /// The last frame.
    pub fn last(&self) -> String {
        self.told().last().cloned().unwrap_or_default()
    }

    /// The sequence number of the newest frame.
    pub fn sequence(&self) -> u64 {
        self.frames.last().map_or(0, |frame| frame.sequence)
    }

    /// How many requests were made.
    pub fn sent_count(&self) -> usize {
        self.sends.len()
    }

    /// The targets of all requests.
    pub fn visited(&self) -> Vec<usize> {
        self.sends.iter().map(|send| send.target).collect()
    }

    /// When the requests were made, in seconds.
    pub fn sent_at(&self) -> Vec<u64> {
        self.sends
            .iter()
            .map(|send| send.at.since_origin().as_secs())
            .collect()
    }

    /// The terminal frame's ledger.
    pub fn ledger(&self) -> Ledger {
        match self.frames.last().and_then(|frame| frame.frame.clone()) {
            Some(Frame::Committed(frame)) => frame.ledger,
            Some(Frame::Failed(frame)) => frame.ledger,
            _ => None,
        }
        .expect("a terminal frame with a ledger")
    }

    /// The terminal frame, if the generation failed.
    pub fn failed(&self) -> Failed {
        match self.frames.last().and_then(|frame| frame.frame.clone()) {
            Some(Frame::Failed(frame)) => frame,
            other => panic!("not failed: {other:?}"),
        }
    }
}
