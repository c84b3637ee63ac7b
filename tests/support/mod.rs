//! What the server's tests share: a whole sidecar with a client and a provider that play scripts, a
//! check that every RPC goes through, and a count of what is left at the end.
//!
//! [`bench`] runs on a paused clock: gRPC over in-memory pipes, the provider scripted at the upstream
//! seam, so that ten minutes of silence take no time and sockets play no part. What needs sockets has a
//! bench of its own in `tests/server_sockets`, in real time (`tests/REAL_TIME.md`).

#![allow(dead_code, unused_imports, reason = "each test crate uses its part")]

pub mod bench;
pub mod chat;
pub mod check;
pub mod messages;
pub mod process;
pub mod provider;
pub mod raw;
pub mod responses;
pub mod rpc;
pub mod start;

pub use bench::*;
pub use chat::*;
pub use provider::*;
pub use rpc::*;
pub use start::*;
