//! PURE. The recovery core: one generation is one [`Generation`], a state machine in plain
//! synchronous code.
//!
//! Owns the allowance, the deadline, the timers, the decision to try again, the ledger and what the
//! client is told. Holds no socket, clock, random source or lock: time, jitter and everything that
//! generations share ([`Commons`]) come in as values.
//!
//! # The driver's contract
//!
//! *Inputs* (`handle`): client frames, reservations, signals of the exchange, timers, drain.
//! *Outputs*: [`Generation::poll_command`], [`Generation::poll_timeout`], and
//! [`Generation::next_frame`], which is called only when the client's transport asks.
//!
//! 1. One `handle`, then every command, before the next `handle`.
//! 2. Commands are carried out in order. `Abort` ends the exchange and gives up the reservation; a
//!    signal of an ended exchange may still be handed in, it is ignored by its attempt number.
//! 3. `poll_timeout` is asked again after every `handle`. When the time has come, what already lies in
//!    the exchange is handed in first: silence is measured at the provider, not at a busy driver.
//! 4. `Reserve` is answered by `Reserved`, `Waiting` (any number of times, then `Reserved` or
//!    `ReservationRefused`) or `ReservationRefused`. Nobody keeps a slot while it waits for a lease, nor
//!    a lease while it waits for a slot. `Reserved` is followed by `Send`, or by `Abort` if the target
//!    or the credential became unusable meanwhile. `Abort` and a new `Reserve` give up what is held or
//!    waited for, and leave nothing behind.
//! 5. The lease of an attempt is held until `Settle`, which comes if the attempt may have left, or until
//!    `Abort`, after which it goes back. `Answered` and `Penalise` come before them.
//! 6. After `Observe(Ended)` there is a terminal frame; nothing but `Attach`, `ClientLost` and
//!    `TimerDue` changes anything then.

mod admission;
mod attempt;
mod backoff;
mod circuit;
mod client;
mod commit;
pub mod commons;
mod delivery;
mod dispatch;
mod end;
pub mod event;
mod gate;
mod generation;
mod ledger;
mod limited;
mod next;
pub mod policy;
mod retry_budget;
mod same_place;
pub mod scope;
mod seam;
mod sequel;
pub mod settings;
mod snapshot;
mod spent;
mod state;
mod time;
mod timers;
mod transcript;

pub use client::Next;
pub use commons::{Access, Commons};
pub use event::{Command, Event, FollowUp, Hint, Observation, Takes, Upstream, Wait};
pub use gate::Gate;
pub use generation::{Generation, Params};
pub use ledger::{duration, verdict};
pub use policy::Target;
pub use time::Time;
