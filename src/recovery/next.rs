//! After a failed attempt: stop, or try again, when and where.

use std::time::Duration;

use super::{
    Time, backoff,
    commons::Access,
    event::{Command, Observation},
    generation::Generation,
    ledger,
    policy::{Hold, Pick, Placement, placement},
    settings::Replay,
    state::State,
};
use crate::{
    proto::{Delivery, PreviewReset, StoppedBy, generate_response::Frame, waiting::Reason},
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
        let recovery_ends = self.same_place.failed(failure.class, place);
        let previewed = self.client.as_ref().is_some_and(|client| client.previewed);
        self.transcript.clear();
        self.hold(now, &failure, commons);
        match self.next(now, &failure, recovery_ends, previewed, commons) {
            Err(stopped_by) => self.end_failed(now, failure, stopped_by, commons),
            Ok(pick) => self.replay(now, &failure, pick, previewed),
        }
    }

    /// Notes how long this generation, and the credential for all, keeps away from the target.
    fn hold(&mut self, now: Time, failure: &Failure, commons: &impl Access) {
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

    /// Where the next attempt goes, or why there is none.
    fn next(
        &mut self,
        now: Time,
        failure: &Failure,
        recovery_ends: bool,
        previewed: bool,
        commons: &impl Access,
    ) -> Result<Pick, StoppedBy> {
        self.share_deadline(commons);
        let policy = self.params.policy.clone();
        if placement(failure, &policy) == Placement::Nowhere {
            return Err(StoppedBy::NotRetryable);
        }
        let mut pick = commons.with(|commons| self.itinerary.next(now, failure, &policy, commons));
        if let Pick::Later { hold, .. } = pick
            && hold.until >= self.admission_ends()
        {
            pick = commons.with(|commons| self.itinerary.anywhere(now, commons));
        }
        if pick == Pick::None {
            return Err(match failure.retryable {
                true => StoppedBy::NoTarget,
                false => StoppedBy::NotRetryable,
            });
        }
        if policy.replay == Replay::None {
            return Err(StoppedBy::ReplayDisabled);
        }
        if self.effects_confirmed {
            return Err(StoppedBy::Effects);
        }
        let no_reset = self
            .client
            .as_ref()
            .is_some_and(|c| c.delivery == Delivery::PreviewNoReset);
        if no_reset && previewed {
            return Err(StoppedBy::NoReset);
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
        self.check_fit(failure, pick)?;
        self.take_retry(now, pick, commons)?;
        Ok(pick)
    }

    /// A wait that does not fit the deadline fails at once.
    fn check_fit(&self, failure: &Failure, pick: Pick) -> Result<(), StoppedBy> {
        let Pick::Later { target, hold, .. } = pick else {
            return Ok(());
        };
        if hold.until < self.admission_ends() {
            return Ok(());
        }
        if hold.supplied && failure.wait.is_some() {
            Err(StoppedBy::WaitTooLong)
        } else if target != self.itinerary.current_index() {
            Err(StoppedBy::NoTarget)
        } else {
            Err(StoppedBy::Deadline)
        }
    }

    fn take_retry(&self, now: Time, pick: Pick, commons: &impl Access) -> Result<(), StoppedBy> {
        let (Pick::Now { target, .. } | Pick::Later { target, .. }) = pick else {
            return Ok(());
        };
        let Some(target) = self.itinerary.targets().get(target) else {
            return Ok(());
        };
        match commons.with(|commons| commons.take_retry(now, &target.provider)) {
            true => Ok(()),
            false => Err(StoppedBy::RetryBudget),
        }
    }

    /// Tells the reset, before any wait, and goes on.
    fn replay(&mut self, now: Time, failure: &Failure, pick: Pick, previewed: bool) {
        let wait = match pick {
            Pick::Now { target, .. } => {
                self.reserve(target);
                None
            }
            Pick::Later {
                target,
                hold,
                cooldown,
            } => {
                let wait = self.jittered(now, hold);
                // The frames are told in this order: reset, then waiting.
                self.tell_reset(failure, previewed, Some(wait));
                let other = cooldown && target != self.itinerary.current_index();
                let reason = if other || hold.supplied {
                    Reason::Cooldown
                } else {
                    Reason::Backoff
                };
                return self.wait(now, target, wait, hold, reason);
            }
            Pick::None => None,
        };
        self.tell_reset(failure, previewed, wait);
    }

    fn tell_reset(&mut self, failure: &Failure, previewed: bool, wait: Option<Duration>) {
        if !previewed {
            return;
        }
        let target = self
            .itinerary
            .current()
            .map(|t| t.name.to_string())
            .unwrap_or_default();
        let attempt = self.attempts;
        self.tell(Frame::PreviewReset(PreviewReset {
            attempt,
            blocks: Vec::new(),
            verdict: Some(ledger::verdict(failure, attempt, &target)),
            wait: wait.map(ledger::duration),
        }));
        self.observe(Observation::PreviewReset {
            attempt,
            class: failure.class,
        });
    }

    fn credential_in_use(&self) -> Option<super::commons::CredentialKey> {
        let target = self.itinerary.current()?;
        Some((std::sync::Arc::clone(&target.provider), self.credential))
    }

    /// Whether the generation is between attempts.
    pub(super) fn is_between_attempts(&self) -> bool {
        matches!(
            self.state,
            State::Waiting { .. } | State::Reserving { .. } | State::Idle
        )
    }
}
