//! A manifest as `rayfit check` reads it.
#![no_main]

libfuzzer_sys::fuzz_target!(|text: &str| {
    let _ = rayfit::yaml::read(text);
});
