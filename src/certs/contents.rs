//! The contents of the Secret.

use std::time::{Duration, SystemTime};

/// Certificates are valid from this long before their issue, for API servers whose clocks are behind.
pub(super) const BACKDATED: Duration = Duration::from_hours(1);

/// A private key in PEM. It gets into no log by way of its `Debug`.
#[derive(Clone, PartialEq, Eq, derive_more::Debug)]
#[debug("PrivateKey(..)")]
pub struct PrivateKey(pub String);

/// The certificate of an authority, as CA bundles hold it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Anchor {
    /// The SHA-256 digest of the certificate, in hexadecimal.
    pub id: String,
    /// The time of its issue.
    pub issued: SystemTime,
    /// The end of its validity.
    pub not_after: SystemTime,
    /// The certificate in PEM.
    pub pem: String,
}

/// A certificate authority.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Authority {
    /// The authority's certificate.
    pub anchor: Anchor,
    /// The authority's key. Without it the certificates that the authority has signed stay valid,
    /// but it can no longer sign.
    pub key: Option<PrivateKey>,
}

/// A serving certificate with its key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Leaf {
    /// The SHA-256 digest of the certificate, in hexadecimal.
    pub id: String,
    /// The authority by which the leaf is valid for all wanted names. `None`: the leaf cannot be
    /// used.
    pub issuer: Option<String>,
    /// The time of its issue.
    pub issued: SystemTime,
    /// The end of its validity.
    pub not_after: SystemTime,
    /// The chain in PEM, leaf first.
    pub chain: String,
    /// The leaf's key.
    pub key: PrivateKey,
}

/// The contents of the Secret.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Contents {
    /// The authority that signs.
    pub authority: Option<Authority>,
    /// Authorities that do not sign any more, or never did, but whose certificates may still be
    /// served.
    pub former: Vec<Anchor>,
    /// The serving certificate.
    pub leaf: Option<Leaf>,
}
