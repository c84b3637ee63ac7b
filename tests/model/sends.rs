//! What must hold of every request that leaves.

use redrive::recovery::{FollowUp, Time};

use super::{
    ledger::Attempt,
    provider::Stream,
    shared::Shared,
    silence::Silence,
    world::{Exchange, World},
};

impl World {
    /// What a request may go on with, and what is void if it begins anew.
    pub(super) fn go_on(&mut self, attempt: u32, target: usize, follow_up: Option<&FollowUp>) {
        let before = self.attempts.len();
        let hidden = self.stream.is_hidden();
        if follow_up.is_some() {
            assert_eq!(target, self.target, "another target goes on");
            if let Some(last) = self.attempts.last_mut() {
                last.kept = !hidden;
            }
        }
        match follow_up {
            None => {
                assert!(
                    !self.confirmed,
                    "promise 6: a restart after confirmed effects"
                );
                assert_eq!(
                    self.stream.fixed_below, 0,
                    "promise 3: a restart of final text"
                );
                self.void.extend(1..attempt);
                self.attempts
                    .iter_mut()
                    .for_each(|before| before.kept = false);
                self.stream = Stream::first(attempt);
            }
            Some(FollowUp::Continue { partial }) => {
                assert!(self.params.targets[target].continues);
                assert!(!self.refused.contains(&target), "a refusal, asked again");
                if let Some(from) = self.stream.continued_by(attempt) {
                    self.void.extend(from..attempt);
                    for before in self.attempts.iter_mut().skip(from as usize - 1) {
                        before.kept = false;
                    }
                }
                assert_eq!(&**partial, self.stream.sent(), "what is to be continued");
                assert!(!partial.is_empty() && !partial.ends_with(char::is_whitespace));
                self.landmarks.insert("continued");
                if self.stream.of.iter().any(|of| *of > 1) && self.stream.fixed_below > 1 {
                    self.landmarks.insert("continued again");
                }
            }
            Some(FollowUp::Resume { response_id, after }) => {
                assert!(self.params.targets[target].resumes);
                assert_eq!((&**response_id, *after), ("r", self.stream.cursor));
                self.stream.resumed_by(attempt);
                self.landmarks.insert("resumed");
            }
        }
        self.target = target;
        assert_eq!(before as u32 + 1, attempt);
    }

    /// Everything that must hold before a request may leave.
    pub(super) fn send(
        &mut self,
        now: Time,
        attempt: u32,
        target: usize,
        credential: usize,
        shared: &mut Shared,
    ) {
        let asked = self
            .asked
            .take()
            .expect("promise 1: a request without a lease");
        assert_eq!(asked.0, target, "a request without a slot");
        let granted = self.granted.take();
        self.held = None;
        assert_eq!(granted, Some(credential), "promise 1: another's lease");
        assert!(self.exchange.is_none(), "promise 1: two requests at once");
        assert!(!self.cancelled, "promise 8: a request after a cancel");
        assert!(!self.is_cut, "a replay of what our own failure ended");
        assert!(
            !self.permanent.contains(&target),
            "promise 10: a permanent verdict, asked again"
        );
        assert!(
            !self.places.are_over(),
            "same place: a request after the third stall in a row there"
        );
        assert!(now < self.deadline, "a request after the deadline");
        self.check_callers_deadline(now);
        self.check_waits(now, target, credential, shared);
        let left = match shared.scope(&self.params) {
            Some(scope) => {
                assert!(now < scope.deadline, "a request after the scope's deadline");
                &mut scope.left
            }
            None => &mut self.left,
        };
        *left = left
            .checked_sub(1)
            .expect("promise 1: a request beyond the allowance");
        self.attempts.push(Attempt {
            mode: self.mode,
            left: *left,
            ..Attempt::default()
        });
        assert_eq!(attempt as usize, self.attempts.len());
        assert!(attempt <= self.params.policy.max_attempts, "promise 1");
        self.landmarks.extend((target > 0).then_some("fallback"));
        self.landmarks
            .extend((credential > 0).then_some("second credential"));
        let resumes = attempt > 1 && self.stream.cursor > 0;
        let newest = self.stream.blocks.len();
        self.places.dispatched(match resumes {
            true => newest.saturating_sub(1),
            false => newest,
        });
        self.landmarks
            .extend(self.places.doubled.then_some("doubled windows"));
        let timers = self.params.targets[target].timers;
        self.silence = Some(Silence::dispatched(now, timers, self.places.doubled));
        self.exchange = Some(Exchange {
            target,
            credential,
            sent: false,
            settled: false,
            head: false,
            stores: self.params.targets[target].resumes,
            resumes,
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

    fn check_waits(&self, now: Time, target: usize, credential: usize, shared: &Shared) {
        let not_before = self.not_before.get(&target).copied().unwrap_or_default();
        assert!(
            now >= not_before,
            "promise 9: a request before the wait for its target was over"
        );
        let rest = shared.rests.get(&(target, credential)).copied();
        assert!(
            now >= rest.unwrap_or_default(),
            "promise 9: a request with a credential that rests"
        );
    }
}
