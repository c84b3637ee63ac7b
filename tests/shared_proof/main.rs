//! Shared limits, proven at the provider: eight sidecar processes, one engine, and a provider that notes when
//! each request arrives. Whatever befalls the engine, the way to it or a pod, no window of its log holds more
//! than the limit; every arrival is a send of one ledger; and the load goes on within a stated time.
//!
//! In real time: `tests/REAL_TIME.md` says why. Scenarios mostly wait, so those of one test run side by side,
//! each with an engine of its own. `REDRIVE_PROOF=long` runs each for minutes instead of seconds.
//!
//! | file | what |
//! |---|---|
//! | `stage`, `fleet`, `load` | an engine, eight pods on it, and clients that ask in bursts |
//! | `road`, `replica` | a way that can be slow or lead elsewhere, a replica that can be cut off |
//! | `proof` | what must hold of a run, whatever befell it |
//! | `plain`, `lost`, `forgets`, `clock`, `ways`, `pods`, `refusals` | the scenarios |

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#![allow(
    clippy::disallowed_methods,
    reason = "tests open sockets as clients do, start processes, and wait for them in real time"
)]

mod clock;
mod fleet;
mod forgets;
#[path = "../limits_proof/lag.rs"]
mod lag;
#[path = "../limits_proof/ledgers.rs"]
mod ledgers;
mod load;
mod lost;
mod plain;
mod pods;
mod proof;
#[path = "../limits_proof/provider.rs"]
mod provider;
mod refusals;
mod replica;
mod road;
#[path = "../shared_budgets/server.rs"]
#[allow(dead_code, reason = "this crate uses its part")]
mod server;
mod stage;
#[path = "../support/mod.rs"]
mod support;
#[path = "../limits_proof/sweep.rs"]
mod sweep;
mod ways;
