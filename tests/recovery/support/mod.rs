//! A tiny harness: one generation on a virtual clock, and frames as lines of text.

pub mod fixtures;
pub mod script;
pub mod show;
pub mod spoken;

pub use fixtures::*;
pub use script::Script;
