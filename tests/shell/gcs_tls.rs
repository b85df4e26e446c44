//! Mutual TLS with a played GCS: who is let in, and who is believed.

use std::path::Path;
use std::sync::Arc;

use crate::play_gcs::{Played, PlayedGcs};
use crate::tls_support::{Authority, Issued, NAME, ca, issue};
use rayfit::gcs::{Client, Endpoint, GcsFault, GcsLimits, Material, Tls};
use rayfit::tls::provider;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};

/// A GCS of `authority`'s, that lets in clients of `clients`.
fn server(authority: &Authority, clients: &Authority) -> ServerConfig {
    let mut roots = RootCertStore::empty();
    roots.add(clients.der().clone()).unwrap();
    let verifier =
        WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::new(provider()))
            .build()
            .unwrap();
    let Issued { chain, key } = issue(authority, 1);
    let mut config = ServerConfig::builder_with_provider(Arc::new(provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_client_cert_verifier(verifier)
        .with_single_cert(
            CertificateDer::pem_slice_iter(chain.as_bytes())
                .collect::<Result<_, _>>()
                .unwrap(),
            PrivateKeyDer::from_pem_slice(key.as_bytes()).unwrap(),
        )
        .unwrap();
    config.alpn_protocols = vec![b"h2".to_vec()];
    config
}

/// What a client of `authority`'s shows, to a GCS of `trusted`'s that is called `localhost`.
fn tls(authority: &Authority, trusted: &Authority) -> Tls {
    let Issued { chain, key } = issue(authority, 1);
    Tls {
        certificate: Material::Memory(chain.into_bytes().into()),
        key: Material::Memory(key.into_bytes().into()),
        authority: Material::Memory(trusted.pem().into_bytes().into()),
        server_name: Some(NAME.to_owned()),
    }
}

fn client(gcs: &PlayedGcs, tls: Option<Tls>) -> Client {
    let endpoint = Endpoint {
        tls,
        ..Endpoint::plain(gcs.address())
    };
    Client::new(endpoint, GcsLimits::default())
}

async fn fault_of(client: &Client) -> GcsFault {
    client.cluster_resource_state().await.unwrap_err().fault
}

#[tokio::test]
async fn both_sides_of_one_authority_agree() {
    let authority = ca(1);
    let gcs = PlayedGcs::start_tls(Played::default(), server(&authority, &authority)).await;
    let client = client(&gcs, Some(tls(&authority, &authority)));
    client.cluster_resource_state().await.unwrap();
    assert_eq!(gcs.played().connections, 1);
}

#[tokio::test]
async fn a_gcs_of_another_authority_is_not_believed() {
    let (ours, theirs) = (ca(1), ca(1));
    let gcs = PlayedGcs::start_tls(Played::default(), server(&theirs, &ours)).await;
    let fault = fault_of(&client(&gcs, Some(tls(&ours, &ours)))).await;
    assert!(matches!(fault, GcsFault::Tls(_)), "{fault}");
    assert!(gcs.played().headers.is_empty(), "nothing was asked of it");
}

#[tokio::test]
async fn a_gcs_of_another_name_is_not_believed() {
    let authority = ca(1);
    let gcs = PlayedGcs::start_tls(Played::default(), server(&authority, &authority)).await;
    // Without a name of its own it has to be certified for its address, 127.0.0.1.
    let by_address = Tls {
        server_name: None,
        ..tls(&authority, &authority)
    };
    let fault = fault_of(&client(&gcs, Some(by_address))).await;
    assert!(
        matches!(&fault, GcsFault::Tls(text) if text.contains("127.0.0.1")),
        "{fault}"
    );
}

#[tokio::test]
async fn a_client_of_another_authority_gets_an_error_that_says_so() {
    let (ours, theirs) = (ca(1), ca(1));
    let gcs = PlayedGcs::start_tls(Played::default(), server(&theirs, &theirs)).await;
    let fault = fault_of(&client(&gcs, Some(tls(&ours, &theirs)))).await;
    assert!(matches!(fault, GcsFault::Tls(_)), "{fault}");
    let fault = fault_of(&client(&gcs, None)).await;
    assert!(matches!(fault, GcsFault::Unreachable(_)), "{fault}");
    assert!(gcs.played().headers.is_empty(), "nobody was let in");
}

#[tokio::test]
async fn a_gcs_without_tls_is_not_spoken_to() {
    let authority = ca(1);
    let gcs = PlayedGcs::start(Played::default()).await;
    let fault = fault_of(&client(&gcs, Some(tls(&authority, &authority)))).await;
    assert!(matches!(fault, GcsFault::Tls(_)), "{fault}");
}

#[tokio::test]
async fn files_are_read_again_for_each_connection() {
    let folder = tempfile::tempdir().unwrap();
    let (first, second) = (ca(1), ca(1));
    let write = |authority: &Authority| {
        let Issued { chain, key } = issue(authority, 1);
        std::fs::write(folder.path().join("tls.crt"), chain).unwrap();
        std::fs::write(folder.path().join("tls.key"), key).unwrap();
        std::fs::write(folder.path().join("ca.crt"), authority.pem()).unwrap();
    };
    let gcs = PlayedGcs::start_tls(Played::default(), server(&first, &first)).await;
    let client = client(&gcs, Some(files(folder.path())));
    let fault = fault_of(&client).await;
    assert!(
        matches!(&fault, GcsFault::Credentials(text) if text.contains("ca.crt")),
        "{fault}"
    );
    write(&first);
    client.cluster_resource_state().await.unwrap();
    // The cluster's certificates are replaced, with another authority even.
    write(&second);
    client.cluster_resource_state().await.unwrap();
    let at = gcs.kill().await;
    let acceptor = tokio_rustls::TlsAcceptor::from(Arc::new(server(&second, &second)));
    let gcs = PlayedGcs::again(at, Played::default(), Some(acceptor)).await;
    if client.cluster_resource_state().await.is_err() {
        client.cluster_resource_state().await.unwrap();
    }
    assert_eq!(gcs.played().connections, 1);
}

fn files(folder: &Path) -> Tls {
    let file = |name: &str| Material::File(folder.join(name));
    Tls {
        certificate: file("tls.crt"),
        key: file("tls.key"),
        authority: file("ca.crt"),
        server_name: Some(NAME.to_owned()),
    }
}
