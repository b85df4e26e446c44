//! Client certificates: which callers may connect.

use std::sync::Arc;

use anyhow::{Context as _, anyhow};
use rustls::RootCertStore;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::ClientCertVerifier;

use super::provider;

/// Only callers with a client certificate that one of these authorities (PEM) has issued. Others
/// cannot open a connection.
pub fn issued_by(authorities: &[u8]) -> anyhow::Result<Arc<dyn ClientCertVerifier>> {
    let mut roots = RootCertStore::empty();
    for authority in CertificateDer::pem_slice_iter(authorities) {
        let authority =
            authority.context("the authority of callers' certificates is not valid PEM")?;
        let added = roots.add(authority);
        added.context("the authority of callers' certificates cannot be read")?;
    }
    let roots = Arc::new(roots);
    let verifier = WebPkiClientVerifier::builder_with_provider(roots, Arc::new(provider()));
    let verifier = verifier.build().map_err(|error| {
        anyhow!(
            "there is no authority of callers' certificates: write at least one, in PEM ({error})"
        )
    })?;
    Ok(verifier)
}
