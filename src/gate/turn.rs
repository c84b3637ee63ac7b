//! The attempts of one generation, as the gate sees them.

use super::{Attempts, Decision, Finish, Policy, Reason, Snapshot, decide};

/// Judges the completed attempts of one generation, one after the other.
///
/// Keeps what goes beyond one attempt: how many were judged, and whether the one protocol recovery is
/// spent. A retry that it asks for is also an attempt of the allowance, which it does not know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Turn {
    policy: Policy,
    attempts: Attempts,
    judged: u32,
    recovery_spent: bool,
}

/// What is to be done with an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Judgement {
    /// Commit it.
    Accept {
        /// As what.
        finish: Finish,
        /// Leave out its visible text.
        suppress_text: bool,
    },
    /// Try again, with the hint of this reason.
    Retry(Reason),
    /// Commit it as it is, although it was rejected for this reason: a further attempt would end the
    /// same way, and it is of more use than nothing.
    Deliver(Reason),
    /// It was rejected for this reason, and it was the last that is judged.
    Exhausted(Reason),
}

impl Turn {
    /// A generation of which nothing has been judged.
    pub fn new(policy: Policy, attempts: Attempts) -> Self {
        Self {
            policy,
            attempts,
            judged: 0,
            recovery_spent: false,
        }
    }

    /// Judges the next completed attempt. What `snapshot` says of the protocol recovery is added to what
    /// is known here.
    pub fn judge(&mut self, mut snapshot: Snapshot<'_>) -> Judgement {
        self.judged = self.judged.saturating_add(1);
        snapshot.protocol_recovery_spent |= self.recovery_spent;
        let reason = match decide(&snapshot, &self.policy) {
            Decision::Accept {
                finish,
                suppress_text,
            } => {
                return Judgement::Accept {
                    finish,
                    suppress_text,
                };
            }
            Decision::Retry { reason } => reason,
        };
        if reason.is_protocol_recovery() && snapshot.protocol_recovery_spent {
            return Judgement::Deliver(reason);
        }
        if self.judged >= self.attempts.get() {
            return at_the_end(reason, &snapshot);
        }
        self.recovery_spent |= reason.is_protocol_recovery();
        Judgement::Retry(reason)
    }

    /// What becomes of an attempt that was rejected for `reason` where nothing is left to try it again with,
    /// whatever the reason for that.
    pub fn give_up(reason: Reason, snapshot: &Snapshot<'_>) -> Judgement {
        at_the_end(reason, snapshot)
    }

    /// How many attempts were judged.
    pub fn judged(&self) -> u32 {
        self.judged
    }
}

/// What becomes of the last attempt that is judged.
fn at_the_end(reason: Reason, snapshot: &Snapshot<'_>) -> Judgement {
    match reason {
        // What it says can be read all the same.
        Reason::InvalidControl if !snapshot.is_blank() => Judgement::Deliver(reason),
        Reason::ThoughtToolCall | Reason::MissingTool => Judgement::Deliver(reason),
        Reason::Empty
        | Reason::Bare
        | Reason::InvalidControl
        | Reason::RequiredTool
        | Reason::ToolError
        | Reason::ProseWithTools
        | Reason::Intercepted
        | Reason::MalformedProtocol => Judgement::Exhausted(reason),
    }
}
