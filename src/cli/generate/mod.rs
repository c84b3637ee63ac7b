//! `redrive generate`: a terminal client of a running sidecar.

pub mod client;
