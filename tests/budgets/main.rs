//! Budgets at work, on a paused clock.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::disallowed_methods
)]

mod bounded;
mod dropped;
mod fair;
mod pace;
mod rests;
mod support;
mod threads;
mod waits;
