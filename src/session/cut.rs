//! The end of a send whose lease is cut: the engine of a shared budget could not be told in time that it
//! still runs, so others may have its place.

use std::{
    sync::Arc,
    task::{Context, Poll, ready},
};

use super::{driver::Driver, response::Response};
use crate::{
    recovery::Upstream as Seen,
    verdict::{Class, Denied, Failure, Origin, Stage},
};

impl Driver {
    /// Ends the exchange at once. What the provider has refused already stays its verdict.
    pub(super) fn poll_cut(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let Some(running) = &mut self.running else {
            return Poll::Pending;
        };
        let Some(lease) = &mut running.lease else {
            return Poll::Pending;
        };
        ready!(lease.poll_cut(cx));
        let stage = match running.response {
            Response::Awaited => Stage::Request,
            Response::Stream(_) => Stage::Stream,
            Response::Error(_) => {
                self.error_body_ended(false);
                return Poll::Ready(());
            }
        };
        let failure = cut(lease.shared_budget(), stage);
        let attempt = running.attempt;
        self.tell(attempt, Seen::Failed(failure));
        Poll::Ready(())
    }
}

/// Never replayed: it is nobody's fault but ours.
fn cut(budget: Arc<str>, stage: Stage) -> Failure {
    let message = format!(
        "the engine of budget {budget} could not be told in time that this send still runs"
    );
    let mut failure = Failure::new(Class::LimiterUnavailable, Origin::Us, stage, message);
    let limit = "its engine gives no answers".to_owned();
    failure.denied = Some(Box::new(Denied { budget, limit }));
    failure
}
