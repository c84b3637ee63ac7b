//! What budgets do to a generation, and what must hold of every reservation.

use std::time::Duration;

use redrive::{
    proto::waiting::Reason,
    recovery::{Event, Takes, Time, Wait},
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
        if self.continues && takes == Takes::Whole {
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
        self.continues = matches!(takes, Takes::Continuation { .. });
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

    /// A budget has no room yet.
    pub(super) fn hold_back(
        &mut self,
        now: Time,
        expected: Option<Duration>,
        commons: &Access,
        shared: &mut Shared,
    ) {
        let Some((target, offered)) = self.asked.clone() else {
            return;
        };
        let wait = Wait {
            reason: Reason::Budget,
            denied: Some(budget()),
            expected,
        };
        let until = expected.map(|expected| now + expected);
        let fits = until.is_none_or(|until| until < self.admission_ends(shared));
        // A caller's deadline may be earlier than what is counted here.
        self.denied.insert(target, (until, offered.clone()));
        self.handle(now, Event::Waiting(wait), commons, shared);
        self.landmarks.insert("held back by a budget");
        let asked = self.asked.as_ref().filter(|(of, _)| *of == target);
        if let Some((_, credentials)) = asked {
            // A credential that is usable again may have been asked for.
            let is_more = credentials.iter().any(|c| !offered.contains(c));
            assert!(fits || is_more, "promise 9: a wait that does not fit");
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
