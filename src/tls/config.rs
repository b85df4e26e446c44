//! The TLS configuration of the webhooks.

use std::sync::Arc;

use rustls::ServerConfig;
use rustls::server::NoServerSessionStorage;
use rustls::server::danger::ClientCertVerifier;
use rustls::version::{TLS12, TLS13};

use super::{CertificateStore, provider};

/// TLS 1.2 and 1.3, HTTP/1.1, the certificate from `store` at each handshake.
pub fn server_config_for(
    store: Arc<CertificateStore>,
    clients: Arc<dyn ClientCertVerifier>,
) -> Result<Arc<ServerConfig>, rustls::Error> {
    let mut config = ServerConfig::builder_with_provider(Arc::new(provider()))
        .with_protocol_versions(&[&TLS13, &TLS12])?
        .with_client_cert_verifier(clients)
        .with_cert_resolver(store);
    // API servers do not resume sessions, and a resumed session would keep the old certificate.
    config.session_storage = Arc::new(NoServerSessionStorage {});
    config.send_tls13_tickets = 0;
    // API servers ask for HTTP/1.1, so that calls spread over replicas. HTTP/2 is not offered, so
    // it cannot be abused.
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}
