//! An account of drivers, providers and clients that is kept apart from the core's own, and checks the
//! promises at every step of whatever happens. The properties of `recovery_promises.rs` and the
//! simulation of `simulation/` play their events against it.

#![allow(dead_code, unused_imports, reason = "each test crate uses its part")]

mod client_side;
mod ends;
mod fleet;
mod gate_side;
mod ledger;
mod limiter_side;
mod op;
mod places;
mod provider;
mod provider_side;
mod reader;
mod rules;
mod sends;
mod shared;
mod silence;
mod world;

pub use fleet::Fleet;
pub use op::{ANNOUNCED, ANSWERS, Op, PERMANENT, Says};
pub use provider::{Block, Stream, blocks_of, called};
pub use rules::{CHOICES, HINT, OFFERS, Offer, Rules, STRICTNESS, Strictness, Wanted, told};
