//! Reads certificates in PEM. What cannot be read counts as absent, and is made anew.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rayfit_core::text::hex;
use ring::digest::{SHA256, digest};
use rustls::RootCertStore;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::ServerCertVerifier as _;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};

use super::contents::{Anchor, Authority, BACKDATED, Leaf, PrivateKey};
use crate::tls::pair::validity;
use crate::tls::{ServingPair, provider};

/// The SHA-256 digest of a certificate, in hexadecimal.
pub(super) fn id(certificate: &CertificateDer<'_>) -> String {
    hex(digest(&SHA256, certificate).as_ref())
}

/// Every authority in a PEM text, and whether the text contains nothing else.
pub(super) fn anchors(pem: &[u8]) -> (Vec<Anchor>, bool) {
    let mut clean = true;
    let mut anchors = Vec::new();
    for certificate in CertificateDer::pem_slice_iter(pem) {
        let certificate = certificate.ok();
        let valid = certificate.and_then(|read| Some((validity(&read).ok()?, read)));
        let Some(((not_before, not_after), certificate)) = valid else {
            clean = false;
            continue;
        };
        // In PEM it always has the same form, so that bundles can be compared.
        let text = STANDARD.encode(&certificate);
        // Lines in PEM have 64 characters (RFC 7468, section 2).
        let lines = text.as_bytes().chunks(64).map(String::from_utf8_lossy);
        let lines = lines.collect::<Vec<_>>().join("\n");
        anchors.push(Anchor {
            id: id(&certificate),
            issued: not_before + BACKDATED,
            not_after,
            pem: format!("-----BEGIN CERTIFICATE-----\n{lines}\n-----END CERTIFICATE-----\n"),
        });
    }
    (anchors, clean)
}

/// An authority; with its key only if the key belongs to the certificate.
pub(super) fn authority(certificate: &[u8], key: &[u8]) -> Option<Authority> {
    let (anchors, _) = anchors(certificate);
    let anchor = anchors.into_iter().next()?;
    let fits = ServingPair::from_pem(anchor.pem.as_bytes(), key).is_ok();
    let key = std::str::from_utf8(key).ok().filter(|_| fits);
    Some(Authority {
        anchor,
        key: key.map(|key| PrivateKey(key.to_owned())),
    })
}

/// A serving certificate that fits its key, with the authority by which it is valid.
pub(super) fn leaf(
    chain: &[u8],
    key: &[u8],
    authorities: &[&Anchor],
    hosts: &[String],
) -> Option<Leaf> {
    let pair = ServingPair::from_pem(chain, key).ok()?;
    let certificate = pair.leaf()?;
    // By its signature and not by the name of its issuer: all authorities have one name.
    let vouches = |anchor: &&&Anchor| vouches(anchor, certificate, hosts, pair.not_after);
    let (not_before, _) = validity(certificate).ok()?;
    Some(Leaf {
        id: id(certificate),
        issuer: authorities
            .iter()
            .find(vouches)
            .map(|anchor| anchor.id.clone()),
        issued: not_before + BACKDATED,
        not_after: pair.not_after,
        chain: std::str::from_utf8(chain).ok()?.to_owned(),
        key: PrivateKey(std::str::from_utf8(key).ok()?.to_owned()),
    })
}

/// Checks whether a client that trusts only `anchor` would accept `leaf` for each of `hosts`, until
/// shortly before the leaf ends.
fn vouches(anchor: &Anchor, leaf: &CertificateDer<'_>, hosts: &[String], end: SystemTime) -> bool {
    let mut roots = RootCertStore::empty();
    roots
        .add_parsable_certificates(CertificateDer::pem_slice_iter(anchor.pem.as_bytes()).flatten());
    let verifier =
        WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::new(provider())).build();
    // For the end of the leaf and not for now: an authority that ends before the leaf does not vouch
    // for all of its lifetime.
    let last = end.duration_since(UNIX_EPOCH).unwrap_or_default();
    let time = UnixTime::since_unix_epoch(last.saturating_sub(Duration::from_secs(1)));
    let accepts = |verifier: &WebPkiServerVerifier, host: &String| {
        ServerName::try_from(host.as_str()).is_ok_and(|host| {
            verifier
                .verify_server_cert(leaf, &[], &host, &[], time)
                .is_ok()
        })
    };
    verifier.is_ok_and(|verifier| hosts.iter().all(|host| accepts(&verifier, host)))
}
