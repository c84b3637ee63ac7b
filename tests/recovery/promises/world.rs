//! One generation with its driver, provider and client, and the promises checked at every step.

use std::{
    cell::RefCell,
    collections::{BTreeSet, HashMap},
    time::Duration,
};

use redrive::{
    proto::{Delivery, StoppedBy, VerdictClass},
    recovery::{Command, Commons, Event, Generation, Next, Observation, Params, Time, Upstream},
    verdict::{Class, Failure, Origin, Stage},
};

use super::{
    ledger::{self, Attempt},
    op::{Op, PERMANENT, Says},
    provider::{Stream, decoded},
    reader::{Claim, End, Reader},
};

/// What generations share, as the world sees it.
#[derive(Debug, Default)]
pub struct Shared {
    /// Until when a credential must not be used, on the provider's word.
    rests: HashMap<(usize, usize), Time>,
    /// What is left of the one scope.
    pub scope_left: Option<u32>,
}

/// The exchange in flight.
#[derive(Debug)]
struct Exchange {
    target: usize,
    credential: usize,
    sent: bool,
    head: bool,
}

/// A generation under watch.
pub struct World {
    params: Params,
    generation: Generation,
    rpc: u64,
    reader: Option<Reader>,
    stream: Stream,
    exchange: Option<Exchange>,
    asked: Option<usize>,
    attempts: Vec<Attempt>,
    left: u32,
    /// What was left after each attempt's debit.
    left_after: Vec<u32>,
    deadline: Time,
    permanent: Vec<usize>,
    not_before: HashMap<usize, Time>,
    supplied: Vec<Duration>,
    claimed: bool,
    confirmed: bool,
    cancelled: bool,
    ends: usize,
    /// What happened that a test would want to have happened.
    pub landmarks: BTreeSet<&'static str>,
}

type Access = RefCell<Commons>;

impl World {
    pub fn new(now: Time, params: Params, commons: &Access, shared: &mut Shared) -> Self {
        let generation = Generation::new(now, params.clone(), commons).unwrap();
        if params.scope.is_some() {
            let left = shared.scope_left.unwrap_or(u32::MAX);
            shared.scope_left = Some(left.min(params.policy.max_attempts));
        }
        Self {
            generation,
            rpc: 1,
            reader: Some(Reader::new(params.delivery)),
            stream: Stream::default(),
            exchange: None,
            asked: None,
            attempts: Vec::new(),
            left: params.policy.max_attempts,
            left_after: Vec::new(),
            deadline: now + params.policy.deadline,
            permanent: Vec::new(),
            not_before: HashMap::new(),
            supplied: Vec::new(),
            claimed: false,
            confirmed: false,
            cancelled: false,
            ends: 0,
            landmarks: BTreeSet::new(),
            params,
        }
    }

    pub fn start(&mut self, now: Time, commons: &Access, shared: &mut Shared) {
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
        let provider_acts = matches!(op, Op::Sent | Op::Says(_) | Op::End | Op::Fails(..));
        if provider_acts && self.asked.is_some() {
            self.handle(now, Event::Reserved, commons, shared);
        }
        match op {
            Op::Pass(_) | Op::Jump(_) => {}
            Op::Spurious => self.timer(now, commons, shared),
            Op::Slot if self.asked.is_some() => self.handle(now, Event::Reserved, commons, shared),
            Op::Queued if self.asked.is_some() => self.handle(now, Event::Queued, commons, shared),
            Op::Refused if self.asked.is_some() => {
                let full = Failure::new(Class::NoTarget, Origin::Us, Stage::Admission, "full");
                self.handle(now, Event::ReservationRefused(full), commons, shared);
            }
            Op::Slot | Op::Queued | Op::Refused => {}
            Op::Sent => self.hand_over(now, false, commons, shared),
            Op::Says(says) => self.say(now, says, commons, shared),
            Op::Late(says) => self.say_late(now, says, commons, shared),
            Op::End if self.exchange.is_some() => {
                self.hand_over(now, true, commons, shared);
                self.signal(now, Upstream::End, commons, shared);
            }
            Op::End => {}
            Op::Fails(class, wait) => self.fail(now, class, wait, commons, shared),
            Op::Reads(count) => self.read(now, usize::from(count)),
            Op::Effects(back) => self.effects(now, back, commons, shared),
            Op::Cancel => self.cancel(now, Event::Cancel { reason: "" }, commons, shared),
            Op::Lost => self.lose(now, commons, shared),
            Op::Attach(delivery) => self.attach(now, delivery, commons, shared),
            Op::Drain(after) => {
                let until = now + Duration::from_millis(after);
                self.handle(now, Event::Drain { until }, commons, shared);
            }
            Op::OutOfMemory => self.cancel(now, Event::OutOfMemory, commons, shared),
        }
    }

    fn handle(&mut self, now: Time, event: Event<'_>, commons: &Access, shared: &mut Shared) {
        let had_ended = self.generation.has_ended();
        self.generation.handle(now, event, commons);
        while let Some(command) = self.generation.poll_command() {
            assert!(
                !had_ended,
                "promise 7: a command after the end: {command:?}"
            );
            self.carry_out(now, command, shared);
        }
        assert_eq!(
            self.ends,
            usize::from(self.generation.has_ended()),
            "promise 7"
        );
        if let Some(failed) = self.generation.failed() {
            self.landmarks.insert(failed.stopped_by().as_str_name());
        }
        if self.generation.has_ended() {
            assert!(
                self.exchange.is_none(),
                "promise 8: an exchange that outlives its generation"
            );
            assert!(
                self.asked.is_none(),
                "a reservation that outlives its generation"
            );
        }
        if let Some(key) = &self.params.scope {
            let left = commons
                .borrow()
                .scopes
                .allowance(key)
                .map(|allowance| allowance.left);
            assert_eq!(left, shared.scope_left, "promise 1: the scope's allowance");
        }
    }

    fn carry_out(&mut self, now: Time, command: Command, shared: &mut Shared) {
        match command {
            Command::Reserve { target } => self.asked = Some(target),
            Command::Send {
                attempt,
                target,
                credential,
            } => self.send(now, attempt, target, credential.unwrap_or(0), shared),
            Command::Abort { .. } => {
                self.exchange = None;
                self.asked = None;
            }
            Command::Finish => assert!(self.exchange.take().is_some()),
            Command::Observe(Observation::Ended) => self.ends += 1,
            Command::Observe(_) => {}
        }
    }

    /// Everything that must hold before a request may leave.
    fn send(
        &mut self,
        now: Time,
        attempt: u32,
        target: usize,
        credential: usize,
        shared: &mut Shared,
    ) {
        assert_eq!(self.asked.take(), Some(target), "a request without a slot");
        assert!(self.exchange.is_none(), "promise 1: two requests at once");
        assert!(!self.cancelled, "promise 8: a request after a cancel");
        assert!(
            !self.confirmed,
            "promise 6: a request after confirmed effects"
        );
        assert!(
            !self.permanent.contains(&target),
            "promise 10: a permanent verdict, asked again"
        );
        assert!(now < self.deadline, "a request after the deadline");
        self.check_callers_deadline(now);
        let left = match &mut shared.scope_left {
            Some(left) if self.params.scope.is_some() => left,
            _ => &mut self.left,
        };
        *left = left
            .checked_sub(1)
            .expect("promise 1: a request beyond the allowance");
        let not_before = self.not_before.get(&target).copied().unwrap_or_default();
        assert!(
            now >= not_before,
            "promise 9: a request before the supplied wait was over"
        );
        let rest = shared
            .rests
            .get(&(target, credential))
            .copied()
            .unwrap_or_default();
        assert!(
            now >= rest,
            "promise 9: a request with a credential that rests"
        );
        self.left_after.push(*left);
        self.attempts.push(Attempt::default());
        assert_eq!(attempt as usize, self.attempts.len());
        assert!(attempt <= self.params.policy.max_attempts, "promise 1");
        self.landmarks.extend((target > 0).then_some("fallback"));
        self.landmarks
            .extend((credential > 0).then_some("second credential"));
        self.stream = Stream::default();
        self.exchange = Some(Exchange {
            target,
            credential,
            sent: false,
            head: false,
        });
    }

    fn check_callers_deadline(&self, now: Time) {
        let first_rpc = self.rpc == 1 && self.reader.is_some() && self.params.client_idle.is_zero();
        let callers = self.params.caller_deadline.filter(|_| first_rpc);
        assert!(
            callers.is_none_or(|at| now < at),
            "a request after the caller's deadline"
        );
    }

    fn signal(&mut self, now: Time, signal: Upstream<'_>, commons: &Access, shared: &mut Shared) {
        let attempt = self.attempts.len() as u32;
        self.handle(now, Event::Upstream { attempt, signal }, commons, shared);
    }

    fn hand_over(&mut self, now: Time, answered: bool, commons: &Access, shared: &mut Shared) {
        let (Some(exchange), Some(attempt)) = (&mut self.exchange, self.attempts.last_mut()) else {
            return;
        };
        let (sent, head) = (!exchange.sent, answered && !exchange.head);
        exchange.sent = true;
        exchange.head |= answered;
        attempt.sent = true;
        attempt.head |= answered;
        if sent {
            self.signal(now, Upstream::Sent, commons, shared);
        }
        if head {
            let head = Upstream::Head {
                status: 200,
                request_id: None,
            };
            self.signal(now, head, commons, shared);
        }
    }

    fn say(&mut self, now: Time, says: Says, commons: &Access, shared: &mut Shared) {
        if self.exchange.is_none() {
            return;
        }
        self.hand_over(now, true, commons, shared);
        self.stream.note(says);
        self.signal(now, Upstream::Decoded(decoded(says)), commons, shared);
    }

    /// What an ended exchange says changes nothing at all.
    fn say_late(&mut self, now: Time, says: Says, commons: &Access, shared: &mut Shared) {
        let newest = self.attempts.len() as u32;
        let Some(attempt) = newest.checked_sub(u32::from(self.exchange.is_some())) else {
            return;
        };
        let before = (
            self.due(),
            self.generation.has_frame(),
            self.generation.has_ended(),
        );
        for signal in [
            Upstream::Sent,
            Upstream::Decoded(decoded(says)),
            Upstream::End,
        ] {
            self.generation
                .handle(now, Event::Upstream { attempt, signal }, commons);
            assert_eq!(
                self.generation.poll_command(),
                None,
                "a late event was heard"
            );
        }
        let after = (
            self.due(),
            self.generation.has_frame(),
            self.generation.has_ended(),
        );
        assert_eq!(before, after, "a late event was heard");
        let _ = shared;
    }

    fn fail(
        &mut self,
        now: Time,
        class: Class,
        wait: Option<u64>,
        commons: &Access,
        shared: &mut Shared,
    ) {
        let Some(exchange) = &self.exchange else {
            return;
        };
        let complete = self.stream.complete;
        let (target, key) = (exchange.target, (exchange.target, exchange.credential));
        let before_sent = !exchange.sent && class == Class::Transport;
        let (origin, stage) = match class {
            Class::Transport if before_sent => (Origin::Network, Stage::Connect),
            Class::Transport => (Origin::Network, Stage::Stream),
            _ => (Origin::Provider, Stage::Response),
        };
        if !before_sent {
            self.hand_over(now, false, commons, shared);
        }
        if self.exchange.is_none() {
            return;
        }
        let mut failure = Failure::new(class, origin, stage, "failed");
        failure.wait = wait
            .map(Duration::from_secs)
            .filter(|_| class != Class::Transport);
        if !complete {
            self.note_verdict(now, &failure, target, key, shared);
        }
        self.signal(now, Upstream::Failed(failure), commons, shared);
        assert!(self.exchange.is_none());
        if complete {
            return;
        }
        if PERMANENT.contains(&class) && self.params.targets.len() == 1 {
            assert!(self.generation.has_ended(), "promise 10: nowhere to go");
        }
    }

    fn note_verdict(
        &mut self,
        now: Time,
        failure: &Failure,
        target: usize,
        key: (usize, usize),
        shared: &mut Shared,
    ) {
        if PERMANENT.contains(&failure.class) {
            self.permanent.push(target);
        }
        let Some(wait) = failure.wait else {
            return;
        };
        self.supplied.push(wait);
        let until = now + wait;
        match failure.class {
            Class::RateLimited | Class::QuotaExhausted => {
                let rest = shared.rests.entry(key).or_default();
                *rest = until.max(*rest);
            }
            _ => {
                self.not_before.insert(target, until);
            }
        }
    }

    /// The client takes frames; that moves no timer of the provider.
    fn read(&mut self, now: Time, count: usize) {
        let before = self.due();
        for _ in 0..count {
            let Next::Frame(frame) = self.generation.next_frame(now, self.rpc) else {
                break;
            };
            let reader = self.reader.as_mut().expect("a frame for nobody");
            let end = reader.take(*frame, &self.stream, &self.left_after);
            self.landmarks.extend(reader.landmarks.drain(..));
            if let Some(end) = end {
                self.check_end(&end);
            }
            let bound = 6 + 6 * self.params.policy.max_attempts as usize;
            let control = self.reader.as_ref().map_or(0, |reader| reader.control);
            assert!(
                control <= bound,
                "promise 13: {control} control frames stood in line"
            );
        }
        if count > 0
            && !self.generation.has_frame()
            && let Some(reader) = &mut self.reader
        {
            reader.control = 0;
        }
        if self.params.client_idle.is_zero() {
            assert_eq!(self.due(), before, "promise 11: reading moved a timer");
        }
    }

    /// A client that was given up as too slow has no RPC any more.
    fn notice_loss(&mut self, now: Time) {
        if !self.generation.has_frame()
            && self.generation.next_frame(now, self.rpc) == Next::TooSlow
        {
            self.reader = None;
        }
    }

    fn effects(&mut self, now: Time, back: u8, commons: &Access, shared: &mut Shared) {
        self.notice_loss(now);
        let Some(reader) = self.reader.as_ref().filter(|reader| reader.sequence > 0) else {
            return;
        };
        let through = match back {
            255 => reader.sequence + 1,
            back => reader.sequence.saturating_sub(u64::from(back)).max(1),
        };
        let claim = reader.claim(through);
        let had_ended = self.generation.has_ended();
        let current = self.attempts.len() as u32;
        let lives = self.exchange.is_some();
        self.claimed |= matches!(claim, Claim::Attempt(_));
        if !had_ended && lives && claim == Claim::Attempt(current) {
            self.confirmed = true;
        }
        let event = Event::Effects {
            through_sequence: through,
        };
        self.handle(now, event, commons, shared);
        if had_ended {
            return;
        }
        let stopped_by = self.generation.failed().map(|failed| failed.stopped_by());
        let expected = match claim {
            Claim::Beyond => Some(StoppedBy::Client),
            Claim::Attempt(attempt) if attempt != current || !lives => Some(StoppedBy::Effects),
            _ => None,
        };
        assert_eq!(stopped_by, expected, "promise 6");
    }

    fn cancel(&mut self, now: Time, event: Event<'_>, commons: &Access, shared: &mut Shared) {
        self.handle(now, event, commons, shared);
        self.cancelled = true;
        assert!(self.generation.has_ended(), "promise 8: it ends at once");
    }

    fn lose(&mut self, now: Time, commons: &Access, shared: &mut Shared) {
        self.handle(now, Event::ClientLost, commons, shared);
        self.reader = None;
        if self.params.detach_grace.is_zero() {
            assert!(
                self.generation.has_ended(),
                "promise 8: a lost client cancels"
            );
        }
    }

    fn attach(&mut self, now: Time, delivery: Delivery, commons: &Access, shared: &mut Shared) {
        let event = Event::Attach {
            delivery,
            caller_deadline: None,
        };
        self.handle(now, event, commons, shared);
        assert_eq!(self.generation.next_frame(now, self.rpc), Next::Displaced);
        self.rpc += 1;
        self.reader = Some(Reader::new(delivery));
    }

    /// After everything: whoever reads to the end gets exactly one terminal frame.
    pub fn finish(&mut self, now: Time, commons: &Access, shared: &mut Shared) {
        self.cancel(now, Event::Cancel { reason: "over" }, commons, shared);
        self.attach(now, Delivery::Preview, commons, shared);
        self.read(now, usize::MAX);
        assert!(
            self.reader.as_ref().unwrap().ended,
            "promise 7: no terminal frame"
        );
        assert_eq!(self.generation.next_frame(now, self.rpc), Next::Finished);
    }

    fn check_end(&self, end: &End) {
        assert!(self.generation.has_ended());
        let ledger = match end {
            End::Committed(committed) => committed.ledger.as_ref(),
            End::Failed(failed) => {
                assert_eq!(
                    failed.safe_to_send_again, !self.claimed,
                    "safe_to_send_again"
                );
                let verdict = failed.verdict.as_ref().unwrap();
                if let Some(told) = verdict.retry_after {
                    let told = Duration::new(told.seconds as u64, told.nanos as u32);
                    let ours = verdict.class() == VerdictClass::NoTarget;
                    let known = self.supplied.contains(&told);
                    assert!(ours || known, "promise 9: a wait that nobody asked for");
                }
                failed.ledger.as_ref()
            }
        };
        ledger::check(ledger.expect("a ledger"), end, &self.attempts);
    }
}
