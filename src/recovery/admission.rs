//! What stands before an attempt: the allowance, the deadline, and waits.

use std::time::Duration;

use super::{
    Time, backoff,
    commons::Access,
    event::{Observation, Waited},
    generation::{Generation, ours},
    ledger,
    policy::{Hold, Pick},
    state::State,
};
use crate::{
    proto::{StoppedBy, WaitSource, Waiting, generate_response::Frame, waiting::Reason},
    verdict::Class,
};

impl Generation {
    pub(super) fn on_start(&mut self, now: Time, commons: &impl Access) {
        if !matches!(self.state, State::Idle) {
            return;
        }
        // Another RPC may have attached already; it was told then.
        if self.rpc == 1 {
            let accepted = self.accepted(now, false, commons);
            self.tell(accepted);
        }
        if now >= self.allowance.deadline {
            let failure = ours(Class::Deadline, "the scope's deadline has passed");
            return self.stop(now, failure, StoppedBy::Deadline, commons);
        }
        if self.attempts_left(commons) == 0 {
            let failure = ours(Class::ExceedsLimit, "the scope's allowance is spent");
            return self.stop(now, failure, StoppedBy::Allowance, commons);
        }
        let pick = commons.with(|commons| self.itinerary.first(now, commons));
        self.go(now, pick, commons);
    }

    /// Goes where there is no failure of this generation that would say why not.
    pub(super) fn go(&mut self, now: Time, pick: Pick, commons: &impl Access) {
        let by = self.no_way_on(pick);
        let denial = || {
            self.soonest_denial(now)
                .filter(|_| by == StoppedBy::Limiter)
        };
        match pick {
            Pick::Now { target, .. } => self.reserve(now, target, commons),
            Pick::Later { target, hold, .. } if hold.until < self.admission_ends() => {
                let wait = self.jittered(now, hold);
                self.wait(now, target, wait, hold, Reason::Cooldown);
            }
            Pick::Later { hold, .. } => {
                let wait = hold.until.since(now);
                let message = format!("no target is usable; the soonest returns in {wait:?}");
                let mut failure = ours(Class::NoTarget, message);
                failure.wait = hold.supplied.then_some(wait);
                self.stop(now, denial().unwrap_or(failure), by, commons);
            }
            Pick::None => {
                let failure = ours(Class::NoTarget, "no target of the route is usable");
                self.stop(now, denial().unwrap_or(failure), by, commons);
            }
        }
    }

    /// From here on nothing is admitted: the deadline, or the caller's own if that comes first.
    pub(super) fn admission_ends(&self) -> Time {
        let deadline = self.allowance.deadline;
        self.caller_deadline.map_or(deadline, |at| at.min(deadline))
    }

    /// How long `hold` makes us wait: lengthened by jitter, but never so that it no longer fits.
    pub(super) fn jittered(&mut self, now: Time, hold: Hold) -> Duration {
        let wait = hold.until.since(now);
        let jittered = backoff::jittered(&self.params.policy.backoff, wait, self.dice.roll());
        let last = self
            .admission_ends()
            .since(now)
            .saturating_sub(Duration::from_millis(1));
        jittered.min(last).max(wait)
    }

    /// Waits, and tells so.
    pub(super) fn wait(
        &mut self,
        now: Time,
        target: usize,
        wait: Duration,
        hold: Hold,
        reason: Reason,
    ) {
        let source = if hold.supplied {
            WaitSource::Provider
        } else {
            WaitSource::Backoff
        };
        self.waiting.get_or_insert((now, source)).1 = source;
        self.state = State::Waiting {
            target,
            until: now + wait,
            reason,
        };
        self.tell_waiting(reason, "", Some(wait));
    }

    /// Goes on after a wait; an earlier verdict stands if nothing is usable in time any more.
    pub(super) fn go_on(&mut self, now: Time, pick: Pick, commons: &impl Access) {
        let fits = match pick {
            Pick::Now { .. } => true,
            Pick::Later { hold, .. } => hold.until < self.admission_ends(),
            Pick::None => false,
        };
        match self.last_failure() {
            Some(last) if !fits => self.stop(now, last, self.no_way_on(pick), commons),
            _ => {
                self.give_up_sequel(pick);
                self.go(now, pick, commons);
            }
        }
    }

    /// A later generation may have tightened the deadline of the scope.
    pub(super) fn share_deadline(&mut self, commons: &impl Access) {
        if let Some(key) = &self.params.scope
            && let Some(shared) = commons.with(|commons| commons.scopes.allowance(key))
        {
            self.allowance.deadline = self.allowance.deadline.min(shared.deadline);
        }
    }

    /// What is left of the allowance; once it has ended, what was left then.
    pub(super) fn attempts_left(&self, commons: &impl Access) -> u32 {
        match &self.params.scope {
            Some(key) if !self.has_ended() => commons
                .with(|commons| commons.scopes.allowance(key))
                .map_or(0, |allowance| allowance.left),
            _ => self.allowance.left,
        }
    }

    /// Takes one attempt from the allowance; never given back. `false` if there was none.
    pub(super) fn debit(&mut self, commons: &impl Access) -> bool {
        match &self.params.scope {
            Some(key) => commons.with(|commons| commons.scopes.debit(key)),
            None => match self.allowance.left.checked_sub(1) {
                Some(left) => {
                    self.allowance.left = left;
                    true
                }
                None => false,
            },
        }
    }

    pub(super) fn tell_waiting(
        &mut self,
        reason: Reason,
        budget: &str,
        expected: Option<Duration>,
    ) {
        let frame = waiting(reason, budget, expected);
        let stays = if self.sequel.is_some() {
            self.attempts + 1
        } else {
            0
        };
        if let Some(client) = &mut self.client {
            client.push_after(frame, stays);
        }
        self.observe(Observation::Waiting {
            reason,
            budget: budget.to_owned(),
            expected,
        });
    }

    /// What was waited for the attempt that is being dispatched.
    pub(super) fn take_waited(&mut self, now: Time) -> Waited {
        self.waiting
            .take()
            .map(|(since, source)| Waited {
                total: now.since(since),
                source,
            })
            .unwrap_or_default()
    }
}

pub(super) fn waiting(reason: Reason, budget: &str, expected: Option<Duration>) -> Frame {
    Frame::Waiting(Waiting {
        reason: reason.into(),
        budget: budget.to_owned(),
        expected: expected.map(ledger::duration),
    })
}
