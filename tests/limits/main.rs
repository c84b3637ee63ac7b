//! Strict limits: each operation in the small, and all of them at random against an account that is too
//! simple to be wrong.
//!
//! | file | runs on |
//! |---|---|
//! | `counting`, `hand_over`, `overruns`, `rests`, `life`, `memory`, `edges` | every `engine`: the pure limits here, and real servers in `tests/shared_budgets/strict.rs` |
//! | `alone` | the pure limits: on purpose different from a shared engine, or not asked of one |
//! | `forecast`, `sooner` | the pure limits: only the process itself looks ahead |
//! | `arrivals`, `random`, `oracle`, `hostile` | the pure limits, at random; `tests/shared_budgets/at_random.rs` holds servers against them |

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

/// Each rule as a test on the pure limits.
macro_rules! rules {
    ($($rule:ident)+) => {
        mod on_limits {
            $(
                #[test]
                fn $rule() {
                    super::$rule::<redrive::limits::Limits>();
                }
            )+
        }
    };
}

mod alone;
mod arrivals;
mod counting;
mod edges;
mod engine;
mod forecast;
mod hand_over;
mod hostile;
mod life;
mod memory;
mod oracle;
mod overruns;
mod pure;
mod random;
mod rests;
mod sooner;
mod support;
