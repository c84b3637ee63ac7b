//! What can be seen from outside: metrics text, spans, log lines, the HTTP listeners and the
//! commands that ask them.
//!
//! In real time, because they need sockets: `collector` (bounds: a hanging collector delays the end
//! by 3 s at most), `listeners`, `commands` and `budgets_command` (bound: a silent connection is closed after 10 s).

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#![allow(
    clippy::disallowed_methods,
    reason = "tests speak HTTP by hand and measure the named bounds in real time"
)]

mod budgets_command;
mod collector;
mod commands;
mod listeners;
mod logs;
mod metrics;
mod spans;
mod support;
