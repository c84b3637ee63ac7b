//! The configuration file: what is taken, and what is said of what is not.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "config/support.rs"]
mod support;

#[path = "config/accepted.rs"]
mod accepted;
#[path = "config/budgets.rs"]
mod budgets;
#[path = "config/cli.rs"]
mod cli;
#[path = "config/engines.rs"]
mod engines;
#[path = "config/hostile.rs"]
mod hostile;
#[path = "config/later.rs"]
mod later;
#[path = "config/refused.rs"]
mod refused;
#[path = "config/schema.rs"]
mod schema;
#[path = "config/secrets.rs"]
mod secrets;
