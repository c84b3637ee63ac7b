//! The queue before strict limits: who is first, who holds what, what is told, and that nothing is left
//! behind; each in the small, and all at random.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod at_random;
mod fair;
mod held;
mod honest;
mod shared;
mod support;
mod told;
mod ways;
