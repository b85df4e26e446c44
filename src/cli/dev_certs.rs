//! `rayfit dev-certs`: an authority and a serving certificate for development.

use std::fs::{self, OpenOptions};
use std::io::{ErrorKind, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use anyhow::Context as _;

use super::Outcome;
use crate::certs::issue;
use crate::manifests::names;

const LIFETIME: Duration = Duration::from_hours(30 * 24);

/// Issue certificates for development: ca.crt, tls.crt and tls.key
///
/// For this machine and for the webhooks' Service, valid for 30 days. The authority's key is not
/// kept.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  \
    rayfit dev-certs certs/dev && rayfit serve --cert-dir certs/dev --bind 127.0.0.1")]
pub(super) struct DevCertsCommand {
    /// The folder to write them into
    folder: PathBuf,

    /// A further host name or address for the certificate; can be repeated
    #[arg(long = "host", value_name = "NAME")]
    hosts: Vec<String>,
}

impl DevCertsCommand {
    pub(super) fn run(self) -> anyhow::Result<Outcome> {
        let service = names::service_host(names::NAMESPACE);
        let mut hosts = ["localhost", "127.0.0.1", "::1", &service]
            .map(str::to_owned)
            .to_vec();
        hosts.extend(self.hosts);
        #[expect(
            clippy::disallowed_methods,
            reason = "a command reads the clock for the core"
        )]
        let now = SystemTime::now();
        let authority = issue::authority(now)?;
        let leaf = issue::leaf(&authority, &hosts, LIFETIME, now)?;
        fs::create_dir_all(&self.folder)
            .with_context(|| format!("cannot make {}", self.folder.display()))?;
        let path = |name: &str| self.folder.join(name);
        write_beside(&path("ca.crt"), &authority.anchor.pem, 0o644)?;
        write_beside(&path("tls.crt"), &leaf.chain, 0o644)?;
        write_beside(&path("tls.key"), &leaf.key.0, 0o600)?;
        // Nothing is replaced before all is written, and no key comes before its certificate.
        for name in ["ca.crt", "tls.crt", "tls.key"] {
            // A server that reads at the same time must never see half a file.
            let path = path(name);
            fs::rename(beside(&path), &path)
                .with_context(|| format!("cannot write {}", path.display()))?;
        }
        Ok(Outcome::Clean)
    }
}

/// Writes the file that is to replace the one at `path`, with this mode.
fn write_beside(path: &Path, text: &str, mode: u32) -> anyhow::Result<()> {
    let beside = beside(path);
    let context = || format!("cannot write {}", beside.display());
    match fs::remove_file(&beside) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            return Err(error).with_context(context);
        }
        _ => {}
    }
    // A file that is there already would keep its mode.
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(mode)
        .open(&beside)
        .with_context(context)?;
    file.write_all(text.as_bytes()).with_context(context)
}

fn beside(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".new");
    name.into()
}
