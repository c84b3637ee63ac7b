//! What goes into a generation and what comes out.

use std::{fmt, sync::Arc, time::Duration};

use super::Time;
use crate::{
    gate,
    limits::Spent,
    proto::{self, Delivery, LedgerEntry, WaitSource, waiting},
    protocol,
    verdict::{Class, Denied, Failure},
};

/// An input. Every one is handled completely before the next. What a client does counts only while its
/// RPC is the newest one ([`super::Generation::rpc`]); the driver drops the rest.
#[derive(Debug)]
pub enum Event<'a> {
    /// The first RPC is there: `accepted` goes out and the first target is looked for.
    Start,
    /// A connection slot and a lease of every budget that matches are held for the reserved target.
    Reserved {
        /// Which of the credentials that [`Command::Reserve`] offered the lease is for.
        credential: usize,
    },
    /// There is no slot or no lease yet; the generation stands in line. Told again when what stands in
    /// the way has changed, or how long it is expected to.
    Waiting(Wait),
    /// There is no slot or no lease, and no standing in line for it: the queue is full (no_target for
    /// slots, rate_limited for leases), or the attempt is more than a budget can ever hold
    /// (exceeds_limit).
    ReservationRefused(Failure),
    /// Something about the exchange of `attempt`. Late ones (another attempt's) are ignored.
    Upstream {
        /// The attempt that the exchange was opened for.
        attempt: u32,
        /// What happened.
        signal: Upstream<'a>,
    },
    /// The client acts on what it got.
    Effects {
        /// Up to this sequence number of its RPC.
        through_sequence: u64,
    },
    /// The client ends the generation.
    Cancel {
        /// Why, in the client's words.
        reason: &'a str,
    },
    /// The client broke the frame protocol; the generation is cancelled.
    Violation(Failure),
    /// The client's RPC was cancelled or lost.
    ClientLost,
    /// Another RPC takes over; it is given everything that is not void from the start.
    Attach {
        /// What it wants to see.
        delivery: Delivery,
        /// When its own deadline fires.
        caller_deadline: Option<Time>,
    },
    /// All transcripts together have reached their bound and this one would pass it.
    OutOfMemory,
    /// The process is going down: what still runs then ends as draining.
    Drain {
        /// The end of the grace.
        until: Time,
    },
    /// What drives the generation failed: a bug of ours.
    Crashed,
    /// `poll_timeout` has come.
    TimerDue,
}

/// What the driver saw of an exchange.
#[derive(Debug)]
pub enum Upstream<'a> {
    /// The request is handed to a ready connection: from here on it may have left.
    Sent,
    /// The hand-over proved that nothing has left.
    Stayed,
    /// A response head; the provider has the request.
    Head {
        /// The HTTP status.
        status: u16,
        /// The provider's request id, from its headers.
        request_id: Option<&'a str>,
    },
    /// Decoded body bytes.
    Decoded(protocol::Event<'a>),
    /// The body ended as its framing says.
    End,
    /// The exchange failed, or its response was an error; or its lease was cut, which is a failure of our
    /// own that names the budget.
    Failed(Failure),
}

/// What the driver has to do, in order.
#[derive(Debug, PartialEq)]
pub enum Command {
    /// Get a connection slot and a lease for a target; answered by `Reserved`, `Waiting` or
    /// `ReservationRefused`. Replaces an earlier reservation.
    Reserve {
        /// Index into the route's targets.
        target: usize,
        /// Credentials that may be used, in order of preference: indices into the provider's, or 0
        /// alone where it has none.
        credentials: Vec<usize>,
        /// What it takes of budgets that count tokens.
        takes: Takes,
    },
    /// Send the request, once, with the reserved slot and lease.
    Send {
        /// The attempt; stamps every signal of the exchange.
        attempt: u32,
        /// Index into the route's targets.
        target: usize,
        /// Index into the provider's credentials, if it has any.
        credential: Option<usize>,
        /// Stands at the end of a copy of the original request, if it is there: the gate has rejected an
        /// answer.
        hint: Option<Hint>,
        /// Not the original request, but what goes on where another attempt ended.
        follow_up: Option<Box<FollowUp>>,
    },
    /// The answer has begun: the provider has let the attempt in.
    Answered,
    /// The provider has refused the attempt for a rate limit: the budgets of its lease that stand for
    /// the provider rest for so long.
    Penalise {
        /// As the provider asked.
        wait: Duration,
    },
    /// The attempt is over and has cost this much of its lease. Comes before the `Abort` or `Finish` of
    /// an attempt that may have left; the lease of one that did not goes back whole.
    Settle(Spent),
    /// End the exchange at once, and give up a reservation.
    Abort {
        /// The provider stalled: its connection takes no new requests.
        condemn: bool,
    },
    /// The response was accepted: let the connection be used again.
    Finish,
    /// For telemetry.
    Observe(Observation),
}

/// What an attempt takes of budgets that count tokens. Of all others each takes one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Takes {
    /// What the original request is estimated to.
    Whole,
    /// The same, and the hint on top of the prompt.
    Hinted {
        /// Its length in bytes.
        hint: usize,
    },
    /// The same, and the text that is to be continued on top of the prompt, with the hint if there is one.
    Continuation {
        /// Their length in bytes.
        partial: usize,
    },
    /// Nothing: the tokens of a stored response were taken by the attempt that made it.
    Nothing,
}

/// What stands between a generation and its next attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wait {
    /// `CONNECTION` for a slot; `BUDGET`, `COOLDOWN` or `LIMITER_UNAVAILABLE` for a budget: it has no room,
    /// it rests, its engine grants nothing.
    pub reason: waiting::Reason,
    /// The budget, where it is one.
    pub denied: Option<Denied>,
    /// How long it lasts, from now; unknown where it depends on others.
    pub expected: Option<Duration>,
}

/// What the model is told of the last answer that the gate rejected. In a cheap copy: a replay sends the
/// same.
#[derive(Clone, PartialEq, Eq)]
pub struct Hint(Arc<str>);

impl Hint {
    /// A hint of this text.
    pub fn new(text: &str) -> Self {
        Self(text.into())
    }

    /// Its text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Hint {
    /// Not the text: it repeats what the model wrote.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Hint({} bytes)", self.0.len())
    }
}

/// A request for the rest of an answer.
#[derive(Clone, PartialEq, Eq)]
pub enum FollowUp {
    /// The original request, followed by the text that the answer begins with.
    Continue {
        /// Without white space at its end, and never empty.
        partial: Arc<str>,
    },
    /// The stream of a stored response, from an event on.
    Resume {
        /// The provider's id of it.
        response_id: Box<str>,
        /// The sequence number of the last event that is known.
        after: u64,
    },
}

impl fmt::Debug for FollowUp {
    /// Not the text: it is content.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Continue { partial } => f
                .debug_struct("Continue")
                .field("partial_len", &partial.len())
                .finish(),
            Self::Resume { response_id, after } => f
                .debug_struct("Resume")
                .field("response_id", response_id)
                .field("after", after)
                .finish(),
        }
    }
}

/// What telemetry is told.
#[derive(Debug, PartialEq)]
pub enum Observation {
    /// A wait began.
    Waiting {
        /// What for.
        reason: waiting::Reason,
        /// Of which budget; empty where it is none.
        budget: String,
        /// How long it is expected to last.
        expected: Option<Duration>,
    },
    /// An attempt was dispatched.
    AttemptStarted {
        /// Its number.
        attempt: u32,
        /// Index into the route's targets.
        target: usize,
        /// How it came about.
        mode: proto::Mode,
    },
    /// The request of the attempt may have left.
    Sent,
    /// A response head came.
    Head {
        /// The HTTP status.
        status: u16,
    },
    /// The provider sent an event or a block that this version does not know.
    UnknownEvent,
    /// A stall timer ran out.
    Stall {
        /// Its name.
        timer: &'static str,
        /// Its length.
        length: Duration,
    },
    /// The first substantive event of the generation's first attempt that had one.
    FirstToken {
        /// Since `accepted`.
        after: Duration,
    },
    /// The first substantive event after a failure.
    Recovered {
        /// Since the failure was known.
        after: Duration,
    },
    /// What an attempt had previewed is void.
    PreviewReset {
        /// The attempt.
        attempt: u32,
        /// Only this block of it, while the attempt goes on.
        block: Option<u32>,
        /// Why.
        class: Class,
    },
    /// The turn gate rejected the completed attempt in flight.
    GateRejected {
        /// Why.
        reason: gate::Reason,
        /// What became of it.
        then: gate::Then,
    },
    /// An attempt ended.
    AttemptEnded(Box<LedgerEntry>),
    /// The generation ended.
    Ended,
}

/// How long something was waited for, and who asked for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Waited {
    /// The whole time before the attempt.
    pub total: Duration,
    /// Who asked for it.
    pub source: WaitSource,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_follow_up_is_printed_without_its_text() {
        let partial = "the answer so far".into();
        let printed = format!("{:?}", FollowUp::Continue { partial });
        assert_eq!(printed, "Continue { partial_len: 17 }");
    }
}
