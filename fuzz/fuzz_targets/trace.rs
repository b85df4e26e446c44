//! A recorded workload of any form: refused, or a trace whose lines are read as the same jobs again.
#![no_main]

#[path = "../bodies.rs"]
#[allow(dead_code, reason = "the other targets are not this program's")]
mod bodies;

libfuzzer_sys::fuzz_target!(|input: &str| bodies::trace(input));
