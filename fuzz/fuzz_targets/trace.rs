//! A recorded workload of any form: refused, or a trace whose lines are read as the same jobs again.
#![no_main]

use rayfit::simulate::trace::{lines, read};

libfuzzer_sys::fuzz_target!(|text: &str| {
    let Ok(trace) = read(text, "trace") else { return };
    // A few bytes can stand for a million jobs.
    if trace.jobs.len() > 10_000 {
        return;
    }
    let written: Vec<String> = lines(&trace).collect();
    let again = read(&written.join("\n"), "trace").map(|again| again.jobs);
    assert_eq!(again.as_ref(), Ok(&trace.jobs));
});
