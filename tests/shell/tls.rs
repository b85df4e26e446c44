//! Certificates: what is read, what is refused, what is swapped.

#![allow(
    clippy::disallowed_methods,
    clippy::duration_suboptimal_units,
    reason = "tests look at the clock; days in seconds read better here"
)]

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use rayfit::tls::directory::{DirectoryError, Poller};
use rayfit::tls::{CertificateStore, Installed, ServingPair};

use crate::tls_support::{ca, expired, issue, mount, self_signed};

fn served(store: &CertificateStore) -> Vec<u8> {
    store.current().unwrap().leaf().unwrap().to_vec()
}

#[test]
fn a_chain_with_an_intermediate_is_read_and_its_earliest_end_counts() {
    let authority = ca(40);
    let leaf = issue(&authority, 10);
    let chain = format!("{}{}", leaf.chain, authority.pem());
    let pair = ServingPair::from_pem(chain.as_bytes(), leaf.key.as_bytes()).unwrap();
    let in_days = |days: u32| SystemTime::now() + days * Duration::from_hours(24);
    let until = pair.not_after;
    assert!(in_days(9) < until && until < in_days(11), "{until:?}");
}

#[test]
fn pkcs1_sec1_and_pkcs8_keys_are_read() {
    for (format, chain, key) in crate::tls_support::key_formats() {
        ServingPair::from_pem(chain.as_bytes(), key.as_bytes())
            .unwrap_or_else(|error| panic!("{format}: {error}"));
    }
}

#[test]
fn a_key_of_another_certificate_is_refused_and_the_old_pair_stays() {
    let store = CertificateStore::default();
    let (first, second) = (self_signed("a.svc"), self_signed("b.svc"));
    assert_eq!(first.install(&store).unwrap(), Installed::Swapped);
    assert_eq!(first.install(&store).unwrap(), Installed::Unchanged);
    let before = served(&store);
    let mixed = store.install(second.chain.as_bytes(), first.key.as_bytes());
    let mixed = mixed.unwrap_err().to_string();
    let mismatch = "the private key cannot serve this certificate (";
    assert!(mixed.starts_with(mismatch), "{mixed}");
    for (chain, key) in [("", &*first.key), (&*first.chain, ""), ("x", "x")] {
        assert!(store.install(chain.as_bytes(), key.as_bytes()).is_err());
    }
    let cut = &first.chain[..first.chain.len() / 2];
    assert!(store.install(cut.as_bytes(), first.key.as_bytes()).is_err());
    assert_eq!(served(&store), before);
    assert_eq!((store.swapped(), store.refused()), (1, 5));
}

#[test]
fn an_expired_certificate_is_known_to_be_expired() {
    let store = CertificateStore::default();
    let is_valid_at = |now| store.not_after().is_some_and(|end| now < end);
    assert!(!is_valid_at(SystemTime::now()));
    expired().install(&store).unwrap();
    assert!(!is_valid_at(SystemTime::now()));
    self_signed("a.svc").install(&store).unwrap();
    assert!(is_valid_at(SystemTime::now()));
    assert!(!is_valid_at(
        SystemTime::now() + Duration::from_secs(3000 * 365 * 86_400)
    ));
}

#[test]
fn no_key_shows_in_debug_output_or_errors() {
    let pair = self_signed("a.svc");
    let store = CertificateStore::default();
    pair.install(&store).unwrap();
    let secret: &str = pair.key.lines().nth(1).unwrap();
    assert!(!format!("{store:?}").contains(secret));
    let error = store.install(b"", pair.key.as_bytes()).unwrap_err();
    assert!(!format!("{error} {error:?}").contains(secret));
}

fn poller(path: &Path) -> (Poller, Arc<CertificateStore>) {
    let store = Arc::new(CertificateStore::default());
    (Poller::new(path.to_owned(), store.clone()), store)
}

#[test]
fn every_symlink_swap_is_seen() {
    let volume = tempfile::tempdir().unwrap();
    let (mut poller, store) = poller(volume.path());
    assert!(matches!(poller.poll(), Err(DirectoryError::Read { .. })));
    for version in 0..5 {
        let pair = self_signed("a.svc");
        mount(volume.path(), version, &pair);
        assert_eq!(poller.poll().unwrap(), Some(Installed::Swapped));
        assert_eq!(poller.poll().unwrap(), None);
        assert_eq!(served(&store), pair.der());
    }
    assert_eq!((store.swapped(), store.refused()), (5, 0));
}

#[test]
fn a_broken_pair_in_the_directory_is_reported_once_and_mended_by_the_next_good_one() {
    let volume = tempfile::tempdir().unwrap();
    let (mut poller, store) = poller(volume.path());
    let (first, second) = (self_signed("a.svc"), self_signed("b.svc"));
    mount(volume.path(), 0, &first);
    poller.poll().unwrap();
    fs::write(volume.path().join("..data/tls.crt"), &second.chain).unwrap();
    assert!(matches!(poller.poll(), Err(DirectoryError::Refused { .. })));
    assert_eq!(poller.poll().unwrap(), None);
    assert_eq!(served(&store), first.der());
    fs::write(volume.path().join("..data/tls.key"), &second.key).unwrap();
    assert_eq!(poller.poll().unwrap(), Some(Installed::Swapped));
    assert_eq!(served(&store), second.der());
}
