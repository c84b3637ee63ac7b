//! What can happen to a generation.

use redrive::{
    proto::{Delivery, FinishReason},
    verdict::Class,
};

/// What happens next. `bool`s and indices that do not apply at the moment are passed over.
#[derive(Clone, Debug)]
pub enum Op {
    /// Time passes (milliseconds); what falls due on the way is handed in.
    Pass(u64),
    /// Time passes, and the driver is too busy to notice.
    Jump(u64),
    /// A time-out is handed in although none is due.
    Spurious,
    /// Slot and lease are there, for the credential that is preferred.
    Slot,
    /// For another one that was offered, counted from the last.
    Other(u8),
    /// There is no slot yet.
    Queued,
    /// There is no lease yet; in so many seconds, or nobody knows.
    Held(Option<u64>),
    /// The engine of a budget grants nothing; for so many seconds, or nobody knows.
    Away(Option<u64>),
    /// The engine could not be told that the send still runs.
    Cut,
    /// It is more than a budget can ever hold.
    Never,
    /// It will not be free.
    Refused,
    /// The request was handed over.
    Sent,
    /// The provider says something.
    Says(Says),
    /// An exchange that was ended still says something.
    Late(Says),
    /// The response ends.
    End,
    /// The exchange fails; before or after the hand-over as it stands. With the seconds that the
    /// provider asks to wait.
    Fails(Class, Option<u64>),
    /// The client takes so many frames.
    Reads(u8),
    /// The client acts on what it got, counted back from the newest frame (255: beyond it).
    Effects(u8),
    /// The client ends the generation.
    Cancel,
    /// The client's RPC is gone.
    Lost,
    /// Another RPC takes over.
    Attach(Delivery),
    /// The process goes down in so many milliseconds.
    Drain(u64),
    /// All transcripts together are too large.
    OutOfMemory,
    /// The driver failed: a bug of ours.
    Crash,
}

/// What a provider says in its stream.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Says {
    Text(&'static str),
    Reasoning(&'static str),
    Refusal(&'static str),
    Call(u32),
    Arguments(u32, &'static str),
    /// All arguments of a call again, as the provider's final snapshot has them.
    Whole(u32, &'static str),
    Keepalive(bool),
    Usage(u64),
    Started,
    Finish(FinishReason),
    Done(bool),
    /// An error object, of a failure that may pass or of one that may not.
    Error(bool),
    /// Bytes that are no event.
    Garbage,
    /// What it was asked to continue, once more. Only at the beginning of a continuation.
    Echo,
    /// An answer that begins like the first one. Only at the beginning of a continuation.
    Anew,
}

/// Verdicts that cost one request per target.
pub const PERMANENT: &[Class] = &[
    Class::Auth,
    Class::Permission,
    Class::InvalidRequest,
    Class::QuotaExhausted,
    Class::ContextOverflow,
    Class::ContentFiltered,
    Class::NotFound,
    Class::RedirectRefused,
    Class::Unclassified,
];
