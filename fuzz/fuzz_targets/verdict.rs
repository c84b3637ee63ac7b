#![no_main]

#[path = "../targets/verdict.rs"]
mod verdict;

libfuzzer_sys::fuzz_target!(|data: &[u8]| verdict::run(data));
