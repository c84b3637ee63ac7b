//! PURE. From evidence to a verdict: why an attempt failed, whether that is transient, and what wait
//! the provider asked for.
//!
//! Owns the classes, the failure value and the wait parser. Never decides what to do next (that is
//! `recovery`), never reads a socket or a clock.

pub mod class;
mod failure;
pub mod transport;

pub use class::Class;
pub use failure::{Failure, MAX_MESSAGE_BYTES, Origin, Stage, clip};
