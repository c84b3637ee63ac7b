//! IO. The commands.

pub mod drain;
pub mod health;
mod loopback;
