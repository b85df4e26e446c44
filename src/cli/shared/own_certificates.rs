//! Certificates without cert-manager, as flags of `rayfit serve`.

use std::time::Duration;

use rayfit_core::manifests::names::{NAMESPACE, OWN_SECRET};
use rayfit_core::text::Misread;

use crate::certs::{CertificateOptions, parse_lifetime};

/// Flags of certificates that Rayfit issues itself.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Self-managed certificates")]
pub(in crate::cli) struct OwnCertificatesArgs {
    /// Issue and renew the certificates, and write caBundle into the webhook configurations
    ///
    /// All replicas share the Secret --cert-secret, which must exist. Needs an API server, and the
    /// permissions that `rayfit manifests --self-managed` grants.
    #[arg(long)]
    self_managed_certs: bool,

    /// Secret with the certificates, in the namespace of Rayfit's pods
    #[arg(long, value_name = "NAMESPACE/NAME", default_value_t = format!("{NAMESPACE}/{OWN_SECRET}"))]
    cert_secret: String,

    /// Lifetime of a serving certificate; it is renewed after three quarters of that
    #[arg(long, value_name = "TIME", default_value = "90d", value_parser = parse_lifetime)]
    cert_lifetime: Duration,

    /// The longest time that a change of a webhook configuration takes to reach every API server
    #[arg(long, hide = true, value_name = "TIME", default_value = "60s", value_parser = parse_lifetime)]
    ca_propagation: Duration,
}

impl OwnCertificatesArgs {
    /// The options of the flags; `None` without --self-managed-certs.
    pub(in crate::cli) fn options(self) -> Result<Option<CertificateOptions>, Misread> {
        if !self.self_managed_certs {
            return Ok(None);
        }
        let options = CertificateOptions {
            leaf_lifetime: self.cert_lifetime,
            propagation: self.ca_propagation,
            ..CertificateOptions::new(&self.cert_secret)?
        };
        options.check()?;
        Ok(Some(options))
    }
}
