//! Redrive keeps LLM generations whole.

pub mod cli;
pub mod clock;
pub mod config;
pub mod proto;
pub mod protocol;
pub mod recovery;
pub mod server;
pub mod session;
pub mod simulator;
pub mod telemetry;
pub mod upstream;
pub mod verdict;
