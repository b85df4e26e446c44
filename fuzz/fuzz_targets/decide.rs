//! Any demand that a GCS may report, beside any limits: decided, and within what every plan keeps.
#![no_main]

#[path = "../bodies.rs"]
#[allow(dead_code, reason = "the other targets are not this program's")]
mod bodies;

libfuzzer_sys::fuzz_target!(|input: ([i64; 6], &[u8])| bodies::decide(input));
