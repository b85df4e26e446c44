//! Where manifests come from: files, folders, standard input.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use crate::yaml::MAX_BYTES;

/// The name that stands for standard input.
const STDIN: &str = "-";

/// Something to read manifests from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::cli) enum InputSource {
    Stdin,
    File(PathBuf),
}

/// Why a source cannot be read.
#[derive(Debug, thiserror::Error)]
pub(in crate::cli) enum SourceError {
    #[error("there is no such file or folder; check the path")]
    Missing,
    #[error("the folder has no *.yaml, *.yml or *.json files; name the files")]
    Empty,
    #[error("this is a folder; name one file in it")]
    Folder,
    #[error("larger than {} MiB; split it", limit >> 20)]
    TooLarge { limit: usize },
    #[error("line {line}: this is not UTF-8 text, as manifests must be")]
    NotText { line: usize },
    #[error("{0}")]
    Io(io::Error),
}

impl From<io::Error> for SourceError {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::NotFound => Self::Missing,
            io::ErrorKind::IsADirectory => Self::Folder,
            _ => Self::Io(error),
        }
    }
}

impl InputSource {
    /// The name that findings show.
    pub(in crate::cli) fn name(&self) -> String {
        match self {
            Self::Stdin => "<stdin>".to_owned(),
            Self::File(path) => path.display().to_string(),
        }
    }

    /// The whole text of manifests.
    pub(in crate::cli) fn read(&self) -> Result<String, SourceError> {
        self.read_up_to(MAX_BYTES)
    }

    /// The whole text, of at most `limit` bytes.
    pub(in crate::cli) fn read_up_to(&self, limit: usize) -> Result<String, SourceError> {
        match self {
            Self::Stdin => bounded(io::stdin().lock(), limit),
            Self::File(path) => bounded(File::open(path)?, limit),
        }
    }
}

/// Reads no more bytes than a manifest may have, so that a device or a mistaken image does no harm.
fn bounded(reader: impl Read, limit: usize) -> Result<String, SourceError> {
    let mut bytes = Vec::new();
    let most = u64::try_from(limit).unwrap_or(u64::MAX - 1);
    // One byte more than is allowed shows that there is more.
    reader.take(most + 1).read_to_end(&mut bytes)?;
    if bytes.len() > limit {
        return Err(SourceError::TooLarge { limit });
    }
    String::from_utf8(bytes).map_err(|error| {
        let valid = error.utf8_error().valid_up_to();
        let before = error.as_bytes().iter().take(valid);
        SourceError::NotText {
            line: 1 + before.filter(|byte| **byte == b'\n').count(),
        }
    })
}

/// The sources that an argument stands for: a file, standard input (`-`), or all manifests in a
/// folder and below, sorted, without hidden ones.
pub(in crate::cli) fn expand(argument: &Path) -> Result<Vec<InputSource>, SourceError> {
    let source = single(argument);
    if source == InputSource::Stdin || !fs::metadata(argument)?.is_dir() {
        return Ok(vec![source]);
    }
    let mut files = Vec::new();
    walk(argument, &mut BTreeSet::new(), &mut files)?;
    if files.is_empty() {
        return Err(SourceError::Empty);
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

/// `seen` holds the resolved paths of the visited folders.
fn walk(
    folder: &Path,
    seen: &mut BTreeSet<PathBuf>,
    files: &mut Vec<InputSource>,
) -> Result<(), SourceError> {
    // Links may lead back to a folder above.
    if !seen.insert(fs::canonicalize(folder)?) {
        return Ok(());
    }
    let entries: io::Result<Vec<_>> = fs::read_dir(folder)?.collect();
    let mut paths: Vec<PathBuf> = entries?.iter().map(fs::DirEntry::path).collect();
    paths.sort();
    for path in paths.into_iter().filter(|path| !is_hidden(path)) {
        match fs::metadata(&path) {
            Ok(meta) if meta.is_dir() => walk(&path, seen, files)?,
            Ok(meta) if meta.is_file() && is_manifest(&path) => files.push(InputSource::File(path)),
            // A dangling link is reported only if its name is that of a manifest.
            Err(_) if is_manifest(&path) => files.push(InputSource::File(path)),
            _ => {}
        }
    }
    Ok(())
}

fn is_hidden(path: &Path) -> bool {
    path.file_name()
        .is_some_and(|name| name.as_encoded_bytes().starts_with(b"."))
}

fn is_manifest(path: &Path) -> bool {
    path.extension().is_some_and(|extension| {
        ["yaml", "yml", "json"]
            .iter()
            .any(|known| extension.eq_ignore_ascii_case(known))
    })
}
