//! A client that does what API servers do, and what attackers do.

#![allow(
    dead_code,
    unreachable_pub,
    missing_docs,
    reason = "each test binary includes it and uses a part of it"
)]

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::http::{HeaderMap, Request, StatusCode, header};
use http_body_util::BodyExt as _;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::WebPkiSupportedAlgorithms;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, SignatureScheme, SupportedProtocolVersion};
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// Serves a played API server, and returns its address.
pub async fn served(router: Router) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, router).await });
    address
}

/// Serves a played API server, and returns the file of a kubeconfig that leads to it.
pub async fn kubeconfig(router: Router, file: PathBuf) -> PathBuf {
    let address = served(router).await;
    kubeconfig_of(&json!({"server": format!("http://{address}")}), file)
}

/// Writes a kubeconfig with what it says of the cluster, and returns its file.
pub fn kubeconfig_of(cluster: &Value, file: PathBuf) -> PathBuf {
    let config = json!({"apiVersion": "v1", "kind": "Config", "current-context": "c",
        "clusters": [{"name": "c", "cluster": cluster}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        "users": [{"name": "u", "user": {}}]});
    std::fs::write(&file, config.to_string()).unwrap();
    file
}

/// Takes any certificate; signatures are checked all the same, so a chain with another key fails.
#[derive(Debug)]
struct AnyCertificate(WebPkiSupportedAlgorithms);

impl ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _leaf: &CertificateDer<'_>,
        _chain: &[CertificateDer<'_>],
        _name: &ServerName<'_>,
        _ocsp: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        leaf: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        rustls::crypto::verify_tls12_signature(message, leaf, signed, &self.0)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        leaf: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        rustls::crypto::verify_tls13_signature(message, leaf, signed, &self.0)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.supported_schemes()
    }
}

/// TLS as API servers speak it, or in another version.
pub fn tls(versions: &[&'static SupportedProtocolVersion], protocol: &str) -> Arc<ClientConfig> {
    let provider = rayfit::tls::provider();
    let verifier = AnyCertificate(provider.signature_verification_algorithms);
    let mut config = ClientConfig::builder_with_provider(Arc::new(provider))
        .with_protocol_versions(versions)
        .unwrap()
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier))
        .with_no_client_auth();
    config.alpn_protocols = vec![protocol.as_bytes().to_vec()];
    config.resumption = rustls::client::Resumption::disabled();
    Arc::new(config)
}

/// TLS 1.3 and HTTP/1.1.
pub fn usual() -> Arc<ClientConfig> {
    tls(&[&rustls::version::TLS13], "http/1.1")
}

pub type Failure = Box<dyn std::error::Error + Send + Sync>;

pub async fn connect(
    address: SocketAddr,
    config: Arc<ClientConfig>,
) -> Result<TlsStream<TcpStream>, Failure> {
    let stream = TcpStream::connect(address).await?;
    let name = ServerName::try_from("localhost")?;
    Ok(TlsConnector::from(config).connect(name, stream).await?)
}

/// A connection without TLS from one of this machine's own addresses, so that one test can play
/// several clients: those of 127.0.0.0/8 are all its.
pub async fn connect_from(source: [u8; 4], address: SocketAddr) -> std::io::Result<TcpStream> {
    let socket = TcpSocket::new_v4()?;
    socket.bind((source, 0).into())?;
    socket.connect(address).await
}

/// The same with TLS.
pub async fn connect_tls_from(
    source: [u8; 4],
    address: SocketAddr,
) -> Result<TlsStream<TcpStream>, Failure> {
    let stream = connect_from(source, address).await?;
    let name = ServerName::try_from("localhost")?;
    Ok(TlsConnector::from(usual()).connect(name, stream).await?)
}

/// An HTTP/1.1 connection that is kept open.
pub struct Connection {
    sender: http1::SendRequest<Body>,
    /// The leaf that the server showed.
    pub leaf: Vec<u8>,
}

pub struct Answer {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub body: String,
}

impl Answer {
    pub fn closes(&self) -> bool {
        self.headers
            .get(header::CONNECTION)
            .is_some_and(|value| value == "close")
    }
}

pub fn request(path: &str, body: String) -> Request<Body> {
    Request::post(path)
        .header("host", "localhost")
        .header("content-type", "application/json")
        .header("content-length", body.len())
        .body(Body::from(body))
        .unwrap()
}

impl Connection {
    pub async fn open(address: SocketAddr) -> Result<Self, Failure> {
        Self::open_with(address, usual()).await
    }

    pub async fn open_with(
        address: SocketAddr,
        config: Arc<ClientConfig>,
    ) -> Result<Self, Failure> {
        let stream = connect(address, config).await?;
        let certificates = stream.get_ref().1.peer_certificates();
        let leaf = certificates.unwrap()[0].to_vec();
        let (sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
        tokio::spawn(connection);
        Ok(Self { sender, leaf })
    }

    /// From one of this machine's own addresses.
    pub async fn open_from(source: [u8; 4], address: SocketAddr) -> Result<Self, Failure> {
        let stream = connect_tls_from(source, address).await?;
        let (sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
        tokio::spawn(connection);
        Ok(Self {
            sender,
            leaf: Vec::new(),
        })
    }

    pub async fn send(&mut self, request: Request<Body>) -> Result<Answer, Failure> {
        self.sender.ready().await?;
        let (parts, body) = self.sender.send_request(request).await?.into_parts();
        Ok(Answer {
            status: parts.status,
            headers: parts.headers,
            body: String::from_utf8(body.collect().await?.to_bytes().to_vec())?,
        })
    }

    /// One review, which must be answered with 200.
    pub async fn review(&mut self, review: &str) -> Result<Answer, Failure> {
        let answer = self
            .send(request("/validate?timeout=30s", review.to_owned()))
            .await?;
        if answer.status == StatusCode::OK {
            Ok(answer)
        } else {
            Err(format!("{}: {}", answer.status, answer.body).into())
        }
    }
}

/// One GET without TLS.
pub async fn get(address: SocketAddr, path: &str) -> Result<Answer, Failure> {
    let stream = TcpStream::connect(address).await?;
    let (sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    tokio::spawn(connection);
    let mut connection = Connection {
        sender,
        leaf: Vec::new(),
    };
    let get = Request::get(path).header("host", "x").body(Body::empty())?;
    connection.send(get).await
}
