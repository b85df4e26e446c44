//! Files that are replaced at once, so that nobody who reads at the same time sees half of one.

use std::ffi::OsString;
use std::fs::{self, OpenOptions, Permissions};
use std::io::{ErrorKind, Write as _};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use anyhow::Context as _;

/// Writes the file that is to replace the one at `path`, with this mode.
pub(in crate::cli) fn write_beside(path: &Path, text: &str, mode: u32) -> anyhow::Result<()> {
    let beside = beside(path);
    let context = || format!("cannot write {}", beside.display());
    match fs::remove_file(&beside) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            return Err(error).with_context(context);
        }
        _ => {}
    }
    // A file that is there already would keep its mode, and a link would lead elsewhere.
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(mode)
        .open(&beside)
        .with_context(context)?;
    file.write_all(text.as_bytes()).with_context(context)?;
    // The mask of the process has taken permissions away.
    let permissions = Permissions::from_mode(mode);
    file.set_permissions(permissions).with_context(context)
}

/// Puts the file that was written beside `path` in its place.
pub(in crate::cli) fn replace(path: &Path) -> anyhow::Result<()> {
    fs::rename(beside(path), path).with_context(|| format!("cannot write {}", path.display()))
}

/// A hidden file of the same folder, so that it lies on the same disk and no search for manifests finds it.
fn beside(path: &Path) -> PathBuf {
    let mut name = OsString::from(".");
    name.extend([path.file_name().unwrap_or_default(), ".rayfit-new".as_ref()]);
    path.with_file_name(name)
}
