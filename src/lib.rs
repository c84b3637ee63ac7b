//! Redrive keeps LLM generations whole.

pub mod config;
pub mod proto;
pub mod protocol;
pub mod recovery;
pub mod upstream;
pub mod verdict;
