//! PURE. Strict limits: budgets, and the leases that are granted of them.
//!
//! A budget counts what leaves for a provider, in sliding windows, in calendar days and at a time. An
//! acquire takes of every budget that matches, or of none. A window holds strictly: no stretch of time of
//! its length sees more than its limit arrive at the provider, however sends are bunched and however
//! long it takes from a grant to its send (`log` has the argument); neither does a day. Tokens hold as they
//! were reserved: what a send takes on top is known too late, and counts from when it is known.
//!
//! `acquire` grants, or says what stands in the way; `forecast` says for how long at least. `lease` is what
//! becomes of a grant. A `budget` is its `log`, its `calendar`, the `rest` its provider asked for, and how
//! many of its sends run.
//!
//! Time comes in as a number, calendar days come in named; nothing here reads a clock.

mod acquire;
mod budget;
mod calendar;
mod desk;
mod fairness;
mod forecast;
pub mod headers;
mod lease;
mod log;
mod rest;
mod settings;
mod tally;
pub mod tokens;
mod weights;

pub use acquire::{BudgetId, Denied, Limits, MOST_REQUESTS};
pub use budget::{Full, Limit};
pub use desk::{
    Asked, Choice, Counts, Desk, Event, GRANTS_A_LOOK, Obstacle, OnLoss, Outlook, Pace, Refused,
    Said, Stands, TOLD_A_LOOK,
};
pub use fairness::{Line, REMEMBERED, Ticket};
pub use forecast::Ahead;
pub use lease::{Account, LeaseId};
pub use settings::{DailyLimit, Measure, Refund, Settings, WindowLimit};
pub use weights::{Spent, Weights};

/// Microseconds since the origin of time.
pub type Micros = u64;

/// A calendar day in a budget's zone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Day {
    /// Days since 1970-01-01.
    pub number: i64,
    /// When it ends.
    pub ends: Micros,
}
