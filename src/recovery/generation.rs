//! The generation: its inputs, its outputs, and the transitions that are not an attempt's own.

use std::{collections::VecDeque, sync::Arc, time::Duration};

use super::{
    Time,
    backoff::Dice,
    commons::Access,
    delivery::Client,
    event::{Command, Event, Observation},
    gate::Gate,
    ledger::{self, Ledger},
    policy::{Itinerary, Target},
    same_place::SamePlace,
    scope::{Allowance, ScopeKey, TooManyScopes},
    sequel::Sequel,
    settings::Policy,
    state::{Attempt, Outcome, State},
    transcript::Transcript,
};
use crate::{
    proto::{
        self, Accepted, Committed, Delivery, Failed, SkippedTarget, StoppedBy, WaitSource,
        generate_response::Frame,
    },
    verdict::{Class, Failure, Origin, Stage},
};

/// What a generation is created with.
#[derive(Clone, Debug)]
pub struct Params {
    /// Its id.
    pub id: String,
    /// The route's targets in order; at least one.
    pub targets: Arc<[Target]>,
    /// Targets of the route that cannot take the request, for the ledger.
    pub skipped: Box<[SkippedTarget]>,
    /// The route's policy, tightened by the client's options.
    pub policy: Policy,
    /// The turn gate; none if it is off, as by default.
    pub gate: Option<Box<Gate>>,
    /// Whether targets other than the first may be used.
    pub fallback: bool,
    /// What the first RPC wants to see.
    pub delivery: Delivery,
    /// How long it lives on without an RPC; zero: not at all.
    pub detach_grace: Duration,
    /// The largest message, in bytes.
    pub max_message_bytes: usize,
    /// How long a client may take nothing although something waits for it; zero: for ever.
    pub client_idle: Duration,
    /// The scope it belongs to.
    pub scope: Option<ScopeKey>,
    /// When the caller's gRPC deadline fires (less the time in which the ledger must still arrive).
    pub caller_deadline: Option<Time>,
    /// The wall clock at the origin of time, since the Unix epoch.
    pub wall_origin: Duration,
    /// Where its jitter comes from.
    pub seed: u64,
}

/// One logical model call. See the module's head for the order of calls.
#[derive(Debug)]
pub struct Generation {
    pub(super) params: Params,
    pub(super) state: State,
    pub(super) itinerary: Itinerary,
    pub(super) same_place: SamePlace,
    pub(super) dice: Dice,
    pub(super) ledger: Ledger,
    pub(super) transcript: Transcript,
    /// Who goes on with output that an earlier attempt left. Boxed: few generations need it.
    pub(super) sequel: Option<Box<Sequel>>,
    pub(super) commands: VecDeque<Command>,
    /// Allowance and deadline; the allowance of a scope is the scope's.
    pub(super) allowance: Allowance,
    pub(super) started: Time,
    pub(super) attempts: u32,
    /// The credential of the newest attempt.
    pub(super) credential: usize,
    /// Since when the next attempt is waited for, and on whose word.
    pub(super) waiting: Option<(Time, WaitSource)>,
    /// When the last failure became known, until output comes again.
    pub(super) failed_at: Option<Time>,
    pub(super) had_first_token: bool,
    /// The client has claimed effects, confirmed or not.
    pub(super) effects_claimed: bool,
    /// Effects are confirmed: no restart any more.
    pub(super) effects_confirmed: bool,
    pub(super) client: Option<Client>,
    /// Counts the RPCs; the newest one is the client.
    pub(super) rpc: u64,
    pub(super) caller_deadline: Option<Time>,
    pub(super) detached_until: Option<Time>,
    pub(super) drain_at: Option<Time>,
}

impl Generation {
    /// Joins the scope, if there is one. Nothing happens before [`Event::Start`].
    pub fn new(
        now: Time,
        mut params: Params,
        commons: &impl Access,
    ) -> Result<Self, TooManyScopes> {
        let asked = Allowance {
            left: params.policy.max_attempts,
            deadline: now + params.policy.deadline,
        };
        let allowance = match &params.scope {
            Some(key) => commons.with(|commons| commons.scopes.join(now, key, asked))?,
            None => asked,
        };
        Ok(Self {
            state: State::Idle,
            itinerary: Itinerary::new(Arc::clone(&params.targets), params.fallback),
            same_place: SamePlace::default(),
            dice: Dice::new(params.seed),
            ledger: Ledger::new(std::mem::take(&mut params.skipped)),
            transcript: Transcript::default(),
            sequel: None,
            commands: VecDeque::new(),
            allowance,
            started: now,
            attempts: 0,
            credential: 0,
            waiting: None,
            failed_at: None,
            had_first_token: false,
            effects_claimed: false,
            effects_confirmed: false,
            client: Some(Client::new(params.delivery)),
            rpc: 1,
            caller_deadline: params.caller_deadline,
            detached_until: None,
            drain_at: None,
            params,
        })
    }

    /// Takes one input. Commands, frames and the next time-out may have changed afterwards.
    pub fn handle(&mut self, now: Time, event: Event<'_>, commons: &impl Access) {
        match event {
            Event::Upstream { attempt, signal } => self.on_upstream(now, attempt, signal, commons),
            Event::Start => self.on_start(now, commons),
            Event::Reserved { credential } => self.on_reserved(now, credential, commons),
            Event::Waiting(wait) => self.on_waiting(now, wait, commons),
            Event::ReservationRefused(failure) => self.on_refused(now, failure, commons),
            Event::Effects { through_sequence } => self.on_effects(now, through_sequence, commons),
            Event::Cancel { reason } => self.on_cancel(now, reason, commons),
            Event::Violation(failure) => self.stop(now, failure, StoppedBy::Client, commons),
            Event::ClientLost => self.on_client_lost(now, commons),
            Event::Attach {
                delivery,
                caller_deadline,
            } => {
                self.on_attach(now, delivery, caller_deadline, commons);
            }
            Event::OutOfMemory => self.on_out_of_memory(now, commons),
            Event::Crashed => self.on_crashed(now, commons),
            Event::Drain { until } => {
                self.drain_at = Some(self.drain_at.map_or(until, |at| at.min(until)));
            }
            Event::TimerDue => self.on_timer(now, commons),
        }
        self.note_pending(now);
    }

    /// The next command, in order.
    pub fn poll_command(&mut self) -> Option<Command> {
        self.commands.pop_front()
    }

    /// When [`Event::TimerDue`] is due, if nothing else happens before. At that time or later it always
    /// takes its reason away: what fell due has ended, moved on, or is armed for a later time.
    pub fn poll_timeout(&self) -> Option<Time> {
        let idle = self
            .client
            .as_ref()
            .and_then(|c| c.idle_deadline(self.params.client_idle));
        let own = match &self.state {
            State::Idle | State::Ended(_) => return idle,
            State::Waiting { until, .. } => Some((*until).min(self.allowance.deadline)),
            State::Reserving { .. } => {
                let again = self.asks_again().unwrap_or(self.allowance.deadline);
                Some(again.min(self.allowance.deadline))
            }
            State::Running(attempt) => attempt.clockwork.next().map(|(due, _)| due),
        };
        [
            idle,
            own,
            self.caller_deadline,
            self.detached_until,
            self.drain_at,
        ]
        .into_iter()
        .flatten()
        .min()
    }

    /// Whether it has ended and nobody is attached: nothing happens any more by itself.
    pub fn is_settled(&self) -> bool {
        self.has_ended() && self.client.is_none()
    }

    /// Drops the message of a generation that is settled and that nobody will attach to.
    pub fn drop_message(&mut self) {
        if self.is_settled() {
            self.transcript.clear();
        }
    }

    /// The last frame of the message, without the message, once it is committed.
    pub fn committed(&self) -> Option<&Committed> {
        match &self.state {
            State::Ended(Outcome::Committed(closing)) => Some(&closing.last),
            _ => None,
        }
    }

    /// Whether there is a terminal frame.
    pub fn has_ended(&self) -> bool {
        matches!(self.state, State::Ended(_))
    }

    /// The verdict that the RPC's status follows, once the generation has failed.
    pub fn failed(&self) -> Option<&Failed> {
        match &self.state {
            State::Ended(Outcome::Failed(failed)) => Some(failed),
            _ => None,
        }
    }

    /// Whether `attempt` is in flight.
    pub fn runs(&self, attempt: u32) -> bool {
        matches!(&self.state, State::Running(running) if running.number == attempt)
    }

    /// What was sent, waited for and paid so far.
    pub fn account(&self) -> proto::Ledger {
        self.ledger.to_proto(self.params.wall_origin)
    }

    /// What the transcript takes in memory, about.
    pub fn transcript_bytes(&self) -> usize {
        let held = self.sequel.as_ref().map_or(0, |sequel| sequel.bytes());
        self.transcript.bytes() + held
    }

    /// What the first RPC wanted to see.
    pub fn delivery(&self) -> Delivery {
        self.params.delivery
    }

    /// The number of the newest RPC.
    pub fn rpc(&self) -> u64 {
        self.rpc
    }

    pub(super) fn on_timer(&mut self, now: Time, commons: &impl Access) {
        let passed = |at: Option<Time>| at.is_some_and(|at| at <= now);
        let idle = self
            .client
            .as_ref()
            .and_then(|c| c.idle_deadline(self.params.client_idle));
        if passed(idle) {
            self.on_client_idle(now, commons);
        }
        if self.has_ended() {
            return;
        }
        if passed(self.caller_deadline) {
            return self.stop_at_callers_deadline(now, commons);
        }
        if passed(self.detached_until) {
            let failure = ours(Class::Cancelled, "nobody attached within detach_grace");
            return self.stop(now, failure, StoppedBy::Client, commons);
        }
        if passed(self.drain_at) {
            let failure = ours(Class::Draining, "the sidecar is shutting down");
            return self.stop(now, failure, StoppedBy::Drain, commons);
        }
        self.share_deadline(commons);
        match &self.state {
            State::Waiting { .. } | State::Reserving { .. } if now >= self.allowance.deadline => {
                self.stop_at_deadline(now, commons);
            }
            State::Waiting { target, until, .. } if *until <= now => {
                let target = *target;
                let pick = self.pick_again(now, target, commons);
                self.go_on(now, pick, commons);
            }
            State::Reserving { .. } if self.asks_again().is_some_and(|at| at <= now) => {
                self.ask_again(now, commons);
            }
            State::Running(attempt) => {
                if let Some((due, timer)) = attempt.clockwork.next()
                    && due <= now
                {
                    self.on_attempt_timer(now, timer, commons);
                }
            }
            _ => {}
        }
    }

    pub(super) fn accepted(&self, now: Time, attached: bool, commons: &impl Access) -> Frame {
        Frame::Accepted(Accepted {
            generation_id: self.params.id.clone(),
            allowance: self.attempts_left(commons),
            deadline: Some(ledger::duration(self.allowance.deadline.since(now))),
            attached,
        })
    }

    pub(super) fn tell(&mut self, frame: Frame) {
        if let Some(client) = &mut self.client {
            client.push(frame);
        }
    }

    pub(super) fn observe(&mut self, observation: Observation) {
        self.commands.push_back(Command::Observe(observation));
    }

    pub(super) fn running(&mut self) -> Option<&mut Attempt> {
        match &mut self.state {
            State::Running(attempt) => Some(attempt),
            _ => None,
        }
    }
}

/// A failure that is nobody's but ours or the caller's.
pub(super) fn ours(class: Class, message: impl Into<String>) -> Failure {
    Failure::new(class, Origin::Us, Stage::Admission, message)
}
