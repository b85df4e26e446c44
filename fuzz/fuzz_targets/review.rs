//! The body of an admission request.
#![no_main]

libfuzzer_sys::fuzz_target!(|body: &[u8]| {
    let _ = rayfit::admission::review::Review::parse(body);
});
