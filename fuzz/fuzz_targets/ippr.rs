//! The `ray.io/ippr` annotation and the quantities in it.
#![no_main]

#[path = "../bodies.rs"]
#[allow(dead_code, reason = "the other targets are not this program's")]
mod bodies;

libfuzzer_sys::fuzz_target!(|input: &str| bodies::ippr(input));
