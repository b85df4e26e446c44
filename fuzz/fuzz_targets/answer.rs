//! Any bytes as a GCS's answer: refused, or read.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let _ = rayfit::gcs::read_state(bytes);
});
