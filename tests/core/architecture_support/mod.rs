//! The modules of the crate as they are written, and what each of them imports.
#![allow(dead_code, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

pub(crate) mod circles;
pub(crate) mod clock;
pub(crate) mod imports;
pub(crate) mod page;
pub(crate) mod scan;

use std::path::{Path, PathBuf};

/// The folder of the crate's modules.
pub(crate) fn src() -> PathBuf {
    root().join("src")
}

/// The folder of the whole project.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).to_owned()
}

/// The text of a file.
pub(crate) fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Every Rust file under `folder`, in order.
pub(crate) fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = all_files(folder);
    found.retain(|path| path.extension().is_some_and(|extension| extension == "rs"));
    found
}

/// Every file under `folder`, in order.
pub(crate) fn all_files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(all_files(&path));
        } else {
            found.push(path);
        }
    }
    found.sort();
    found
}
