//! Names of a trace replaced by hashes, as flags that several commands share.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use ring::rand::{SecureRandom as _, SystemRandom};

use rayfit_core::simulate::trace::{self, Trace};

/// Bytes of a key for names.
const KEY: usize = 32;

/// Flags that hide names.
#[derive(Debug, Clone, clap::Args)]
pub(in crate::cli) struct HashArgs {
    /// Replace all names but those of resources by hashes with a key that is forgotten
    #[arg(long)]
    pub(in crate::cli) hash_names: bool,

    /// With --hash-names: the key in this file (32 bytes or more), so that several traces have the
    /// same hashes
    #[arg(long, value_name = "FILE", requires = "hash_names")]
    hash_key: Option<PathBuf>,
}

impl HashArgs {
    /// The trace, with its names hashed if that is wanted.
    pub(in crate::cli) fn hashed(&self, trace: Trace) -> anyhow::Result<Trace> {
        if !self.hash_names {
            return Ok(trace);
        }
        Ok(trace::hash_names(&trace, &key(self.hash_key.as_deref())?))
    }
}

/// The key in a file, or a new one that nobody will know.
fn key(file: Option<&Path>) -> anyhow::Result<Vec<u8>> {
    let Some(file) = file else {
        // The key ends with the process, so that nobody can try names against the hashes later.
        let mut key = vec![0; KEY];
        let random = SystemRandom::new().fill(&mut key);
        random.map_err(|_| anyhow::anyhow!("this machine gives no random numbers for a key"))?;
        return Ok(key);
    };
    let key = std::fs::read(file).with_context(|| file.display().to_string())?;
    anyhow::ensure!(
        key.len() >= KEY,
        "{}: a key has {KEY} bytes or more; make one: head -c {KEY} /dev/urandom > {}",
        file.display(),
        file.display()
    );
    Ok(key)
}
