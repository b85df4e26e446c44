//! Certificates made for tests.

#![allow(
    dead_code,
    unreachable_pub,
    missing_docs,
    reason = "each test binary includes it and uses a part of it"
)]
#![allow(
    clippy::disallowed_methods,
    clippy::duration_suboptimal_units,
    reason = "certificates are dated, in days of seconds"
)]

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use base64::Engine as _;
use rayfit::tls::{CertificateStore, Installed};
use rayfit_core::text::Misread;
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DistinguishedName, DnType,
    ExtendedKeyUsagePurpose, IsCa, KeyPair, date_time_ymd,
};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;

/// The name that test servers answer to.
pub const NAME: &str = "localhost";

/// A chain and its key, in PEM.
#[derive(Clone)]
pub struct Issued {
    pub chain: String,
    pub key: String,
}

impl Issued {
    pub fn install(&self, store: &CertificateStore) -> Result<Installed, Misread> {
        store.install(self.chain.as_bytes(), self.key.as_bytes())
    }

    /// The leaf.
    pub fn der(&self) -> Vec<u8> {
        CertificateDer::from_pem_slice(self.chain.as_bytes())
            .unwrap()
            .to_vec()
    }
}

pub type Authority = CertifiedIssuer<'static, KeyPair>;

fn params(days: i64) -> CertificateParams {
    params_for(&[NAME], days)
}

fn params_for(names: &[&str], days: i64) -> CertificateParams {
    let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    let mut params = CertificateParams::new(names).unwrap();
    let now = std::time::SystemTime::now();
    let days = std::time::Duration::from_secs(u64::try_from(days).unwrap() * 86_400);
    params.not_before = (now - std::time::Duration::from_secs(3600)).into();
    params.not_after = (now + days).into();
    params
}

/// A certificate authority that lives for so many days.
pub fn ca(days: i64) -> Authority {
    let mut params = params(days);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
}

/// A leaf of `authority` that lives for so many days.
pub fn issue(authority: &Authority, days: i64) -> Issued {
    issue_for(authority, &[NAME], days)
}

/// A leaf of `authority` for a caller, or for what `purpose` says.
pub fn issue_to_client(authority: &Authority, purpose: ExtendedKeyUsagePurpose) -> Issued {
    let mut params = params(10);
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, NAME);
    params.extended_key_usages = vec![purpose];
    let key = KeyPair::generate().unwrap();
    Issued {
        chain: params.signed_by(&key, authority).unwrap().pem(),
        key: key.serialize_pem(),
    }
}

/// A leaf of `authority` with these names and addresses.
pub fn issue_for(authority: &Authority, names: &[&str], days: i64) -> Issued {
    let key = KeyPair::generate().unwrap();
    let mut params = params_for(names, days);
    // With its authority's name OpenSSL would take it for self-signed.
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, names[0]);
    let leaf = params.signed_by(&key, authority).unwrap();
    Issued {
        chain: leaf.pem(),
        key: key.serialize_pem(),
    }
}

/// A leaf that is its own authority.
pub fn self_signed(name: &str) -> Issued {
    let made = rcgen::generate_simple_self_signed([name.to_owned()]).unwrap();
    Issued {
        chain: made.cert.pem(),
        key: made.signing_key.serialize_pem(),
    }
}

/// A leaf of yesteryear.
pub fn expired() -> Issued {
    let key = KeyPair::generate().unwrap();
    let mut params = params(1);
    params.not_before = date_time_ymd(2020, 1, 1);
    params.not_after = date_time_ymd(2021, 1, 1);
    Issued {
        chain: params.self_signed(&key).unwrap().pem(),
        key: key.serialize_pem(),
    }
}

/// One pair for each key format that issuers write: name, chain, key.
pub fn key_formats() -> [(&'static str, String, String); 3] {
    let pkcs8 = self_signed(NAME);
    let sec1 = Issued {
        chain: pkcs8.chain.clone(),
        key: sec1_of(&pkcs8.key),
    };
    [
        ("PKCS#8", pkcs8.chain, pkcs8.key),
        ("SEC1", sec1.chain, sec1.key),
        (
            "PKCS#1",
            include_str!("../fixtures/tls/rsa.crt").to_owned(),
            include_str!("../fixtures/tls/rsa-pkcs1.key").to_owned(),
        ),
    ]
}

/// The `ECPrivateKey` inside a PKCS#8 key of P-256: what follows the fixed header of 29 bytes.
fn sec1_of(pkcs8_pem: &str) -> String {
    let der = rustls::pki_types::PrivatePkcs8KeyDer::from_pem_slice(pkcs8_pem.as_bytes()).unwrap();
    let (header, inner) = der.secret_pkcs8_der().split_at(29);
    assert_eq!(header.last(), Some(&0x6d), "the layout of the key changed");
    let text = base64::engine::general_purpose::STANDARD.encode(inner);
    format!("-----BEGIN EC PRIVATE KEY-----\n{text}\n-----END EC PRIVATE KEY-----\n")
}

/// Kubelet's layout: `tls.crt -> ..data/tls.crt`, `..data -> ..<version>`.
pub fn mount(directory: &Path, version: usize, pair: &Issued) {
    let data = directory.join(format!("..version-{version}"));
    fs::create_dir(&data).unwrap();
    fs::write(data.join("tls.crt"), &pair.chain).unwrap();
    fs::write(data.join("tls.key"), &pair.key).unwrap();
    symlink(data.file_name().unwrap(), directory.join("..data_tmp")).unwrap();
    fs::rename(directory.join("..data_tmp"), directory.join("..data")).unwrap();
    for name in ["tls.crt", "tls.key"] {
        if !directory.join(name).exists() {
            symlink(Path::new("..data").join(name), directory.join(name)).unwrap();
        }
    }
    if version > 0 {
        fs::remove_dir_all(directory.join(format!("..version-{}", version - 1))).unwrap();
    }
}
