//! Strict limits, proven at the provider: the running server over real sockets, and a provider that
//! notes when each request arrives. Over its log, by its clock, no window may hold more than its limit.
//!
//! In real time: `tests/REAL_TIME.md` says why. What is asserted is counts and order; the one bound in
//! time is that a limit's capacity is used. Scenarios run one after the other; the long one runs beside
//! them, because it mostly waits.
//!
//! | file | what |
//! |---|---|
//! | `sweep` | the most that any window of a log holds |
//! | `provider`, `way` | the provider on a thread of its own, and a slow way to it |
//! | `sidecar`, `load` | the server, and clients that ask, wait, cancel and vanish |
//! | `proof`, `ledgers` | what must hold of a run, whatever it was |
//! | `scenarios`, `refusals`, `capacity` | the runs |

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#![allow(
    clippy::disallowed_methods,
    reason = "tests open sockets as clients do, and the lag of their loops is measured in real time"
)]

mod capacity;
mod lag;
mod ledgers;
mod load;
mod proof;
mod provider;
mod refusals;
mod scenarios;
mod sidecar;
#[path = "../support/mod.rs"]
mod support;
mod sweep;
mod way;
