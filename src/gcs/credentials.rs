//! Credentials: keys, certificates and tokens, in memory or in files; mutual TLS as in Ray, in which both sides present
//! a certificate of the same authority; and the token of Ray's token authentication.

use std::fmt;
use std::io::Read as _;
use std::path::PathBuf;
use std::sync::Arc;

use rustls::client::Resumption;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::version::{TLS12, TLS13};
use rustls::{ClientConfig, RootCertStore};
use tonic::metadata::{Ascii, MetadataValue};

use crate::tls::provider;

/// The largest token, certificate bundle or key, in bytes.
// Kubernetes takes no Secret above 1 MiB.
const LARGEST: u64 = 1 << 20;

/// A secret, token or certificate: the content itself, or a file that is read again at each use, because
/// mounted Secrets and projected tokens are replaced. `Debug` never shows the content.
#[derive(Clone, PartialEq, Eq, derive_more::Debug)]
pub enum Material {
    /// A file.
    #[debug("File({})", _0.display())]
    File(PathBuf),
    /// The content.
    #[debug("Memory({} bytes)", _0.len())]
    Memory(Arc<[u8]>),
}

impl Material {
    /// The content, or why it cannot be read.
    fn read(&self) -> Result<Arc<[u8]>, String> {
        let path = match self {
            Self::Memory(content) => return Ok(Arc::clone(content)),
            Self::File(path) => path,
        };
        let mut content = Vec::new();
        // The size is not asked for beforehand: a file can grow, and a device has none.
        let read = std::fs::File::open(path)
            .and_then(|file| file.take(LARGEST + 1).read_to_end(&mut content));
        let reason = match read {
            Ok(_) if content.len() as u64 <= LARGEST => return Ok(content.into()),
            Ok(_) => format!("it has more than {LARGEST} bytes"),
            Err(error) => error.to_string(),
        };
        let file = path.display();
        Err(format!(
            "cannot read {file}: {reason}; is its volume mounted into this container?"
        ))
    }
}

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

impl Tls {
    /// The configuration of one connection, or why none is possible.
    pub(super) fn config(&self) -> Result<Arc<ClientConfig>, String> {
        let certificates = |what: &str, material: &Material| {
            let pem = material.read()?;
            let read: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&pem).collect();
            match read {
                Ok(read) if read.is_empty() => Err(not_pem(what, material, &"no certificate")),
                read => read.map_err(|error| not_pem(what, material, &error)),
            }
        };
        let mut roots = RootCertStore::empty();
        for certificate in certificates("authority", &self.authority)? {
            let added = roots.add(certificate);
            added.map_err(|error| not_pem("authority", &self.authority, &error))?;
        }
        let chain = certificates("certificate", &self.certificate)?;
        let key = PrivateKeyDer::from_pem_slice(&self.key.read()?)
            .map_err(|error| not_pem("key", &self.key, &error))?;
        let config = ClientConfig::builder_with_provider(Arc::new(provider()))
            .with_protocol_versions(&[&TLS13, &TLS12])
            .and_then(|config| {
                config
                    .with_root_certificates(roots)
                    .with_client_auth_cert(chain, key)
            });
        let mut config = config
            .map_err(|error| format!("the certificate and its key cannot be used: {error}"))?;
        // gRPC in C++ refuses a connection without ALPN, and here tonic's own TLS does not set it.
        config.alpn_protocols = vec![b"h2".to_vec()];
        // There is one long connection per GCS, so remembering sessions would only cost memory.
        config.resumption = Resumption::disabled();
        Ok(Arc::new(config))
    }
}

fn not_pem(what: &str, material: &Material, reason: &dyn fmt::Display) -> String {
    format!("there is no PEM {what} in {material:?}: {reason}")
}

impl Material {
    /// The value of the header `authorization` with this token as it is now, or why there is none. Its
    /// `Debug` never shows it.
    pub(super) fn header(&self) -> Result<MetadataValue<Ascii>, String> {
        let unprintable =
            || format!("the token in {self:?} has characters that no HTTP header can have");
        let content = self.read()?;
        let text = std::str::from_utf8(&content).map_err(|_| unprintable())?;
        // As Ray reads it: the first line, without blanks around it. Ray compares the word `Bearer`
        // by case.
        let line = text.lines().next().unwrap_or_default().trim();
        if line.is_empty() {
            return Err(format!(
                "the token in {self:?} is empty: put the cluster's token there"
            ));
        }
        let mut value =
            MetadataValue::try_from(format!("Bearer {line}")).map_err(|_| unprintable())?;
        // A sensitive value is not shown by Debug, and not kept in the compression table of HTTP/2.
        value.set_sensitive(true);
        Ok(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(text: &str) -> Material {
        Material::Memory(text.as_bytes().into())
    }

    #[test]
    fn the_first_line_without_blanks_is_the_token() {
        let header = source(" s3cret \nsecond\n").header().unwrap();
        assert_eq!(header.to_str().unwrap(), "Bearer s3cret");
    }

    #[test]
    fn a_token_that_cannot_be_sent_is_refused() {
        let why = |text: &str| source(text).header().unwrap_err();
        assert!(why("\nx").contains("is empty"));
        assert!(why("a\u{7}b").contains("characters that no HTTP header"));
    }

    #[test]
    fn a_file_is_read_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token");
        let source = Material::File(path.clone());
        assert!(source.header().unwrap_err().contains("cannot read"));
        for text in ["one", "two"] {
            std::fs::write(&path, text).unwrap();
            let header = source.header().unwrap();
            assert_eq!(header.to_str().unwrap(), format!("Bearer {text}"));
        }
    }

    #[test]
    fn nothing_shows_the_token() {
        let source = source("s3cret");
        let shown = format!("{source:?} {:?}", source.header().unwrap());
        assert!(!shown.contains("s3cret"), "{shown}");
    }
}
