//! IO. Everything that listens.

pub mod admin;
mod http;
pub mod public;
mod readiness;

pub use readiness::{Readiness, State};
