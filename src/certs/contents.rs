//! The contents of the Secret, and how each step changes them.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::time::SystemTime;

/// The SHA-256 digest of a certificate, in hexadecimal.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Id(pub String);

/// A private key in PEM.
#[derive(Clone, PartialEq, Eq)]
pub struct PrivateKey(pub String);

impl fmt::Debug for PrivateKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A key must not get into a log by way of this text.
        f.write_str("PrivateKey(..)")
    }
}

/// The certificate of an authority, as CA bundles hold it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Anchor {
    /// The certificate's digest.
    pub id: Id,
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
    /// The certificate's digest.
    pub id: Id,
    /// The authority by which the leaf is valid for all wanted names. `None`: the leaf cannot be
    /// used.
    pub issuer: Option<Id>,
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
    pub current: Option<Authority>,
    /// The authority that will sign once every API server trusts it.
    pub next: Option<Authority>,
    /// Authorities that no longer sign, but whose certificates may still be served.
    pub old: Vec<Anchor>,
    /// The serving certificate.
    pub leaf: Option<Leaf>,
    /// The leaf that each replica has acknowledged to serve.
    pub served: BTreeMap<String, Id>,
}

impl Contents {
    /// Every authority that API servers have to trust at `now`, each once.
    pub fn anchors(&self, now: SystemTime) -> Vec<&Anchor> {
        let mut seen = BTreeSet::new();
        let authorities = self.current.iter().chain(&self.next);
        authorities
            .map(|authority| &authority.anchor)
            .chain(&self.old)
            .filter(|anchor| now < anchor.not_after && seen.insert(&anchor.id))
            .collect()
    }

    /// The contents with an authority that is to become the current one.
    #[must_use]
    pub fn introduce(mut self, authority: Authority, now: SystemTime) -> Self {
        self.old.retain(|anchor| now < anchor.not_after);
        self.next = Some(authority);
        self
    }

    /// The contents with the next authority as the current one, and the first leaf that it signed.
    #[must_use]
    pub fn promote(mut self, leaf: Leaf) -> Self {
        if let Some(next) = self.next.take() {
            let before = self.current.replace(next);
            self.old.extend(before.map(|authority| authority.anchor));
        }
        self.renew(leaf)
    }

    /// The contents with another leaf.
    #[must_use]
    pub fn renew(mut self, leaf: Leaf) -> Self {
        self.leaf = Some(leaf);
        self
    }

    /// The contents with the acknowledgement of `replica` that it serves `leaf`. Acknowledgements
    /// of pods that are gone are dropped.
    #[must_use]
    pub fn acknowledge(mut self, replica: &str, leaf: Id, pods: Option<&BTreeSet<String>>) -> Self {
        // Only a replica that is one of the pods drops any: two replicas that run outside the
        // cluster would otherwise drop each other's acknowledgement for ever.
        if let Some(pods) = pods.filter(|pods| pods.contains(replica)) {
            self.served.retain(|name, _| pods.contains(name));
        }
        self.served.insert(replica.to_owned(), leaf);
        self
    }

    /// The contents without the former authorities.
    #[must_use]
    pub fn retire(mut self) -> Self {
        self.old.clear();
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn word(replicas: &[&str]) -> BTreeMap<String, Id> {
        let said = |name: &&str| ((*name).to_owned(), Id("leaf".to_owned()));
        replicas.iter().map(said).collect()
    }

    #[test]
    fn only_a_pod_forgets_pods_that_are_gone() {
        let pods = BTreeSet::from(["a".to_owned(), "b".to_owned()]);
        let contents = Contents {
            served: word(&["b", "gone"]),
            ..Contents::default()
        };
        let said_by = |replica: &str, pods: Option<&BTreeSet<String>>| {
            contents
                .clone()
                .acknowledge(replica, Id("leaf".to_owned()), pods)
                .served
        };
        assert_eq!(said_by("a", Some(&pods)), word(&["a", "b"]));
        assert_eq!(
            said_by("outside", Some(&pods)),
            word(&["b", "gone", "outside"])
        );
        assert_eq!(said_by("a", None), word(&["a", "b", "gone"]));
    }
}
