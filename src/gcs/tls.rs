//! Mutual TLS as in Ray: both sides present a certificate of the same authority.

use std::sync::Arc;

use rustls::client::Resumption;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::version::{TLS12, TLS13};
use rustls::{ClientConfig, RootCertStore};

use super::Material;
use super::material::UnreadableFile;
use crate::tls::provider;

/// The material for mutual TLS, all in PEM. Files are read again for each connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tls {
    /// The client certificate, with its chain.
    pub certificate: Material,
    /// Its key.
    pub key: Material,
    /// The authority that signed the certificate of the GCS.
    pub authority: Material,
    /// The name that the certificate of the GCS has to have; that of its address if `None`.
    pub server_name: Option<String>,
}

/// The error of TLS material that allows no connection.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum TlsFault {
    #[error(transparent)]
    UnreadableFile(#[from] UnreadableFile),
    #[error("there is no PEM {what} in {material:?}: {reason}")]
    NotPem {
        what: &'static str,
        material: Material,
        reason: String,
    },
    #[error("the certificate and its key cannot be used: {0}")]
    Unusable(String),
    #[error("{0:?} is not a name that a certificate could have")]
    Name(String),
}

impl Tls {
    /// The configuration of one connection.
    pub(super) fn config(&self) -> Result<Arc<ClientConfig>, TlsFault> {
        let mut roots = RootCertStore::empty();
        for certificate in certificates("authority", &self.authority)? {
            let added = roots.add(certificate);
            added.map_err(|error| not_pem("authority", &self.authority, &error))?;
        }
        let chain = certificates("certificate", &self.certificate)?;
        let key = PrivateKeyDer::from_pem_slice(&self.key.read()?)
            .map_err(|error| not_pem("key", &self.key, &error))?;
        let mut config = ClientConfig::builder_with_provider(Arc::new(provider()))
            .with_protocol_versions(&[&TLS13, &TLS12])
            .map_err(unusable)?
            .with_root_certificates(roots)
            .with_client_auth_cert(chain, key)
            .map_err(unusable)?;
        // gRPC in C++ refuses a connection without ALPN, and here tonic's own TLS does not set it.
        config.alpn_protocols = vec![b"h2".to_vec()];
        // There is one long connection per GCS, so remembering sessions would only cost memory.
        config.resumption = Resumption::disabled();
        Ok(Arc::new(config))
    }

    /// The name that the certificate has to have, for a GCS at `host`.
    pub(super) fn name(&self, host: &str) -> Result<ServerName<'static>, TlsFault> {
        let name = self.server_name.as_deref().unwrap_or(host).to_owned();
        ServerName::try_from(name.clone()).map_err(|_| TlsFault::Name(name))
    }
}

fn certificates(
    what: &'static str,
    material: &Material,
) -> Result<Vec<CertificateDer<'static>>, TlsFault> {
    let pem = material.read()?;
    let found: Vec<_> = CertificateDer::pem_slice_iter(&pem)
        .collect::<Result<_, _>>()
        .map_err(|error| not_pem(what, material, &error))?;
    if found.is_empty() {
        return Err(not_pem(what, material, &"no certificate"));
    }
    Ok(found)
}

fn not_pem(what: &'static str, material: &Material, reason: &dyn std::fmt::Display) -> TlsFault {
    TlsFault::NotPem {
        what,
        material: material.clone(),
        reason: reason.to_string(),
    }
}

#[expect(clippy::needless_pass_by_value, reason = "as map_err gives it")]
fn unusable(error: rustls::Error) -> TlsFault {
    TlsFault::Unusable(error.to_string())
}
