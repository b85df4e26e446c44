//! The modules of the crate as they are written, and what each of them imports.
#![allow(dead_code, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

pub(crate) mod circles;
pub(crate) mod clock;
pub(crate) mod imports;
pub(crate) mod page;
pub(crate) mod scan;

use std::path::{Path, PathBuf};

/// The folders of the modules: of the core, and of the shell around it.
pub(crate) fn roots() -> [PathBuf; 2] {
    ["crates/core/src", "src"].map(|folder| root().join(folder))
}

/// Every file of both crates, each with its path below the folder of its crate.
pub(crate) fn sources() -> Vec<(PathBuf, PathBuf)> {
    let of_crate = |folder: PathBuf| {
        let found = files(&folder);
        let below = move |file: PathBuf| {
            let below = file.strip_prefix(&folder).unwrap().to_owned();
            (file, below)
        };
        found.into_iter().map(below)
    };
    roots().into_iter().flat_map(of_crate).collect()
}

/// The file or folder at a path below the folder of its crate.
pub(crate) fn source(below: impl AsRef<Path>) -> PathBuf {
    let [core, shell] = roots().map(|folder| folder.join(&below));
    if core.exists() { core } else { shell }
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
