//! Reservations, and budgets that hold them back.
//!
//! A reservation asks for a slot and a lease with every credential that may be used. A budget without
//! room is waited for if that can be over before nothing is admitted any more. If it cannot, nothing is
//! waited for: another target is taken, or the generation ends and says when to come back. A budget whose
//! engine grants nothing, because it does not answer or has yet to learn what was sent, is no other; only
//! the class says which it was.

use super::{
    Time,
    commons::Access,
    event::{Command, Takes, Wait},
    generation::Generation,
    ledger,
    policy::{Denial, Pick},
    state::{Held, State},
};
use crate::{
    proto::{self, Mode, StoppedBy, WaitSource, generate_response::Frame, waiting::Reason},
    verdict::{Class, Denied, Failure, Origin, Stage},
};
use std::time::Duration;

/// A wait is told again if it will be over so much earlier or later than was told. Fixed.
const TOLD_ANEW: Duration = Duration::from_secs(1);

impl Generation {
    pub(super) fn reserve(&mut self, now: Time, target: usize, commons: &impl Access) {
        let (credentials, returns) = self.credentials(now, target, commons);
        self.state = State::Reserving {
            target,
            returns,
            held: None,
        };
        let takes = self.takes(target);
        self.commands.push_back(Command::Reserve {
            target,
            credentials,
            takes,
        });
    }

    /// The credentials that an attempt at `target` may go with, and when there will be one more.
    fn credentials(
        &self,
        now: Time,
        target: usize,
        commons: &impl Access,
    ) -> (Vec<usize>, Option<Time>) {
        let Some(at) = self.itinerary.targets().get(target) else {
            return (vec![0], None);
        };
        let (usable, returns) =
            commons.with(|commons| commons.credentials(now, &at.provider, at.credentials));
        match self.stored_at(target) {
            Some(stored) if usable.contains(&stored) => (vec![stored], None),
            _ => (usable, returns),
        }
    }

    /// The credential of the stored response that the next attempt reads on.
    fn stored_at(&self, target: usize) -> Option<usize> {
        let sequel = self.sequel.as_ref()?;
        let reads_on = sequel.mode == Mode::Resume && sequel.target == target;
        let stored = sequel.stored.as_ref().filter(|_| reads_on)?;
        Some(stored.credential)
    }

    fn takes(&self, target: usize) -> Takes {
        let sequel = self.sequel.as_ref().filter(|s| s.target == target);
        let hint = self.hint().map(|hint| hint.as_str().len());
        match (sequel, hint) {
            (None, None) => Takes::Whole,
            (None, Some(hint)) => Takes::Hinted { hint },
            (Some(sequel), _) if sequel.mode == Mode::Resume => Takes::Nothing,
            (Some(_), hint) => {
                let text = self.transcript.text_only().map_or(0, |text| text.len());
                Takes::Continuation {
                    partial: text + hint.unwrap_or_default(),
                }
            }
        }
    }

    /// Whether what is held for `target` and `credential` can be used, now that `pick` is where to go.
    pub(super) fn suits(
        &self,
        now: Time,
        pick: Pick,
        target: usize,
        credential: usize,
        commons: &impl Access,
    ) -> bool {
        let Pick::Now {
            target: usable,
            credential: first,
        } = pick
        else {
            return false;
        };
        let Some(at) = self.itinerary.targets().get(target) else {
            return false;
        };
        // What is stored is asked for with its own credential if that is possible.
        let is_own = self.stored_at(target).is_none() || credential == first;
        let rests = || commons.with(|commons| commons.rests(now, &at.provider, credential));
        usable == target && is_own && !rests()
    }

    pub(super) fn on_waiting(&mut self, now: Time, wait: Wait, commons: &impl Access) {
        self.share_deadline(commons);
        let ends = self.admission_ends();
        let until = wait.expected.map(|expected| now + expected);
        let State::Reserving { held, .. } = &mut self.state else {
            return;
        };
        let changed = held.as_ref().is_none_or(|held| held.differs(&wait, until));
        if changed {
            let wait = wait.clone();
            *held = Some(Box::new(Held { wait, until }));
        }
        let source = match wait.reason {
            Reason::Budget | Reason::LimiterUnavailable => Some(WaitSource::Budget),
            Reason::Cooldown => Some(WaitSource::Provider),
            _ => None,
        };
        let waited = self.waiting.get_or_insert((now, WaitSource::Unspecified));
        waited.1 = source.unwrap_or(waited.1);
        if let (Some(denied), Some(until)) = (&wait.denied, until)
            && until >= ends
        {
            let failure = no_room(wait.reason, denied, wait.expected);
            return self.denied(now, failure, Some(until), commons);
        }
        if changed {
            let budget = wait.denied.as_ref().map_or("", |denied| &*denied.budget);
            self.tell_waiting(wait.reason, budget, wait.expected);
        }
    }

    /// There is no lease for the reserved target, and no use in waiting for one.
    pub(super) fn denied(
        &mut self,
        now: Time,
        failure: Failure,
        until: Option<Time>,
        commons: &impl Access,
    ) {
        let State::Reserving {
            target, returns, ..
        } = self.state
        else {
            return;
        };
        if failure.class == Class::ExceedsLimit && self.begins_anew(target) {
            return self.ask_again(now, commons);
        }
        self.commands.push_back(Command::Abort { condemn: false });
        self.itinerary
            .deny(target, Denial { until, failure }, returns);
        let pick = self.pick_again(now, target, commons);
        let fits = match pick {
            Pick::Now { .. } => true,
            Pick::Later { hold, .. } => hold.until < self.admission_ends(),
            Pick::None => false,
        };
        if fits {
            self.give_up_sequel(pick);
            return self.go(now, pick, commons);
        }
        // Not an attempt: it does not mask the verdict of one.
        let soonest = self.soonest_denial(now);
        if let Some(failure) = self.last_failure().or(soonest) {
            self.stop(now, failure, StoppedBy::Limiter, commons);
        }
    }

    /// Why there is no way on but `pick`, which is none in time.
    pub(super) fn no_way_on(&self, pick: Pick) -> StoppedBy {
        match self.itinerary.is_held_back(pick) {
            true => StoppedBy::Limiter,
            false => StoppedBy::NoTarget,
        }
    }

    pub(super) fn soonest_denial(&self, now: Time) -> Option<Failure> {
        let denial = self.itinerary.soonest_denial()?;
        let until = denial.until.map(|until| until.since(now));
        Some(Failure {
            wait: until.or(denial.failure.wait),
            ..denial.failure.clone()
        })
    }

    /// The budget that a lease is waited for of.
    pub(super) fn held_back(&self) -> Option<&Denied> {
        self.held().and_then(|held| held.wait.denied.as_ref())
    }

    /// The same, where it is the budget's engine that grants nothing.
    pub(super) fn held_back_by_engine(&self) -> Option<&Denied> {
        let held = self.held()?;
        let is_engine = held.wait.reason == Reason::LimiterUnavailable;
        held.wait.denied.as_ref().filter(|_| is_engine)
    }

    fn held(&self) -> Option<&Held> {
        match &self.state {
            State::Reserving { held, .. } => held.as_deref(),
            _ => None,
        }
    }

    /// Which budget held back the attempt that did not come, and when it has room, where that was why.
    pub(super) fn tell_denial(&self, now: Time, by: StoppedBy, verdict: &mut proto::Verdict) {
        // The verdict itself is a budget's.
        if !verdict.budget.is_empty() {
            return;
        }
        let (denied, wait) = match (by, self.held_back_by_engine()) {
            (StoppedBy::Limiter, Some(engine)) if now >= self.admission_ends() => {
                (Some(engine.clone()), None)
            }
            (StoppedBy::Limiter, _) => match self.soonest_denial(now) {
                Some(failure) => (failure.denied.map(|denied| *denied), failure.wait),
                None => return,
            },
            (StoppedBy::Deadline, _) => (self.held_back().cloned(), None),
            _ => return,
        };
        let Some(denied) = denied else { return };
        verdict.budget = denied.budget.to_string();
        verdict.limit = denied.limit;
        let told = verdict
            .retry_after
            .and_then(|told| Duration::try_from(told).ok());
        verdict.retry_after = told.max(wait).map(ledger::duration);
    }

    /// When the reservation is asked for anew, because there is one credential more to go with. A place
    /// in line for a slot is not given up for that: which credential it is for is not settled there.
    pub(super) fn asks_again(&self) -> Option<Time> {
        match &self.state {
            State::Reserving { returns, .. } => returns.filter(|_| self.held_back().is_some()),
            _ => None,
        }
    }

    pub(super) fn ask_again(&mut self, now: Time, commons: &impl Access) {
        let State::Reserving { target, .. } = self.state else {
            return;
        };
        self.commands.push_back(Command::Abort { condemn: false });
        let pick = self.pick_again(now, target, commons);
        self.go_on(now, pick, commons);
    }
}

impl Held {
    /// Whether the client has to be told of `wait`, which ends at `until`.
    fn differs(&self, wait: &Wait, until: Option<Time>) -> bool {
        let budget = |wait: &Wait| wait.denied.as_ref().map(|denied| denied.budget.clone());
        let moved = match (self.until, until) {
            (Some(told), Some(until)) => {
                until.since(told) >= TOLD_ANEW || told.since(until) >= TOLD_ANEW
            }
            (told, until) => told != until,
        };
        self.wait.reason != wait.reason || budget(&self.wait) != budget(wait) || moved
    }

    /// What is told of it to a client that comes now.
    pub fn frame(&self, now: Time) -> Frame {
        let denied = self.wait.denied.as_ref();
        let budget = denied.map_or("", |denied| &*denied.budget);
        // What should be over by now lasts for an unknown time.
        let expected = self.until.map(|until| until.since(now));
        let expected = expected.filter(|expected| !expected.is_zero());
        super::admission::waiting(self.wait.reason, budget, expected)
    }
}

fn no_room(reason: Reason, denied: &Denied, expected: Option<Duration>) -> Failure {
    let Denied { budget, limit } = denied;
    let (class, has) = match reason {
        Reason::LimiterUnavailable => (Class::LimiterUnavailable, "grants nothing"),
        _ => (Class::RateLimited, "has no room"),
    };
    let message = format!("budget {budget} {has} before the deadline ({limit})");
    let mut failure = Failure::new(class, Origin::Us, Stage::Admission, message);
    failure.wait = expected;
    failure.denied = Some(Box::new(denied.clone()));
    failure
}
