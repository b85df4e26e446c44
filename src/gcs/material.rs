//! Keys, certificates and tokens, in memory or in files.

use std::fmt;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The largest token, certificate bundle or key, in bytes.
const LARGEST: u64 = 1 << 20;

/// A secret or certificate: the content itself, or a file that is read again at each use, because
/// mounted Secrets and projected tokens are replaced. `Debug` never shows the content.
#[derive(Clone, PartialEq, Eq)]
pub enum Material {
    /// A file.
    File(PathBuf),
    /// The content.
    Memory(Arc<[u8]>),
}

/// The error of material that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("cannot read {file}: {reason}; is its volume mounted into this container?")]
pub(super) struct UnreadableFile {
    file: String,
    reason: String,
}

impl Material {
    pub(super) fn read(&self) -> Result<Arc<[u8]>, UnreadableFile> {
        match self {
            Self::Memory(content) => Ok(Arc::clone(content)),
            Self::File(path) => read(path).map_err(|reason| UnreadableFile {
                file: path.display().to_string(),
                reason,
            }),
        }
    }
}

fn read(path: &Path) -> Result<Arc<[u8]>, String> {
    let file = std::fs::File::open(path).map_err(|error| error.to_string())?;
    let mut content = Vec::new();
    // The size is not asked for beforehand: a file can grow, and a device has none.
    file.take(LARGEST + 1)
        .read_to_end(&mut content)
        .map_err(|error| error.to_string())?;
    if content.len() as u64 > LARGEST {
        return Err(format!("it has more than {LARGEST} bytes"));
    }
    Ok(content.into())
}

impl From<Vec<u8>> for Material {
    fn from(content: Vec<u8>) -> Self {
        Self::Memory(content.into())
    }
}

impl From<PathBuf> for Material {
    fn from(path: PathBuf) -> Self {
        Self::File(path)
    }
}

impl fmt::Debug for Material {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => write!(f, "File({})", path.display()),
            Self::Memory(content) => write!(f, "Memory({} bytes)", content.len()),
        }
    }
}
