//! The simulator on its sockets, seen byte by byte.
//!
//! Real time: it is sockets that are looked at. Nothing here asserts how long anything takes, but for
//! what must not come early.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#![allow(
    clippy::disallowed_methods,
    reason = "tests connect as clients do, and look at the clock"
)]

mod commands;
mod frames;
mod hostile;
mod log;
mod ready;
mod recordings;
mod support;
mod wire;
