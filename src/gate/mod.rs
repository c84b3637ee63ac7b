//! PURE. The turn gate: whether a *completed* attempt is good enough to commit.
//!
//! An attempt that ended well for its protocol may still be of no use to an agent: it says nothing, only
//! announces what it should have done, or calls a tool that does not exist. The gate reads a [`Snapshot`]
//! of one attempt under a [`Policy`] and answers [`Decision`]: accept, or try again and why.
//!
//! Owns how an attempt is read ([`Snapshot::of`], and [`Schema`] for the arguments of its calls), the rules
//! ([`decide`]), the ten [`Reason`]s, what a model is told with each ([`hint()`]), how many attempts are judged,
//! and the one protocol recovery that a generation has ([`Turn`]). Never knows a status code, an allowance or a
//! deadline: what becomes of a rejected attempt is `recovery`'s.

mod announced;
mod attempts;
mod decide;
mod hint;
mod native;
mod policy;
mod read;
mod reason;
mod schema;
mod snapshot;
mod tools;
mod turn;

pub use attempts::{Attempts, DEFAULT_ATTEMPTS, MAX_ATTEMPTS, MIN_ATTEMPTS};
pub use decide::{Decision, Finish, decide};
pub use hint::hint;
pub use policy::{Policy, Preset};
pub use read::Piece;
pub use reason::{Reason, Then};
pub use schema::{Misfit, Schema};
pub use snapshot::{ControlKind, Fault, Snapshot, ToolError};
pub use tools::{Choice, Tools};
pub use turn::{Judgement, Turn};
