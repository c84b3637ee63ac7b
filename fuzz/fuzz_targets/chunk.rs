#![no_main]

#[path = "../targets/chunk.rs"]
mod chunk;

libfuzzer_sys::fuzz_target!(|data: &[u8]| chunk::run(data));
