//! The running server over real sockets, with the real door and a provider of raw HTTP/1.1.
//!
//! In real time: `tests/REAL_TIME.md` says why. One test at a time, because each ends by counting the
//! file descriptors of this process.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#![allow(
    clippy::disallowed_methods,
    reason = "tests open sockets as clients do, and measure the named bounds in real time"
)]

mod bench;
mod clients;
mod provider;
mod providers;
#[path = "../support/mod.rs"]
mod support;
