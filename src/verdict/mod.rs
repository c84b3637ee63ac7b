//! PURE. From evidence to a verdict: why an attempt failed, whether that is transient, and what wait
//! the provider asked for.
//!
//! Owns the classes, the failure value, the tables of provider codes and phrases, and the wait
//! parser. Never decides what to do next (that is `recovery`), never reads a socket or a clock.
//!
//! Evidence comes in four kinds, each with its own entrance: [`http`] (a response that is an error),
//! [`inband`] (an error inside a successful response), [`decode`] (bytes that are not the protocol)
//! and [`transport`] (no response, or half of one). The first two share one reading of the body
//! ([`ErrorObject`]) and one order of evidence (`decide`).

mod body;
pub mod class;
mod codes;
mod decide;
pub mod decode;
mod failure;
pub mod http;
pub mod inband;
mod message;
mod phrases;
pub mod transport;
pub mod wait;

pub use body::{ErrorObject, MAX_BODY_BYTES};
pub use class::Class;
pub use failure::{Denied, Failure, MAX_MESSAGE_BYTES, Origin, Stage, clip};
