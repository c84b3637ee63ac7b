//! Strict limits: each operation in the small, and all of them at random against an account that is too
//! simple to be wrong.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod arrivals;
mod counting;
mod forecast;
mod hand_over;
mod hostile;
mod life;
mod memory;
mod oracle;
mod overruns;
mod random;
mod rests;
mod sooner;
mod support;
