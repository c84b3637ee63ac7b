#![no_main]

#[path = "../targets/client.rs"]
mod client;
#[allow(dead_code, reason = "shared with the recovery tests")]
#[path = "../../tests/recovery/support/fixtures.rs"]
mod fixtures;
#[path = "../../tests/model/mod.rs"]
mod model;

libfuzzer_sys::fuzz_target!(|data: &[u8]| client::run(data));
