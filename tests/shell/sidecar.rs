//! The binary as `/bin/bash` of its image.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::io::{BufRead as _, BufReader};
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Output, Stdio};

const FIXED: &str = "ray kuberay-autoscaler --cluster-name prod --cluster-namespace ray";

fn bash(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rayfit"));
    command.arg0("/bin/bash").args(arguments);
    command
}

fn refused(arguments: &[&str]) -> String {
    let Output { status, stderr, .. } = bash(arguments).output().unwrap();
    assert_eq!(status.code(), Some(2), "{arguments:?}");
    String::from_utf8(stderr).unwrap()
}

#[test]
fn does_not_scale_and_runs_until_it_is_stopped() {
    let mut child = bash(&["-c", "--", FIXED])
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let first = lines.next().unwrap().unwrap();
    assert!(
        first.contains("waiting until the mode of RayCluster ray/prod is sidecar"),
        "{first}"
    );
    assert!(child.try_wait().unwrap().is_none(), "it ended by itself");

    let kill = Command::new("kill")
        .args(["-TERM", &child.id().to_string()])
        .status();
    assert!(
        kill.expect("`kill` (procps or a shell's package) is needed")
            .success()
    );
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn says_what_it_is_when_it_is_asked_for_anything_else() {
    for arguments in [&["-c", "--", "echo hello"][..], &["-i"], &[]] {
        let error = refused(arguments);
        assert!(error.contains("understands one command"), "{error}");
        assert!(error.contains("autoscalerOptions.image"), "{error}");
    }
    let error = refused(&["-c", "--", &format!("{FIXED} --verbose")]);
    assert!(error.contains("\"--verbose\""), "{error}");
}
