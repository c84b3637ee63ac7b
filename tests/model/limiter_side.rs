//! What budgets do to a generation, and what must hold of every reservation.

use std::time::Duration;

use redrive::{
    proto::{Failed, StoppedBy, VerdictClass, waiting::Reason},
    recovery::{Event, Takes, Time, Upstream, Wait},
    verdict::{Class, Denied, Failure, Origin, Stage},
};

use super::{
    shared::Shared,
    world::{Access, World},
};

impl World {
    /// A slot and a lease are asked for.
    pub(super) fn ask(
        &mut self,
        now: Time,
        target: usize,
        credentials: Vec<usize>,
        takes: Takes,
        shared: &Shared,
    ) {
        assert!(!credentials.is_empty(), "nothing to go with");
        assert!(
            self.exchange.is_none(),
            "promise 1: a lease more than attempts"
        );
        for credential in &credentials {
            let rest = shared.rests.get(&(target, *credential)).copied();
            assert!(
                now >= rest.unwrap_or_default(),
                "a credential that rests was offered"
            );
        }
        // The original request may be less than the rest of its answer with what there is of it.
        if self.continues && matches!(takes, Takes::Whole | Takes::Hinted { .. }) {
            self.denied.remove(&target);
        }
        if let Some((until, offered)) = self.denied.get(&target) {
            let is_over = until.is_some_and(|until| until <= now);
            let is_more = credentials.iter().any(|c| !offered.contains(c));
            // One that was not offered may have been to return, and have been told to rest again since.
            let count = self.params.targets[target].credentials.max(1);
            let may_return = offered.len() < count;
            assert!(
                is_over || is_more || may_return,
                "promise 9: asked again too early"
            );
            // It was asked anew: what a smaller choice was told no longer counts.
            self.denied.remove(&target);
        }
        if takes == Takes::Nothing {
            assert!(self.params.targets[target].resumes, "tokens of nobody");
        }
        self.granted = None;
        self.held = None;
        self.continues = matches!(takes, Takes::Continuation { .. });
        self.takes = Some(takes);
        self.asked = Some((target, credentials));
    }

    /// Slot and lease are there.
    pub(super) fn grant(&mut self, now: Time, other: usize, commons: &Access, shared: &mut Shared) {
        let Some((_, offered)) = &self.asked else {
            return;
        };
        let credential = match other {
            0 => offered[0],
            other => offered[offered.len() - 1 - (other - 1) % offered.len()],
        };
        self.landmarks
            .extend((credential != offered[0]).then_some("not the preferred credential"));
        self.granted = Some(credential);
        self.handle(now, Event::Reserved { credential }, commons, shared);
    }

    /// A budget has no room yet, or its engine grants nothing.
    pub(super) fn hold_back(
        &mut self,
        now: Time,
        reason: Reason,
        seconds: Option<u64>,
        commons: &Access,
        shared: &mut Shared,
    ) {
        let Some((target, offered)) = self.asked.clone() else {
            return;
        };
        let expected = seconds.map(Duration::from_secs);
        let is_away = reason == Reason::LimiterUnavailable;
        self.held = Some(reason);
        self.was_away |= is_away;
        let wait = Wait {
            reason,
            denied: Some(budget()),
            expected,
        };
        let until = expected.map(|expected| now + expected);
        let fits = until.is_none_or(|until| until < self.admission_ends(shared));
        // A caller's deadline may be earlier than what is counted here.
        self.denied.insert(target, (until, offered.clone()));
        self.handle(now, Event::Waiting(wait), commons, shared);
        self.landmarks.insert(match is_away {
            true => "held back by an engine",
            false => "held back by a budget",
        });
        let asked = self.asked.as_ref().filter(|(of, _)| *of == target);
        if let Some((_, credentials)) = asked {
            // A credential that is usable again may have been asked for.
            let is_more = credentials.iter().any(|c| !offered.contains(c));
            // Or one was to be, and has been told to rest again since.
            let may_return = offered.len() < self.params.targets[target].credentials.max(1);
            assert!(
                fits || is_more || may_return,
                "promise 9: a wait that does not fit"
            );
            if fits {
                self.denied.remove(&target);
            }
        }
    }

    /// It can never be.
    pub(super) fn refuse(&mut self, now: Time, commons: &Access, shared: &mut Shared) {
        let Some((target, offered)) = self.asked.clone() else {
            return;
        };
        self.denied.insert(target, (None, offered));
        let mut failure = Failure::new(
            Class::ExceedsLimit,
            Origin::Us,
            Stage::Admission,
            "too much",
        );
        failure.denied = Some(Box::new(budget()));
        self.handle(now, Event::ReservationRefused(failure), commons, shared);
        self.landmarks.insert("refused by a budget");
    }

    /// The engine could not be told that the send still runs.
    pub(super) fn cut(&mut self, now: Time, commons: &Access, shared: &mut Shared) {
        let Some(exchange) = &self.exchange else {
            return;
        };
        let stage = match exchange.head {
            true => Stage::Stream,
            false => Stage::Request,
        };
        let mut failure = Failure::new(Class::LimiterUnavailable, Origin::Us, stage, "cut");
        failure.denied = Some(Box::new(budget()));
        let is_complete = self.stream.complete;
        self.is_cut = !is_complete;
        let signal = Upstream::Failed(failure);
        let attempt = self.attempts.len() as u32;
        self.handle(now, Event::Upstream { attempt, signal }, commons, shared);
        assert!(self.exchange.is_none(), "a send that is cut and runs on");
        if is_complete {
            return;
        }
        let failed = self.generation.failed();
        let class = failed.and_then(|failed| Some(failed.verdict.as_ref()?.class()));
        assert_eq!(class, Some(VerdictClass::LimiterUnavailable));
        self.landmarks.insert("cut");
    }

    /// Whether an engine is what stands in the way.
    pub(super) fn is_away(&self) -> bool {
        self.held == Some(Reason::LimiterUnavailable)
    }

    /// An engine that is away is the verdict where nothing was sent, and only there; and a cut is.
    pub(super) fn check_engine(&mut self, failed: &Failed) {
        let verdict = failed.verdict.as_ref().expect("a verdict");
        let is_first = self.attempts.is_empty();
        if verdict.class() == VerdictClass::LimiterUnavailable {
            assert!(verdict.retryable);
            assert_eq!(failed.stopped_by(), StoppedBy::Limiter);
            assert!(
                self.is_cut || (self.was_away && is_first),
                "the verdict of an attempt is masked"
            );
            self.landmarks
                .extend((!self.is_cut).then_some("an engine that stayed away"));
        }
        if failed.stopped_by() == StoppedBy::Deadline {
            let callers = !is_first && verdict.class() == VerdictClass::Deadline;
            assert!(
                !self.is_away() || callers,
                "a deadline that hides an engine"
            );
        }
    }

    /// What may have left is settled before it is over.
    pub(super) fn check_settled(&self) {
        let Some(exchange) = &self.exchange else {
            return;
        };
        assert_eq!(
            exchange.sent, exchange.settled,
            "a lease that was not settled"
        );
    }
}

fn budget() -> Denied {
    Denied {
        budget: "b".into(),
        limit: "requests: 1 in 1m".into(),
    }
}
