//! IO. The commands.

pub mod check;
pub mod drain;
pub mod health;
mod loopback;
pub mod schema;
