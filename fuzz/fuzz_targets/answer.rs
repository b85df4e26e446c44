//! Any bytes as a GCS's answer: refused, or read.
#![no_main]

#[path = "../bodies.rs"]
#[allow(dead_code, reason = "the other targets are not this program's")]
mod bodies;

libfuzzer_sys::fuzz_target!(|input: &[u8]| bodies::answer(input));
