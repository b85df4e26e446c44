//! `rayfit check --fix`: files, streams, exit codes.

use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;

use crate::command::{Run, rayfit, rayfit_reading};

const DENIED: &str = include_str!("../fixtures/cli/denied.yaml");

/// The fixture without the line that its rule refuses, whose comment stays.
fn mended() -> String {
    DENIED.replace(
        "    rayStartParams:\n      num-cpus: \"2\"   # RF105\n",
        "    rayStartParams: {}\n      # RF105\n",
    )
}

fn check(path: &Path, arguments: &[&str]) -> Run {
    rayfit(&[&["check", path.to_str().unwrap()], arguments].concat())
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap()
}

#[test]
fn fixes_are_written_and_shown_and_what_is_left_decides() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("denied.yaml");
    std::fs::write(&file, DENIED).unwrap();
    let mode = std::fs::Permissions::from_mode(0o664);
    std::fs::set_permissions(&file, mode).unwrap();

    let shown = check(&file, &["--diff"]);
    assert_eq!(read(&file), DENIED, "--diff writes nothing");
    assert_eq!(shown.code, 1, "{}", shown.err);
    assert!(
        shown.out.contains("\n-      num-cpus: \"2\"   # RF105\n"),
        "{}",
        shown.out
    );
    assert_eq!(shown.err, "1 would be fixed, 0 left\n");

    let fixed = check(&file, &["--fix"]);
    assert_eq!((fixed.code, fixed.err.as_str()), (0, ""));
    assert_eq!(read(&file), mended());
    assert!(fixed.out.starts_with(&shown.out), "{}", fixed.out);
    assert!(fixed.out.ends_with("1 fixed, 0 left\n"), "{}", fixed.out);
    let metadata = std::fs::metadata(&file).unwrap();
    assert_eq!(metadata.permissions().mode() & 0o777, 0o664);
    let files: Vec<_> = std::fs::read_dir(folder.path()).unwrap().collect();
    assert_eq!(files.len(), 1, "nothing else is left there");

    let again = check(&file, &["--fix", "-o", "json"]);
    assert_eq!((again.code, again.err.as_str()), (0, "0 fixed, 0 left\n"));
    assert_eq!(again.json()["findings"].as_array().map(Vec::len), Some(0));
}

#[test]
fn standard_input_is_fixed_on_standard_output() {
    let text = format!("a: 1\r\n---\n{}", DENIED.trim_end());
    let run = rayfit_reading(&["check", "--fix", "-"], &text);
    assert_eq!(run.code, 0, "{}", run.err);
    assert_eq!(run.out, format!("a: 1\r\n---\n{}", mended().trim_end()));
    assert!(run.err.ends_with("1 fixed, 0 left\n"), "{}", run.err);
}

#[test]
fn what_cannot_be_changed_is_left_with_the_reason() {
    let text = DENIED.replace(
        "rayStartParams:\n      num-cpus: \"2\"   # RF105\n",
        "rayStartParams: {num-cpus: \"2\", block: \"true\"}\n",
    );
    let run = rayfit_reading(&["check", "--fix", "-"], &text);
    assert_eq!((run.code, run.out.as_str()), (1, text.as_str()));
    assert!(
        run.err.contains("RF105 is not fixed: it stands in braces"),
        "{}",
        run.err
    );
    assert!(run.err.contains("0 fixed, 1 left\n"), "{}", run.err);
}

#[test]
fn links_lead_to_no_change() {
    let (folder, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let file = outside.path().join("denied.yaml");
    std::fs::write(&file, DENIED).unwrap();
    let link = folder.path().join("link.yaml");
    symlink(&file, &link).unwrap();
    symlink(outside.path(), folder.path().join("below")).unwrap();
    for (path, count) in [(link.as_path(), 1), (folder.path(), 2)] {
        let run = check(path, &["--fix"]);
        assert_eq!(run.code, 1, "{}", run.out);
        assert_eq!(
            run.err.matches("because a link leads to it").count(),
            count,
            "{}",
            run.err
        );
        assert_eq!(read(&file), DENIED);
    }
    assert!(link.is_symlink());
    // Whoever names the folder means its files.
    assert_eq!(check(outside.path(), &["--fix"]).code, 0);
    assert_eq!(read(&file), mended());
}
