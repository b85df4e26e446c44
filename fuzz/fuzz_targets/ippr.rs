//! The `ray.io/ippr` annotation and the quantities in it.
#![no_main]

libfuzzer_sys::fuzz_target!(|text: &str| {
    let _ = rayfit::ray::Ippr::parse(text);
    let _ = rayfit::quantity::Quantity::parse(text);
});
