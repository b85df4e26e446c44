//! Client certificates: which callers may connect.

use std::sync::Arc;

use rayfit_core::text::Misread;
use rustls::RootCertStore;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::ClientCertVerifier;

use super::provider;

/// Only callers with a client certificate that one of these authorities (PEM) has issued. Others
/// cannot open a connection.
pub fn issued_by(authorities: &[u8]) -> Result<Arc<dyn ClientCertVerifier>, Misread> {
    let mut roots = RootCertStore::empty();
    for authority in CertificateDer::pem_slice_iter(authorities) {
        let authority = authority.map_err(|error| {
            Misread(format!(
                "the authority of callers' certificates is not valid PEM: {error}"
            ))
        })?;
        roots.add(authority).map_err(|error| {
            Misread(format!(
                "the authority of callers' certificates cannot be read: {error}"
            ))
        })?;
    }
    let roots = Arc::new(roots);
    let verifier = WebPkiClientVerifier::builder_with_provider(roots, Arc::new(provider()));
    let verifier = verifier.build().map_err(|error| {
        Misread(format!(
            "there is no authority of callers' certificates: write at least one, in PEM ({error})"
        ))
    })?;
    Ok(verifier)
}
