//! Nothing that a test asserts is decided by the clock on the wall, so that tests pass on any machine.

use std::path::PathBuf;

use crate::architecture_support::clock::{self, ByTheClock};
use crate::architecture_support::imports::Modules;
use crate::architecture_support::{files, read, root, source, sources};

/// What to do instead.
const ADVICE: &str = "wait for a condition, with pauses of less than 100 ms between two looks at it; assert the order of \
    events, or their number; or let time be virtual, by #[tokio::test(start_paused = true)]. Helpers of such tests \
    stand in a file in which all asynchronous tests are such, or call tokio::time::advance(Duration::ZERO) first, which \
    panics where time is real";

/// The modules of the crate that are there for tests only, as the paths of their files begin.
fn test_modules() -> Vec<PathBuf> {
    let modules = Modules::all().scans.iter().flat_map(|(path, scan)| {
        let folder = source(path.join("/"));
        scan.tests.iter().map(move |name| folder.join(name))
    });
    modules.collect()
}

#[test]
fn no_test_goes_by_the_clock() {
    let modules = test_modules();
    let is_test = |file: &PathBuf| {
        let module = file.with_extension("");
        file.starts_with(root().join("tests"))
            || modules.iter().any(|test| module.starts_with(test))
    };
    let mut all = files(&root().join("tests"));
    all.extend(sources().into_iter().map(|(file, _)| file));
    let found: Vec<String> = all
        .iter()
        .map(|file| (file, read(file)))
        .filter(|(_, text)| clock::is_named(text))
        .flat_map(|(file, text)| {
            let name = file.strip_prefix(root()).unwrap().display().to_string();
            let found = ByTheClock::of(&text, is_test(file));
            found.into_iter().map(move |what| format!("{name}: {what}"))
        })
        .collect();
    assert!(found.is_empty(), "{}\n\n{ADVICE}", found.join("\n"));
}

/// What is found in a test with this body.
fn found(attribute: &str, body: &str) -> usize {
    let text = format!("use std::time::Instant;\n{attribute} async fn a() {{ {body} }}");
    ByTheClock::of(&text, true).len()
}

/// In each of these tests, which run in real time, so much is found.
fn are_found(times: usize, bodies: &[&str]) {
    for body in bodies {
        assert_eq!(found(REAL, body), times, "{body}");
    }
}

const REAL: &str = "#[tokio::test]";
const PAUSED: &str = "#[tokio::test(start_paused = true)]";

#[test]
fn sleeps_of_real_time_are_found() {
    are_found(
        1,
        &[
            "sleep(Duration::from_secs(1)).await;",
            "tokio::time::sleep(Duration::from_millis(100)).await;",
            "std::thread::sleep(LONG);",
            "sleep(head * 2).await;",
            "tokio::join!(x, async { sleep(Duration::from_mins(1)).await });",
            "tokio::select! { () = sleep(Duration::from_millis(1)) => {} }",
            "proptest! { #[test] fn b() { std::thread::sleep(LONG); } }",
            "sleep_until(then).await;",
        ],
    );
    are_found(
        0,
        &[
            "sleep(Duration::from_millis(99)).await;",
            "const SHORT: Duration = Duration::from_millis(20); sleep(SHORT).await;",
        ],
    );
    assert_eq!(found(PAUSED, "sleep(Duration::from_hours(1)).await;"), 0);
    assert_eq!(
        found(PAUSED, "std::thread::sleep(LONG);"),
        1,
        "never paused"
    );
    let paused = "tokio::time::pause(); sleep(LONG).await;";
    assert_eq!(found(REAL, paused), 0);
}

#[test]
fn measured_real_time_is_found() {
    are_found(
        1,
        &[
            "assert!(start.elapsed() < SOON);",
            "let took = start.elapsed();",
            "assert_eq!(Instant::now() - start, SOON);",
            "assert!(later.duration_since(start) < SOON);",
            "while Instant::now() < until {}",
        ],
    );
    are_found(
        0,
        &[
            "let later = Instant::now() + SOON;",
            "let seconds = now.duration_since(UNIX_EPOCH);",
        ],
    );
    let tokio = "let start = tokio::time::Instant::now(); assert_eq!(start.elapsed(), ONE);";
    assert_eq!(found(PAUSED, tokio), 0);
    let std = "let (a, start) = (1, Instant::now()); assert_eq!(start.elapsed(), ONE);";
    assert_eq!(
        found(PAUSED, std),
        1,
        "the standard library's is never paused"
    );
}

#[test]
fn helpers_may_wait_where_only_paused_tests_are() {
    let helper = "async fn b() { sleep(LONG).await; }";
    let tests = |attributes: &[&str]| {
        let tests = attributes
            .iter()
            .map(|test| format!("{test} async fn c() {{}}\n"));
        ByTheClock::of(&(tests.collect::<String>() + helper), true).len()
    };
    assert_eq!(tests(&[PAUSED, PAUSED, "#[test]"]), 0);
    assert_eq!(tests(&[PAUSED, REAL]), 1);
    assert_eq!(tests(&[]), 1);
    let helper = "async fn b() { tokio::time::advance(Duration::ZERO).await; sleep(LONG).await; }";
    assert_eq!(ByTheClock::of(helper, true).len(), 0);
}

#[test]
fn only_tests_are_meant() {
    let text = "fn a() { sleep(LONG); } #[cfg(test)] mod tests { fn b() { sleep(LONG); } }";
    assert_eq!(ByTheClock::of(text, false).len(), 1);
}
