//! Creates keys and certificates: ECDSA on P-256, which the TLS of every API server supports.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};
use thiserror::Error;

use super::contents::{Anchor, Authority, BACKDATED, Leaf, PrivateKey};
use super::inspect;

/// The lifetime of an authority.
// Replacing it is the one thing about certificates that needs time to reach every API server.
pub const AUTHORITY_LIFETIME: Duration = Duration::from_hours(3_650 * 24);
/// The name of every authority; authorities are told apart by their keys.
const AUTHORITY_NAME: &str = "rayfit-webhook-ca";

/// The reason why no certificate could be created.
#[derive(Debug, Error)]
pub enum IssueError {
    /// The authority has no key that belongs to it.
    #[error(
        "the authority in the Secret has no usable key: a new one is made within \
         seconds"
    )]
    NoKey,
    /// The library refused, for example because a host name is not a DNS name.
    #[error("a certificate cannot be issued ({0}): check whether the host names are DNS names")]
    Refused(#[from] rcgen::Error),
}

/// Creates an authority.
pub fn authority(now: SystemTime) -> Result<Authority, IssueError> {
    let key = KeyPair::generate()?;
    let issued = whole_seconds(now);
    let not_after = issued + AUTHORITY_LIFETIME;
    let mut parameters = authority_parameters();
    parameters.not_before = (issued - BACKDATED).into();
    parameters.not_after = not_after.into();
    let certificate = parameters.self_signed(&key)?;
    Ok(Authority {
        anchor: Anchor {
            id: inspect::id(certificate.der()),
            issued,
            not_after,
            pem: certificate.pem(),
        },
        key: Some(PrivateKey(key.serialize_pem())),
    })
}

/// Creates a serving certificate for `hosts`, signed by `authority`.
pub fn leaf(
    authority: &Authority,
    hosts: &[String],
    lifetime: Duration,
    now: SystemTime,
) -> Result<Leaf, IssueError> {
    let PrivateKey(signing_key) = authority.key.as_ref().ok_or(IssueError::NoKey)?;
    let signer = Issuer::new(authority_parameters(), KeyPair::from_pem(signing_key)?);
    let key = KeyPair::generate()?;
    // Cut to the end of the authority, after which API servers refuse the leaf whatever it says of
    // itself.
    let issued = whole_seconds(now);
    let not_after = authority.anchor.not_after.min(issued + lifetime);
    let mut parameters = CertificateParams::new(hosts.to_vec())?;
    parameters.distinguished_name = common_name("rayfit");
    parameters.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    parameters.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    // All authorities have one name: by the identifier a verifier finds the one that has signed.
    parameters.use_authority_key_identifier_extension = true;
    parameters.not_before = (issued - BACKDATED).into();
    parameters.not_after = not_after.into();
    let certificate = parameters.signed_by(&key, &signer)?;
    Ok(Leaf {
        id: inspect::id(certificate.der()),
        issuer: Some(authority.anchor.id.clone()),
        issued,
        not_after,
        chain: certificate.pem(),
        key: PrivateKey(key.serialize_pem()),
    })
}

/// The time without its fraction of a second.
fn whole_seconds(time: SystemTime) -> SystemTime {
    // Certificates have no fractions of a second.
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    UNIX_EPOCH + Duration::from_secs(since.as_secs())
}

fn authority_parameters() -> CertificateParams {
    let mut parameters = CertificateParams::default();
    parameters.distinguished_name = common_name(AUTHORITY_NAME);
    // It signs serving certificates, and no other authority.
    parameters.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    parameters.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    parameters
}

fn common_name(name: &str) -> rcgen::DistinguishedName {
    let mut distinguished = rcgen::DistinguishedName::new();
    distinguished.push(DnType::CommonName, name);
    distinguished
}
