//! `redrive generate` against `redrive serve`, as processes, with a scripted provider behind them.
//!
//! In real time, because it is about processes, signals and sockets. They assert order and content;
//! the one bound in time is the end after Ctrl-C.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#![allow(
    clippy::disallowed_methods,
    reason = "tests look for a listener by hand, and measure the named bound"
)]

mod gated;
mod interrupted;
mod protocols;
mod shown;
mod support;
mod told;
