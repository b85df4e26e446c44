//! Sources of manifests: files, folders, standard input.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use anyhow::{anyhow, bail};
use ignore::WalkBuilder;
use ignore::overrides::{Override, OverrideBuilder};
use rayfit_core::ray::Kind;
use rayfit_core::yaml::MAX_BYTES;

use super::replaced_file::{replace, write_beside};

/// The name that stands for standard input.
const STDIN: &str = "-";

/// Something to read manifests from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::cli) enum InputSource {
    Stdin,
    File(PathBuf),
    /// A file that nobody named, in a folder.
    Found(PathBuf),
}

/// The error of a file or folder that cannot be read, with its remedy.
fn unreadable(error: io::Error) -> anyhow::Error {
    match error.kind() {
        io::ErrorKind::NotFound => anyhow!("there is no such file or folder; check the path"),
        io::ErrorKind::IsADirectory => anyhow!("this is a folder; name one file in it"),
        _ => error.into(),
    }
}

impl InputSource {
    /// The name that findings show.
    pub(in crate::cli) fn name(&self) -> String {
        match self {
            Self::Stdin => "<stdin>".to_owned(),
            Self::File(path) | Self::Found(path) => path.display().to_string(),
        }
    }

    /// The whole text of manifests.
    pub(in crate::cli) fn read(&self) -> anyhow::Result<String> {
        self.read_up_to(MAX_BYTES)
    }

    /// The whole text, of at most `limit` bytes.
    pub(in crate::cli) fn read_up_to(&self, limit: usize) -> anyhow::Result<String> {
        let bytes = match self {
            Self::Stdin => bytes(io::stdin().lock(), limit),
            Self::File(path) | Self::Found(path) => {
                File::open(path).and_then(|file| bytes(file, limit))
            }
        };
        let bytes = bytes.map_err(unreadable)?;
        if bytes.len() > limit {
            bail!("larger than {} MiB; split it", limit >> 20);
        }
        String::from_utf8(bytes).map_err(|error| {
            let valid = error.utf8_error().valid_up_to();
            let lines = error.as_bytes().iter().take(valid);
            let line = 1 + lines.filter(|byte| **byte == b'\n').count();
            anyhow!("line {line}: this is not UTF-8 text, as manifests must be")
        })
    }

    /// Replaces the text of a file that `argument` stands for; standard input is none.
    pub(in crate::cli) fn replace(&self, argument: &Path, text: &str) -> anyhow::Result<()> {
        let (Self::File(path) | Self::Found(path)) = self else {
            return Ok(());
        };
        let metadata = fs::symlink_metadata(path)?;
        // The walk through a folder follows links to others, which nobody named.
        let is_below = fs::canonicalize(path)?.starts_with(fs::canonicalize(argument)?);
        if !metadata.is_file() || !is_below {
            bail!("it is not changed, because a link leads to it: name the file itself");
        }
        if metadata.permissions().readonly() {
            bail!("it is not changed, because it is read-only");
        }
        write_beside(path, text, metadata.permissions().mode())?;
        replace(path)
    }

    /// Checks whether this is a file that a folder has beside its Ray objects: it names no kind of them.
    pub(in crate::cli) fn is_unrelated(&self) -> bool {
        let Self::Found(path) = self else {
            return false;
        };
        let bytes = File::open(path).and_then(|file| bytes(file, MAX_BYTES));
        bytes.is_ok_and(|bytes| {
            let text = String::from_utf8_lossy(&bytes);
            bytes.len() <= MAX_BYTES && !Kind::ALL.iter().any(|kind| text.contains(kind.name()))
        })
    }
}

/// No more bytes than a manifest may have, so that a device or a mistaken image does no harm, and one
/// more if there are more.
fn bytes(reader: impl Read, limit: usize) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let most = u64::try_from(limit).unwrap_or(u64::MAX - 1);
    reader.take(most + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The sources that an argument stands for: a file, standard input (`-`), or all manifests in a
/// folder and below, sorted, without those that are hidden, that a .gitignore lists, or that
/// `exclude` does in the same way.
pub(in crate::cli) fn expand(
    argument: &Path,
    exclude: &[String],
) -> anyhow::Result<Vec<InputSource>> {
    let source = single(argument);
    if source == InputSource::Stdin || !fs::metadata(argument).map_err(unreadable)?.is_dir() {
        return Ok(vec![source]);
    }
    let wrong =
        |error: ignore::Error| anyhow!("--exclude {error}; write it as a line of a .gitignore");
    let mut excluded = OverrideBuilder::new(argument);
    for glob in exclude {
        // An override names what is wanted, and with an exclamation mark what is not.
        excluded.add(&format!("!{glob}")).map_err(wrong)?;
    }
    let files = walk(argument, excluded.build().map_err(wrong)?);
    if files.is_empty() {
        bail!(
            "the folder has no *.yaml, *.yml or *.json files that are neither hidden nor left out by \
             .gitignore or --exclude; name the files"
        );
    }
    Ok(files)
}

/// The source that a path names; `-` is standard input.
pub(in crate::cli) fn single(path: &Path) -> InputSource {
    if path.as_os_str() == STDIN {
        InputSource::Stdin
    } else {
        InputSource::File(path.to_owned())
    }
}

fn walk(folder: &Path, excluded: Override) -> Vec<InputSource> {
    let visited = Mutex::new(BTreeSet::new());
    let walk = WalkBuilder::new(folder)
        .overrides(excluded)
        // Ignore files and settings outside of the folder are not read, so that every machine checks the same
        // files.
        .ignore(false)
        .git_global(false)
        .follow_links(true)
        // Equal folders give equal reports, whatever order a file system has.
        .sort_by_file_name(Ord::cmp)
        .filter_entry(move |entry| {
            let is_folder = entry.file_type().is_some_and(|kind| kind.is_dir());
            // Links lead to some folders by many ways.
            !is_folder
                || fs::canonicalize(entry.path())
                    .is_ok_and(|path| visited.lock().is_ok_and(|mut visited| visited.insert(path)))
        })
        .build();
    let mut files = Vec::new();
    for entry in walk {
        match &entry {
            Ok(entry) => {
                let is_file = entry.file_type().is_some_and(|kind| kind.is_file());
                if is_file && is_manifest(entry.path()) {
                    files.push(InputSource::Found(entry.path().to_owned()));
                }
            }
            // A dangling link is reported only if its name is that of a manifest.
            Err(error) => files.extend(
                failed(error)
                    .filter(|path| is_manifest(path) || path.is_dir())
                    .map(|path| InputSource::Found(path.to_owned())),
            ),
        }
    }
    files
}

/// The path that could not be looked at, unless it leads back to a folder above.
fn failed(error: &ignore::Error) -> Option<&Path> {
    match error {
        ignore::Error::WithPath { path, .. } => Some(path),
        ignore::Error::WithDepth { err, .. } => failed(err),
        _ => None,
    }
}

fn is_manifest(path: &Path) -> bool {
    path.extension().is_some_and(|extension| {
        ["yaml", "yml", "json"]
            .iter()
            .any(|suffix| extension.eq_ignore_ascii_case(suffix))
    })
}
