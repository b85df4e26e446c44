//! The body of an admission request.
#![no_main]

#[path = "../bodies.rs"]
#[allow(dead_code, reason = "the other targets are not this program's")]
mod bodies;

libfuzzer_sys::fuzz_target!(|input: &[u8]| bodies::review(input));
