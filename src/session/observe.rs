//! Tells telemetry what the core observed.

use std::time::Duration;

use super::{Work, driver::Driver};
use crate::{recovery::Observation, telemetry::Attempt};

impl Driver {
    pub(super) fn observe(&mut self, observation: Observation) {
        if observation == Observation::Ended {
            self.observe_end();
            return self.session.registry.ended(&self.session);
        }
        let Some(Work { plan, observer }) = &mut self.work else {
            return;
        };
        match observation {
            Observation::Waiting {
                reason,
                budget,
                expected,
            } => {
                observer.waiting(reason, &budget, expected);
            }
            Observation::AttemptStarted {
                attempt,
                target,
                mode,
            } => {
                if let Some(planned) = plan.targets.get(target) {
                    observer.attempt_started(&Attempt {
                        attempt,
                        target: &planned.name,
                        provider: &planned.provider.name,
                        model: &planned.model,
                        mode,
                        base_url: &planned.provider.endpoint.base_url,
                    });
                }
            }
            Observation::Sent => observer.sent(),
            Observation::Head { status } => observer.response_head(status),
            Observation::FirstToken { after } => observer.first_token(after),
            Observation::Recovered { after } => observer.recovered(after),
            Observation::PreviewReset { attempt, class, .. } => {
                observer.preview_reset(attempt, class);
            }
            Observation::UnknownEvent => observer.unknown_event(),
            Observation::Stall { timer, length } => observer.stall(timer, length),
            Observation::GateRejected { reason, then } => observer.gate_rejected(reason, then),
            Observation::AttemptEnded(entry) => observer.attempt_ended(&entry),
            Observation::Ended => {}
        }
    }

    fn observe_end(&mut self) {
        let Some(Work { observer, .. }) = self.work.take() else {
            return;
        };
        let elapsed = self.elapsed();
        if let Some(committed) = self.session.committed() {
            let ledger = committed.ledger.clone().unwrap_or_default();
            observer.committed(&committed, &ledger, elapsed);
        } else if let Some(failed) = self.session.failed() {
            observer.failed(&failed, elapsed);
        }
    }

    fn elapsed(&self) -> Duration {
        self.session.environment.clock.now().since(self.started)
    }
}
