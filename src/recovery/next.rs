//! After a failed attempt: stop, or try again, when and where.

use std::time::Duration;

use super::{
    Time, backoff,
    commons::Access,
    event::{Command, Observation},
    generation::Generation,
    ledger,
    policy::{Hold, Pick, Placement, placement},
    sequel::{self, Way},
    settings::Replay,
};
use crate::{
    proto::{PreviewReset, StoppedBy, generate_response::Frame, waiting::Reason},
    verdict::{Class, Failure},
};

/// How long an exhausted quota lets a credential rest, unless the provider says. Fixed.
const QUOTA_COOLDOWN: Duration = Duration::from_secs(3600);

impl Generation {
    /// The attempt in flight failed for a reason of its own.
    pub(super) fn attempt_failed(&mut self, now: Time, failure: Failure, commons: &impl Access) {
        let Some(place) = self.close_running(now, &failure, commons) else {
            return;
        };
        let condemn = matches!(failure.class, Class::Stall | Class::TimeoutFirstToken);
        self.commands.push_back(Command::Abort { condemn });
        self.failed_at = Some(now);
        if self.is_refusal(&failure) {
            return self.refused(now, &failure, commons);
        }
        if self.is_fallbacks_own(&failure) {
            self.ledger.yield_to_earlier();
        }
        let recovery_ends = self.same_place.failed(failure.class, place);
        self.hold(now, &failure, commons);
        self.go_on_after(now, failure, recovery_ends, commons);
    }

    /// Whether the target of the last attempt is a fallback, and refuses for reasons that the targets
    /// before it did not have.
    fn is_fallbacks_own(&self, failure: &Failure) -> bool {
        let refuses = match failure.class {
            Class::Auth
            | Class::Permission
            | Class::NotFound
            | Class::InvalidRequest
            | Class::ContextOverflow
            | Class::RedirectRefused
            | Class::QuotaExhausted => true,
            Class::Transport => !failure.retryable,
            _ => false,
        };
        refuses
            && self
                .itinerary
                .current()
                .is_some_and(|target| target.fallback)
    }

    /// Stops or tries again, because of `failure`.
    pub(super) fn go_on_after(
        &mut self,
        now: Time,
        failure: Failure,
        recovery_ends: bool,
        commons: &impl Access,
    ) {
        match self.next(now, &failure, recovery_ends, commons) {
            Err(stopped_by) => self.end_failed(now, failure, stopped_by, commons),
            Ok((pick, way)) => self.replay(now, &failure, pick, way, commons),
        }
    }

    /// Notes how long this generation, and the credential for all, keeps away from the target.
    pub(super) fn hold(&mut self, now: Time, failure: &Failure, commons: &impl Access) {
        let own = backoff::delay(&self.params.policy.backoff, self.itinerary.failures());
        let wait = failure.wait.map_or(own, |supplied| supplied.max(own));
        let supplied = failure.wait.is_some_and(|supplied| supplied >= own);
        let cooldown = match failure.class {
            Class::RateLimited => Some(wait),
            Class::QuotaExhausted => Some(failure.wait.unwrap_or(QUOTA_COOLDOWN)),
            _ => None,
        };
        let credential = self.credential_in_use();
        if let (Some(wait), Some(key)) = (cooldown, credential) {
            let supplied =
                supplied || failure.class == Class::QuotaExhausted && failure.wait.is_some();
            commons.with(|commons| commons.cool(now, key, wait, supplied));
            return self.itinerary.failed(None);
        }
        self.itinerary.failed(Some(Hold {
            until: now + wait,
            supplied,
        }));
    }

    /// Where the next attempt goes, and how it goes on with what is there if it does, or why there is
    /// none.
    fn next(
        &mut self,
        now: Time,
        failure: &Failure,
        recovery_ends: bool,
        commons: &impl Access,
    ) -> Result<(Pick, Option<Way>), StoppedBy> {
        self.share_deadline(commons);
        let policy = self.params.policy.clone();
        if placement(failure, &policy) == Placement::Nowhere {
            // A lease that was cut is the only failure of an attempt that a budget stands behind.
            return Err(match failure.denied {
                Some(_) => StoppedBy::Limiter,
                None => StoppedBy::NotRetryable,
            });
        }
        let mut pick = commons.with(|commons| self.itinerary.next(now, failure, &policy, commons));
        if let Pick::Later { hold, .. } = pick
            && hold.until >= self.admission_ends()
        {
            pick = commons.with(|commons| self.itinerary.anywhere(now, commons));
        }
        if pick == Pick::None {
            return Err(match self.no_way_on(pick) {
                StoppedBy::NoTarget if !failure.retryable => StoppedBy::NotRetryable,
                stopped_by => stopped_by,
            });
        }
        if policy.replay == Replay::None {
            return Err(StoppedBy::ReplayDisabled);
        }
        let way = self
            .way_on()
            .filter(|way| self.holds_on_to(way.keeps_below).is_none());
        if let Some(held_by) = self.holds_on_to(0) {
            if way.is_none() {
                return Err(held_by);
            }
            pick = commons.with(|commons| self.itinerary.stay(now, commons));
            if pick == Pick::None {
                return Err(held_by);
            }
        }
        if recovery_ends {
            return Err(StoppedBy::SamePlace);
        }
        if self.attempts_left(commons) == 0 {
            return Err(StoppedBy::Allowance);
        }
        if now >= self.allowance.deadline {
            return Err(StoppedBy::Deadline);
        }
        self.check_fit(now, failure, pick)?;
        self.take_retry(now, pick, commons)?;
        Ok((pick, way.filter(|_| self.goes_back(pick))))
    }

    /// Whether the next attempt goes to the target of the last one.
    fn goes_back(&self, pick: Pick) -> bool {
        let here = self.itinerary.current_index();
        matches!(pick, Pick::Now { target, .. } | Pick::Later { target, .. } if target == here)
    }

    /// A wait that does not fit the deadline fails at once.
    pub(super) fn check_fit(
        &self,
        now: Time,
        failure: &Failure,
        pick: Pick,
    ) -> Result<(), StoppedBy> {
        let Pick::Later { target, hold, .. } = pick else {
            return Ok(());
        };
        if hold.until < self.admission_ends() {
            return Ok(());
        }
        if self.itinerary.is_held_back(pick) {
            Err(StoppedBy::Limiter)
        } else if hold.supplied && failure.wait.is_some_and(|wait| hold.until <= now + wait) {
            Err(StoppedBy::WaitTooLong)
        } else if target != self.itinerary.current_index() {
            Err(StoppedBy::NoTarget)
        } else {
            Err(StoppedBy::Deadline)
        }
    }

    fn take_retry(&self, now: Time, pick: Pick, commons: &impl Access) -> Result<(), StoppedBy> {
        let (target, credential) = match pick {
            Pick::Now { target, credential } => (target, credential),
            // Which one it will be is not known yet.
            Pick::Later { target, .. } => (target, 0),
            Pick::None => return Ok(()),
        };
        let Some(target) = self.itinerary.targets().get(target) else {
            return Ok(());
        };
        match commons.with(|commons| commons.take_retry(now, target.domain(credential))) {
            true => Ok(()),
            false => Err(StoppedBy::RetryBudget),
        }
    }

    /// Tells what is void, before any wait, and goes on.
    pub(super) fn replay(
        &mut self,
        now: Time,
        failure: &Failure,
        pick: Pick,
        way: Option<Way>,
        commons: &impl Access,
    ) {
        let wait = match pick {
            Pick::Later { hold, .. } => Some(self.jittered(now, hold)),
            Pick::Now { .. } | Pick::None => None,
        };
        self.void_from(way.map_or(0, |way| way.keeps_below), failure, wait);
        match way {
            Some(way) => self.plan_sequel(way, failure),
            None => self.sequel = None,
        }
        match (pick, wait) {
            (Pick::Now { target, .. }, _) => self.reserve(now, target, commons),
            (
                Pick::Later {
                    target,
                    hold,
                    cooldown,
                },
                Some(wait),
            ) => {
                let other = cooldown && target != self.itinerary.current_index();
                let reason = if other || hold.supplied {
                    Reason::Cooldown
                } else {
                    Reason::Backoff
                };
                self.wait(now, target, wait, hold, reason);
            }
            _ => {}
        }
    }

    /// The output of `attempt` and later ones is void, because of `failure`. The client is told of what
    /// it was shown, before the next attempt's first frame.
    pub(super) fn void_from(&mut self, attempt: u32, failure: &Failure, wait: Option<Duration>) {
        if attempt == sequel::ALL {
            return;
        }
        self.transcript.void_from(attempt);
        self.ledger.void_from(attempt);
        let client = self.client.as_mut();
        let voided = client.map_or_else(Vec::new, |client| client.void_from(attempt));
        if voided.is_empty() {
            return;
        }
        let (of, target) = self.ledger.attribute(failure);
        let verdict = ledger::verdict(failure, of, target);
        for attempt in voided {
            self.tell(Frame::PreviewReset(PreviewReset {
                attempt,
                blocks: Vec::new(),
                verdict: Some(verdict.clone()),
                wait: wait.map(ledger::duration),
            }));
            self.observe(Observation::PreviewReset {
                attempt,
                block: None,
                class: failure.class,
            });
        }
    }

    fn credential_in_use(&self) -> Option<super::commons::CredentialKey> {
        let target = self.itinerary.current()?;
        Some((std::sync::Arc::clone(&target.provider), self.credential))
    }
}
