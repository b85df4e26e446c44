//! `rayfit dev-certs`: an authority and a serving certificate for development.

use std::fs;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use anyhow::Context as _;
use rayfit_core::manifests::names;

use super::Outcome;
use super::shared::replaced_file::{replace, write_beside};
use crate::certs::issue;

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
            replace(&path(name))?;
        }
        Ok(Outcome::Clean)
    }
}
