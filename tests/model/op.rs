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
    /// The provider says a whole answer, as far as it is heard.
    Answers(&'static [Says]),
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
    /// A call of the tool `f`.
    Call(u32),
    /// A call of the tool `g`, which nobody offers.
    Stray(u32),
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

/// How every announcement of providers begins.
pub const ANNOUNCED: Says = Says::Text("Let me read it.");

/// Whole answers, one for each thing that the turn gate looks at.
pub const ANSWERS: &[&[Says]] = {
    use Says::{Arguments, Call, Done, Finish, Reasoning, Refusal, Stray, Text, Usage};
    const STOP: Says = Finish(FinishReason::Stop);
    const CALLS: Says = Finish(FinishReason::ToolCalls);
    const CUT: Says = Finish(FinishReason::Length);
    const PAUSE: Says = Finish(FinishReason::Pause);
    const FILTER: Says = Finish(FinishReason::ContentFilter);
    const DONE: Says = Done(false);
    &[
        // Nothing, and nothing that is seen.
        &[STOP, DONE],
        &[Usage(2), STOP, DONE],
        &[Reasoning("hm"), Usage(5), STOP, DONE],
        &[Text(" \n"), STOP, DONE],
        // Announced and not done; or done.
        &[ANNOUNCED, Usage(7), STOP, DONE],
        &[Text(" \n"), ANNOUNCED, Text("bc"), STOP, Usage(7), DONE],
        &[ANNOUNCED, Call(0), Arguments(0, "{\"a\":1}"), CALLS, DONE],
        // Calls that nobody can run.
        &[Stray(0), Arguments(0, "{}"), Usage(4), CALLS, DONE],
        &[Call(0), Arguments(0, "{\"a\":"), Usage(4), CALLS, DONE],
        &[Call(0), Arguments(0, "[1]"), CALLS, DONE],
        &[Arguments(1, "{}"), STOP, DONE],
        // Beside one that somebody can.
        &[
            Call(0),
            Arguments(0, "{\"a\":1}"),
            Stray(1),
            Usage(9),
            CALLS,
            DONE,
        ],
        &[
            Call(0),
            Call(1),
            Arguments(0, "{\"a\":"),
            Arguments(1, "{\"a\":1}"),
            STOP,
            DONE,
        ],
        &[
            Text("a"),
            Call(0),
            Arguments(0, "{\"a\":1}"),
            Usage(9),
            CALLS,
            DONE,
        ],
        &[Call(0), CALLS, DONE],
        // Plain ones.
        &[Text("long text"), Usage(6), STOP, DONE],
        &[Refusal("no"), STOP, DONE],
        // Ones that the provider itself has ended.
        &[ANNOUNCED, Usage(7), CUT, DONE],
        &[Call(0), Arguments(0, "{\"a\":"), Usage(7), CUT, DONE],
        &[Call(0), CUT, DONE],
        &[Stray(0), PAUSE, DONE],
        &[Call(0), Arguments(0, "{\"a\":1}"), FILTER, DONE],
        &[FILTER, DONE],
    ]
};

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
