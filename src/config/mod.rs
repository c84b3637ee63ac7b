//! The configuration file: strict parsing, checking and resolving.

mod model;

pub use model::*;
