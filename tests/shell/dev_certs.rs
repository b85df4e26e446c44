//! Certificates for development.

#![allow(clippy::unwrap_used)]

use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;

use rayfit::tls::ServingPair;

#[test]
fn they_can_be_served_and_the_key_is_for_the_owner_only() {
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("dev");
    let done = Command::new(env!("CARGO_BIN_EXE_rayfit"))
        .arg("dev-certs")
        .arg(&target)
        .args(["--host", "laptop.example"])
        .status()
        .unwrap();
    assert!(done.success());
    let read = |name: &str| std::fs::read(target.join(name)).unwrap();
    assert!(ServingPair::from_pem(&read("tls.crt"), &read("tls.key")).is_ok());
    assert!(read("ca.crt").starts_with(b"-----BEGIN CERTIFICATE-----"));
    let mode = std::fs::metadata(target.join("tls.key"))
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o600);
    let files: Vec<_> = std::fs::read_dir(&target).unwrap().collect();
    assert_eq!(files.len(), 3, "nothing else is left there");
}

/// What was left by a run that was ended in between, or put there by somebody else.
#[test]
fn the_key_is_for_the_owner_only_whatever_was_there() {
    let folder = tempfile::tempdir().unwrap();
    for stale in [".tls.crt.rayfit-new", ".tls.key.rayfit-new"] {
        let stale = folder.path().join(stale);
        std::fs::write(&stale, "stale").unwrap();
        let mode = std::fs::Permissions::from_mode(0o644);
        std::fs::set_permissions(&stale, mode).unwrap();
    }
    let done = Command::new(env!("CARGO_BIN_EXE_rayfit"))
        .arg("dev-certs")
        .arg(folder.path())
        .status()
        .unwrap();
    assert!(done.success());
    let key = std::fs::metadata(folder.path().join("tls.key")).unwrap();
    assert_eq!(key.permissions().mode() & 0o777, 0o600);
    assert!(!folder.path().join(".tls.key.rayfit-new").exists());
}
