//! The contract, generated from `proto/redrive/v1/`: plain data, and the gRPC service that carries it.
//! The proto files hold the documentation of every field; `generation.proto` is the place to start.
//!
//! The pure rooms use the messages as values (a frame is compared whole in tests); only `server` and
//! `cli` use the service.

mod codec;

#[allow(missing_docs, clippy::all, clippy::pedantic, rustdoc::all)]
mod generated {
    tonic::include_proto!("redrive.v1");
}

pub use codec::Codec;
pub use generated::*;

/// The compiled descriptors, served by gRPC reflection.
pub const FILE_DESCRIPTOR_SET: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/redrive.v1.bin"));
