//! What must hold when an attempt or a generation ends.

use std::time::Duration;

use redrive::{
    proto::{Delivery, Failed, LedgerEntry, StoppedBy},
    recovery::Time,
    verdict::Class,
};

use super::{shared::Shared, silence::Silence, world::World};

/// How long a credential rests whose quota is exhausted, unless its provider says.
const QUOTA_REST: Duration = Duration::from_secs(3_600);

impl World {
    /// An attempt is over, for its own reasons or for others.
    pub(super) fn attempt_ended(&mut self, now: Time, entry: &LedgerEntry, shared: &mut Shared) {
        let Some(verdict) = &entry.verdict else {
            return self.note_acceptance();
        };
        self.check_verdict(verdict);
        let Some(exchange) = &self.exchange else {
            panic!("an attempt that ended twice");
        };
        let (target, credential) = (exchange.target, exchange.credential);
        let class = verdict.class();
        if class == Class::GateRejected {
            // Not its target's failure, but it counts for the next backoff.
            *self.failures.entry(target).or_default() += 1;
            return self.places.failed(class, target);
        }
        *shared.failures.entry(target).or_default() += 1;
        let timed = [
            Class::Stall,
            Class::TimeoutConnect,
            Class::TimeoutFirstToken,
        ];
        if timed.contains(&class) && !self.is_told {
            let due = self.silence.as_ref().and_then(Silence::due);
            assert!(
                due.is_some_and(|due| due <= now),
                "promise 11: a time-out ({class:?}) before the silence was too long"
            );
            self.landmarks.insert("time-out");
        }
        let early = self.stream.is_hidden() || (exchange.resumes && self.is_head);
        let refused = early && !verdict.retryable && self.is_told;
        if refused {
            self.landmarks.insert("refused to go on");
            if self.stream.is_hidden() {
                self.refused.insert(target);
            }
            let of_the_target = [
                Class::Auth,
                Class::Permission,
                Class::QuotaExhausted,
                Class::RedirectRefused,
            ];
            if !of_the_target.contains(&class) {
                return;
            }
        }
        let failures = self.failures.entry(target).or_default();
        let own = self.params.policy.backoff.base * 2u32.pow((*failures).min(10));
        let until = now + own.min(self.params.policy.backoff.max);
        *failures += 1;
        if !refused {
            self.places.failed(class, target);
        }
        match class {
            Class::QuotaExhausted => {
                let told = verdict.retry_after.is_some();
                let rest = shared.rests.entry((target, credential)).or_default();
                *rest = (*rest).max(if told { now } else { now + QUOTA_REST });
            }
            Class::RateLimited => {
                let rest = shared.rests.entry((target, credential)).or_default();
                *rest = until.max(*rest);
            }
            _ => {
                let hold = self.not_before.entry(target).or_default();
                *hold = until.max(*hold);
            }
        }
    }

    /// Nobody waits for longer than what failed so far makes it, jitter included.
    pub(super) fn check_backoff(&self, now: Time, told: Duration, shared: &Shared) {
        let holds = self.not_before.values().chain(shared.rests.values());
        let longest = holds
            .max()
            .map(|until| until.since(now))
            .unwrap_or_default();
        let jittered = longest.mul_f64(1.0 + self.params.policy.backoff.jitter);
        assert!(
            told <= jittered + Duration::from_millis(1),
            "promise 9: a backoff of {told:?} and not of {longest:?}"
        );
    }

    pub(super) fn note_end(&mut self, now: Time, shared: &mut Shared) {
        self.ended_at = now;
        if let Some(failed) = self.generation.failed() {
            let failed = failed.clone();
            let fixed = self.stream.fixed_below.saturating_sub(1) as usize;
            for attempt in self.attempts.iter_mut().skip(fixed) {
                attempt.kept = false;
            }
            self.landmarks.insert(failed.stopped_by().as_str_name());
            self.check_reason(now, &failed, shared);
            self.check_engine(&failed);
        } else {
            assert!(
                self.stream.complete && !self.stream.broken,
                "promise 4: accepted without terminal evidence"
            );
        }
        shared.leave(now, &self.params);
    }

    /// Whether it ended for the reason it says.
    fn check_reason(&self, now: Time, failed: &Failed, shared: &mut Shared) {
        let holds = match failed.stopped_by() {
            StoppedBy::SamePlace => self.places.are_over(),
            StoppedBy::Allowance => {
                let left = shared.scope(&self.params).map(|scope| scope.left);
                left.unwrap_or(self.left) == 0
            }
            StoppedBy::ReplayDisabled => {
                self.params.policy.replay == redrive::recovery::settings::Replay::None
            }
            StoppedBy::Effects => self.claimed || self.stream.fixed_below > 0,
            StoppedBy::Drain => self.drains.is_some_and(|drains| drains <= now),
            StoppedBy::WaitTooLong => {
                let told = failed.verdict.as_ref().and_then(|v| v.retry_after);
                told.is_some_and(|told| {
                    Duration::new(told.seconds as u64, told.nanos as u32)
                        == *self.supplied.last().unwrap()
                })
            }
            StoppedBy::NoReset => self
                .reader
                .as_ref()
                .is_some_and(|reader| reader.delivery == Delivery::PreviewNoReset),
            StoppedBy::Limiter => {
                let named = failed.verdict.as_ref().is_some_and(|v| v.budget == "b");
                named && (self.is_cut || self.is_away() || !self.denied.is_empty())
            }
            StoppedBy::Gate => self.gate.exhausts(),
            StoppedBy::Unspecified => false,
            _ => true,
        };
        assert!(holds, "stopped by {:?}?", failed.stopped_by());
    }

    /// Until when anything may still be sent.
    pub(super) fn admission_ends(&self, shared: &mut Shared) -> Time {
        let scope = shared.scope(&self.params).map(|scope| scope.deadline);
        scope.map_or(self.deadline, |deadline| deadline.min(self.deadline))
    }
}
