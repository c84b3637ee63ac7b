//! One generation with its driver, provider and client, and the promises checked at every step.

use std::{
    cell::RefCell,
    collections::{BTreeSet, HashMap},
    time::Duration,
};

use redrive::{
    proto::{Mode, waiting::Reason},
    recovery::{Command, Commons, Event, Generation, Observation, Params, Takes, Time, Wait},
    verdict::{Class, Failure, Origin, Stage},
};

use super::{
    gate_side::Gated, ledger::Attempt, op::Op, places::Places, provider::Stream, reader::Reader,
    rules::Rules, shared::Shared, silence::Silence,
};

/// The exchange in flight.
#[derive(Debug)]
pub struct Exchange {
    pub target: usize,
    pub credential: usize,
    pub sent: bool,
    /// Its lease is.
    pub settled: bool,
    pub head: bool,
    /// Its response is stored.
    pub stores: bool,
    /// It reads a stored response on.
    pub resumes: bool,
}

/// A generation under watch.
pub struct World {
    pub(super) params: Params,
    pub(super) generation: Generation,
    pub(super) rpc: u64,
    pub(super) reader: Option<Reader>,
    pub(super) stream: Stream,
    pub(super) exchange: Option<Exchange>,
    pub(super) silence: Option<Silence>,
    pub(super) places: Places,
    /// The target that is reserved, and the credentials it may go with.
    pub(super) asked: Option<(usize, Vec<usize>)>,
    /// What was asked for is the rest of an answer.
    pub(super) continues: bool,
    /// The credential that was granted.
    pub(super) granted: Option<usize>,
    /// What stands in the way of what is asked for.
    pub(super) held: Option<Reason>,
    /// The engine of a budget granted nothing, at any time.
    pub(super) was_away: bool,
    /// The lease of the last attempt was cut.
    pub(super) is_cut: bool,
    /// Until when a budget holds a target back, and the credentials that it was asked with.
    pub(super) denied: HashMap<usize, (Option<Time>, Vec<usize>)>,
    /// Where the last request went.
    pub(super) target: usize,
    pub(super) attempts: Vec<Attempt>,
    pub(super) left: u32,
    /// How the newest attempt came about.
    pub(super) mode: Mode,
    /// What it takes of budgets.
    pub(super) takes: Option<Takes>,
    /// The gate's rules; none: it is off.
    pub(super) rules: Option<Rules>,
    pub(super) gate: Gated,
    pub(super) deadline: Time,
    pub(super) permanent: Vec<usize>,
    pub(super) not_before: HashMap<usize, Time>,
    pub(super) failures: HashMap<usize, u32>,
    pub(super) supplied: Vec<Duration>,
    /// The failure that is being handed in came from the provider, not from a timer.
    pub(super) is_told: bool,
    /// It is an answer's head.
    pub(super) is_head: bool,
    /// Attempts whose output is void.
    pub(super) void: BTreeSet<u32>,
    /// How often each block became void alone.
    pub(super) versions: HashMap<usize, u32>,
    /// Where nothing is continued any more.
    pub(super) refused: BTreeSet<usize>,
    pub(super) claimed: bool,
    pub(super) confirmed: bool,
    pub(super) cancelled: bool,
    /// The earliest time at which it must have ended for a reason that is not the provider's.
    pub(super) must_end: Option<Time>,
    pub(super) drains: Option<Time>,
    started: bool,
    ends: usize,
    pub(super) ended_at: Time,
    /// What happened that a test would want to have happened.
    pub landmarks: BTreeSet<&'static str>,
}

pub(super) type Access = RefCell<Commons>;

impl World {
    pub fn new(
        now: Time,
        params: Params,
        rules: Option<Rules>,
        commons: &Access,
        shared: &mut Shared,
    ) -> Self {
        let generation = Generation::new(now, params.clone(), commons).unwrap();
        shared.join(now, &params);
        Self {
            generation,
            rpc: 1,
            reader: Some(Reader::new(params.delivery, &HashMap::new())),
            stream: Stream::default(),
            exchange: None,
            silence: None,
            places: Places::default(),
            asked: None,
            continues: false,
            granted: None,
            held: None,
            was_away: false,
            is_cut: false,
            denied: HashMap::new(),
            target: 0,
            attempts: Vec::new(),
            left: params.policy.max_attempts,
            mode: Mode::Unspecified,
            takes: None,
            rules,
            gate: Gated::default(),
            deadline: now + params.policy.deadline,
            permanent: Vec::new(),
            not_before: HashMap::new(),
            failures: HashMap::new(),
            supplied: Vec::new(),
            is_told: false,
            is_head: false,
            void: BTreeSet::new(),
            versions: HashMap::new(),
            refused: BTreeSet::new(),
            claimed: false,
            confirmed: false,
            cancelled: false,
            must_end: None,
            drains: None,
            started: false,
            ends: 0,
            ended_at: now,
            landmarks: BTreeSet::new(),
            params,
        }
    }

    pub fn start(&mut self, now: Time, commons: &Access, shared: &mut Shared) {
        self.started = true;
        self.handle(now, Event::Start, commons, shared);
    }

    pub fn due(&self) -> Option<Time> {
        self.generation.poll_timeout()
    }

    pub fn timer(&mut self, now: Time, commons: &Access, shared: &mut Shared) {
        self.handle(now, Event::TimerDue, commons, shared);
    }

    /// Carries out one random event.
    pub fn act(&mut self, now: Time, op: Op, commons: &Access, shared: &mut Shared) {
        let provider_acts = matches!(
            op,
            Op::Sent | Op::Says(_) | Op::Answers(_) | Op::End | Op::Fails(..)
        );
        if provider_acts && self.asked.is_some() {
            self.grant(now, 0, commons, shared);
        }
        match op {
            Op::Pass(_) | Op::Jump(_) => {}
            Op::Spurious => self.timer(now, commons, shared),
            Op::Slot => self.grant(now, 0, commons, shared),
            Op::Other(index) => self.grant(now, usize::from(index) + 1, commons, shared),
            Op::Queued if self.asked.is_some() => {
                let wait = Wait {
                    reason: Reason::Connection,
                    denied: None,
                    expected: None,
                };
                self.held = Some(wait.reason);
                self.handle(now, Event::Waiting(wait), commons, shared);
            }
            Op::Held(expected) => self.hold_back(now, Reason::Budget, expected, commons, shared),
            Op::Away(expected) => {
                self.hold_back(now, Reason::LimiterUnavailable, expected, commons, shared);
            }
            Op::Cut => self.cut(now, commons, shared),
            Op::Never => self.refuse(now, commons, shared),
            Op::Refused if self.asked.is_some() => {
                let full = Failure::new(Class::NoTarget, Origin::Us, Stage::Admission, "full");
                self.handle(now, Event::ReservationRefused(full), commons, shared);
            }
            Op::Queued | Op::Refused => {}
            Op::Sent => self.hand_over(now, false, commons, shared),
            Op::Says(says) => self.say(now, says, commons, shared),
            Op::Answers(words) => {
                for says in words {
                    self.say(now, *says, commons, shared);
                }
            }
            Op::Late(says) => self.say_late(now, says, commons),
            Op::End => self.end_response(now, commons, shared),
            Op::Fails(class, wait) => self.fail(now, class, wait, commons, shared),
            Op::Reads(count) => self.read(now, usize::from(count)),
            Op::Effects(back) => self.effects(now, back, commons, shared),
            Op::Cancel => self.cancel(now, Event::Cancel { reason: "" }, commons, shared),
            Op::Lost => self.lose(now, commons, shared),
            Op::Attach(delivery) => self.attach(now, delivery, commons, shared),
            Op::Drain(after) => {
                let until = now + Duration::from_millis(after);
                self.drains = Some(self.drains.map_or(until, |drains| drains.min(until)));
                self.handle(now, Event::Drain { until }, commons, shared);
            }
            Op::OutOfMemory => self.cancel(now, Event::OutOfMemory, commons, shared),
            Op::Crash => self.cancel(now, Event::Crashed, commons, shared),
        }
    }

    pub(super) fn handle(
        &mut self,
        now: Time,
        event: Event<'_>,
        commons: &Access,
        shared: &mut Shared,
    ) {
        let had_ended = self.generation.has_ended();
        self.generation.handle(now, event, commons);
        while let Some(command) = self.generation.poll_command() {
            assert!(
                !had_ended,
                "promise 7: a command after the end: {command:?}"
            );
            self.carry_out(now, command, shared);
        }
        let has_ended = self.generation.has_ended();
        assert_eq!(self.ends, usize::from(has_ended), "promise 7: one end");
        if has_ended && !had_ended {
            self.note_end(now, shared);
        }
        self.check_rejection(now, shared);
        if has_ended {
            assert!(
                self.exchange.is_none(),
                "promise 8: an exchange that outlives its generation"
            );
            assert!(
                self.asked.is_none(),
                "a reservation that outlives its generation"
            );
        } else {
            self.held = self.held.filter(|_| self.asked.is_some());
            self.check_time_outs();
        }
        assert!(
            self.generation.transcript_bytes() <= 2 * self.params.max_message_bytes + 100,
            "promise 13: the message outgrew its bound"
        );
        if let (Some(key), false) = (&self.params.scope, has_ended) {
            let left = commons.borrow().scopes.allowance(key).map(|a| a.left);
            let account = shared.scope(&self.params).map(|scope| scope.left);
            assert_eq!(left, account, "promise 1: the scope's allowance");
        }
    }

    /// What must happen by itself has a time-out that is not too late.
    fn check_time_outs(&self) {
        if !self.started {
            return;
        }
        let silence = self.exchange.as_ref().and(self.silence.as_ref());
        let admission = self.exchange.is_none().then_some(self.deadline);
        let latest = [
            silence.and_then(Silence::due),
            admission,
            self.must_end,
            self.drains,
        ];
        let Some(latest) = latest.into_iter().flatten().min() else {
            return;
        };
        let due = self.due();
        assert!(
            due.is_some_and(|due| due <= latest),
            "a time-out at {due:?} that should come by {latest:?}"
        );
    }

    fn carry_out(&mut self, now: Time, command: Command, shared: &mut Shared) {
        match command {
            Command::Reserve {
                target,
                credentials,
                takes,
            } => self.ask(now, target, credentials, takes, shared),
            Command::Send {
                attempt,
                target,
                credential,
                hint,
                follow_up,
            } => {
                self.check_hint(target, hint.as_ref(), follow_up.as_deref(), shared);
                self.go_on(attempt, target, follow_up.as_deref());
                self.send(now, attempt, target, credential.unwrap_or(0), shared);
            }
            Command::Answered => {
                let exchange = self.exchange.as_ref().expect("a lease that is answered");
                assert!(exchange.sent, "nothing left, and yet it is answered");
            }
            Command::Penalise { wait } => {
                assert!(self.exchange.is_some(), "a penalty without a lease");
                assert_eq!(self.supplied.last(), Some(&wait), "promise 9: invented");
                self.landmarks.insert("penalty");
            }
            Command::Settle(_) => {
                let exchange = self.exchange.as_mut().expect("a lease to settle");
                assert!(exchange.sent, "nothing left, and yet it costs");
                assert!(!std::mem::replace(&mut exchange.settled, true), "twice");
            }
            Command::Abort { .. } => {
                self.check_settled();
                self.gate.check_abort(self.exchange.is_some());
                self.exchange = None;
                self.asked = None;
            }
            Command::Finish => {
                self.check_settled();
                assert!(self.exchange.take().is_some());
            }
            Command::Observe(Observation::Ended) => self.ends += 1,
            Command::Observe(Observation::PreviewReset {
                attempt,
                block,
                class,
            }) => {
                self.gate.check_reset(class, block);
                assert!(
                    !self.confirmed,
                    "promise 6: a reset after confirmed effects"
                );
                if block.is_none() {
                    self.void.insert(attempt);
                }
            }
            Command::Observe(Observation::AttemptStarted { mode, .. }) => self.mode = mode,
            Command::Observe(Observation::GateRejected { reason, then }) => {
                self.rejected(now, reason, then, shared);
            }
            Command::Observe(Observation::Waiting {
                reason: Reason::Backoff,
                expected: Some(expected),
                ..
            }) => self.check_backoff(now, expected, shared),
            Command::Observe(Observation::AttemptEnded(entry)) => {
                self.attempt_ended(now, &entry, shared);
            }
            Command::Observe(_) => {}
        }
    }
}
