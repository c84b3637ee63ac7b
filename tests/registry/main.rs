//! Sessions and their registry, driven without a server: what only happens between two RPCs, or with a
//! provider that no server in order has.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#![allow(
    clippy::disallowed_methods,
    reason = "tests call the server as clients do, and read the clock that they pause"
)]

mod flood;
mod kept;
mod known;
mod leaving;
mod rig;
#[path = "../support/mod.rs"]
mod support;
