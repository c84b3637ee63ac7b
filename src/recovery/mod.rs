//! PURE. The recovery core.

pub mod settings;
mod time;

pub use time::Time;
