//! The door out against real sockets on loopback: servers of a few lines that count what reaches them.
//!
//! These tests run in real time. They assert order and counts; the one bound in time is the close after
//! a cancel (`cancel`).
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::disallowed_methods
)]

mod bodies;
mod cancel;
mod connect;
mod frames;
mod http1;
mod http2;
mod permits;
mod proxy;
mod slots;
mod support;
mod tls;
