//! A directory with a certificate and its key, polled by content.
//!
//! A Secret volume is updated by swapping a symlink (`..data`): the files' inodes never change,
//! so file watches miss every update after the first. Reading two small files every ten seconds
//! costs nothing and sees every kind of update.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use rayfit_core::text::Misread;

use super::{CertificateStore, Installed};

/// The names of the chain's and of the key's file, as Kubernetes has them in a Secret of type `kubernetes.io/tls`.
const FILES: [&str; 2] = ["tls.crt", "tls.key"];

/// The error of a directory without a usable pair.
#[derive(Debug, thiserror::Error)]
pub enum DirectoryError {
    /// A file cannot be read.
    #[error("cannot read {file}: {source}; the Secret may not be mounted yet")]
    Read {
        /// The file.
        file: PathBuf,
        /// The error of the system.
        source: std::io::Error,
    },
    /// The files cannot be used.
    #[error("refused the certificate in {path}: {source}")]
    Refused {
        /// The directory.
        path: PathBuf,
        /// The fault of the pair.
        source: Misread,
    },
}

/// The chain and the key, as they were read together.
type PemFiles = (Vec<u8>, Vec<u8>);

/// Reads the directory again and again.
pub struct Poller {
    directory: PathBuf,
    store: Arc<CertificateStore>,
    last: Option<PemFiles>,
}

impl Poller {
    /// Installs the pair in `directory`, usually a mounted Secret, into `store`. The directory may appear after the
    /// process has started.
    pub fn new(directory: PathBuf, store: Arc<CertificateStore>) -> Self {
        Self {
            directory,
            store,
            last: None,
        }
    }

    /// Reads the directory once. `Ok(None)`: the files are as they were at the last call, whether
    /// they were good or not.
    pub fn poll(&mut self) -> Result<Option<Installed>, DirectoryError> {
        let content = self.read()?;
        if self.last.as_ref() == Some(&content) {
            return Ok(None);
        }
        let installed = self.store.install(&content.0, &content.1);
        // A broken pair too, so that it is reported once and not every ten seconds.
        self.last = Some(content);
        installed
            .map(Some)
            .map_err(|source| DirectoryError::Refused {
                path: self.directory.clone(),
                source,
            })
    }

    /// Polls until dropped, and logs what changed.
    pub async fn run(mut self, interval: Duration) {
        let mut ticks = tokio::time::interval(interval);
        let mut unreadable = String::new();
        loop {
            ticks.tick().await;
            match self.poll() {
                Ok(None) => unreadable.clear(),
                Ok(Some(installed)) => {
                    unreadable.clear();
                    let end = self.store.not_after();
                    let since = end.map(|end| end.duration_since(UNIX_EPOCH).unwrap_or_default());
                    let not_after = since.map(|since| since.as_secs());
                    tracing::info!(?installed, not_after, "certificate in use");
                }
                Err(error @ DirectoryError::Refused { .. }) => {
                    tracing::error!(%error, "certificate refused; the one in use stays");
                }
                Err(error @ DirectoryError::Read { .. }) => {
                    // A file that stays unreadable is logged once.
                    let text = error.to_string();
                    if unreadable != text {
                        self.store.count_refused();
                        tracing::warn!(%error, "no certificate read");
                        unreadable = text;
                    }
                }
            }
        }
    }

    /// Both files of one update.
    fn read(&self) -> Result<PemFiles, DirectoryError> {
        let [certificate, key] = FILES.map(|name| self.directory.join(name));
        let read = || Ok((read_file(&certificate)?, read_file(&key)?));
        // The symlink may be swapped, and the old files removed, between two reads.
        for _ in 0..3 {
            if let Ok(content) = read()
                && read_file(&certificate).is_ok_and(|chain| chain == content.0)
            {
                return Ok(content);
            }
        }
        // Nothing is swapped three times in a row: where a file cannot be read, this tells why.
        read()
    }
}

fn read_file(file: &Path) -> Result<Vec<u8>, DirectoryError> {
    std::fs::read(file).map_err(|source| DirectoryError::Read {
        file: file.to_owned(),
        source,
    })
}
