//! Who calls the webhooks: where API servers show a certificate, a pod of a tenant gets no request
//! through, and so takes no place of theirs.

use std::sync::Arc;

use rayfit::tls::clients::issued_by;
use rayfit::tls::{CertificateStore, provider, server_config_for};
use rcgen::ExtendedKeyUsagePurpose;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, ServerConnection};

use super::tls_support::{Authority, Issued, NAME, ca, issue, issue_to_client};

/// What a caller shows, if anything, and whether it can then send a request.
fn can_call(server: &Authority, callers: &Authority, shown: Option<&Issued>) -> bool {
    let store = Arc::new(CertificateStore::default());
    issue(server, 10).install(&store).unwrap();
    let verifier = issued_by(callers.pem().as_bytes()).unwrap();
    let config = server_config_for(store, verifier).unwrap();
    let mut roots = RootCertStore::empty();
    roots.add(server.der().clone()).unwrap();
    let builder = ClientConfig::builder_with_provider(Arc::new(provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots);
    let client = match shown {
        None => builder.with_no_client_auth(),
        Some(shown) => {
            let chain = CertificateDer::from_pem_slice(shown.chain.as_bytes()).unwrap();
            let key = PrivateKeyDer::from_pem_slice(shown.key.as_bytes()).unwrap();
            builder.with_client_auth_cert(vec![chain], key).unwrap()
        }
    };
    let name = ServerName::try_from(NAME).unwrap();
    let client = ClientConnection::new(Arc::new(client), name).unwrap();
    shaken(client, ServerConnection::new(config).unwrap())
}

/// Whether both sides come to an end of the handshake, by carrying what each writes to the other.
fn shaken(mut client: ClientConnection, mut server: ServerConnection) -> bool {
    for _ in 0..10 {
        let mut said = Vec::new();
        client.write_tls(&mut said).unwrap();
        server.read_tls(&mut &said[..]).unwrap();
        if server.process_new_packets().is_err() {
            return false;
        }
        let mut said = Vec::new();
        server.write_tls(&mut said).unwrap();
        client.read_tls(&mut &said[..]).unwrap();
        client.process_new_packets().unwrap();
    }
    assert!(!client.is_handshaking());
    !server.is_handshaking()
}

#[test]
fn only_who_shows_a_certificate_of_the_authority_gets_a_request_through() {
    let (server, callers, stranger) = (ca(40), ca(40), ca(40));
    let client = ExtendedKeyUsagePurpose::ClientAuth;
    let of_api_server = issue_to_client(&callers, client.clone());
    let self_made = issue_to_client(&stranger, client);
    // What serves may not call: a stolen serving certificate is of no use.
    let serving = issue_to_client(&callers, ExtendedKeyUsagePurpose::ServerAuth);
    assert!(can_call(&server, &callers, Some(&of_api_server)));
    assert!(!can_call(&server, &callers, None));
    assert!(!can_call(&server, &callers, Some(&self_made)));
    assert!(!can_call(&server, &callers, Some(&serving)));
}

/// A file that was emptied must not let everybody in.
#[test]
fn without_an_authority_nothing_is_served_rather_than_everybody() {
    let error = issued_by(b"").unwrap_err().to_string();
    assert!(error.starts_with("there is no authority"), "{error}");
    let broken = "-----BEGIN CERTIFICATE-----\n!\n-----END CERTIFICATE-----\n";
    assert!(issued_by(broken.as_bytes()).is_err());
}
