//! Compiles the contract under `proto/` without a `protoc` on the machine.

use std::{env, fs, path::PathBuf};

#[allow(
    clippy::disallowed_methods,
    reason = "Cargo speaks to build scripts by environment"
)]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("cargo:rerun-if-changed=proto");
    // It imports all others.
    let descriptors = protox::compile(["redrive/v1/generation.proto"], ["proto"])?;
    let out = PathBuf::from(env::var("OUT_DIR")?);
    fs::write(
        out.join("redrive.v1.bin"),
        prost::Message::encode_to_vec(&descriptors),
    )?;
    tonic_prost_build::configure()
        .codec_path("crate::proto::Codec")
        .bytes(".redrive.v1.NativeBody.json")
        .bytes(".redrive.v1.Delta.native_event")
        .compile_fds(descriptors)?;
    Ok(())
}
