//! Budgets at work, on a paused clock.
//!
//! | file | runs on |
//! |---|---|
//! | `fair`, `rests`, `dropped`, `bounded` | every keeper of budgets: this process alone here, and a pod with a real server in `tests/shared_budgets/waiting.rs` |
//! | `waits`, `pace`, `tasks`, `threads` | this process alone: to the microsecond, or of its own tasks and threads |

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::disallowed_methods
)]

/// Each rule as a test of this process alone.
macro_rules! rules {
    ($($rule:ident)+) => {
        mod alone {
            $(
                #[tokio::test(start_paused = true)]
                async fn $rule() {
                    super::$rule(&crate::support::Alone).await;
                }
            )+
        }
    };
}

mod bounded;
mod dropped;
mod fair;
mod pace;
mod rests;
mod support;
mod tasks;
mod threads;
mod waits;
mod words;
