//! Shared budgets against real servers: every test runs with Redis and with Valkey, each a process on a port of
//! its own. Tests that leave their server as it is have one in common, and a domain each.
//!
//! In real time where a server is: `tests/REAL_TIME.md` says why. What windows do is shown with a clock
//! that the test sets, which the script reads instead of the server's.
//!
//! | file | what |
//! |---|---|
//! | `server`, `common` | a server process, and one for many tests |
//! | `domain` | a domain with a clock of the test's, and words for limits |
//! | `oracle`, `at_random` | the same operations on the pure limits and on the server |
//! | `strict` | the rules of `tests/limits`, one by one |
//! | `waiting` | the rules of `tests/budgets` for those who wait |
//! | `together` | pods that share |
//! | `leases` | asked twice, told twice, lost, late, dead |
//! | `forgets` | flushed, restarted, half deleted: nothing is granted for a while |
//! | `learns` | how long that is, for which budget |
//! | `clock` | the server's clock steps |
//! | `turns` | flows of a budget share it by weight, across pods |
//! | `bounded` | what one call may take |
//! | `revisions` | pods that disagree |
//! | `refuses`, `proxy` | a server that refuses, hangs, or answers nonsense; a way that loses answers |
//! | `ways` | a cluster of one, TLS |
//! | `cluster` | a cluster of three, whose slots move |
//! | `sentinels` | whichever server is the primary |
//! | `hammer`, `work` | many at once, by the real clock, and what a decision costs |

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#![allow(
    clippy::disallowed_methods,
    reason = "tests speak with their servers, wait for them, and measure them"
)]

mod at_random;
mod bounded;
mod clock;
mod cluster;
mod common;
mod domain;
mod forgets;
mod hammer;
mod learns;
mod leases;
mod oracle;
mod proxy;
mod refuses;
mod revisions;
mod sentinels;
mod server;
mod strict;
mod together;
mod turns;
mod waiting;
mod ways;
#[allow(dead_code, reason = "benches use the rest")]
mod work;
