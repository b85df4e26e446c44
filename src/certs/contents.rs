//! What the Secret holds, and how one step changes it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::time::SystemTime;

/// SHA-256 of a certificate, in hexadecimal.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Id(pub String);

/// A private key in PEM.
#[derive(Clone, PartialEq, Eq)]
pub struct PrivateKey(pub String);

impl fmt::Debug for PrivateKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PrivateKey(..)")
    }
}

/// The certificate of an authority, as bundles hold it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Anchor {
    /// Which certificate this is.
    pub id: Id,
    /// The end of its validity.
    pub not_after: SystemTime,
    /// The certificate in PEM.
    pub pem: String,
}

/// An authority.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Authority {
    /// Its certificate.
    pub anchor: Anchor,
    /// Its key; without one it vouches for what it signed, but cannot sign any more.
    pub key: Option<PrivateKey>,
}

/// A serving certificate with its key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Leaf {
    /// Which certificate this is.
    pub id: Id,
    /// The authority that vouches for it, for all names that are wanted. `None`: useless.
    pub issuer: Option<Id>,
    /// The end of its validity.
    pub not_after: SystemTime,
    /// The chain in PEM, leaf first.
    pub chain: String,
    /// Its key.
    pub key: PrivateKey,
}

/// What the Secret holds.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Contents {
    /// The authority that signs.
    pub current: Option<Authority>,
    /// The authority that will sign once every API server trusts it.
    pub next: Option<Authority>,
    /// Authorities that sign no more, but whose certificates may still be served.
    pub old: Vec<Anchor>,
    /// What is to be served.
    pub leaf: Option<Leaf>,
    /// The leaf that each replica says it serves.
    pub served: BTreeMap<String, Id>,
}

impl Contents {
    /// Every authority that API servers shall trust at `now`, each once.
    pub fn anchors(&self, now: SystemTime) -> Vec<&Anchor> {
        let mut seen = BTreeSet::new();
        let authorities = self.current.iter().chain(&self.next);
        authorities
            .map(|authority| &authority.anchor)
            .chain(&self.old)
            .filter(|anchor| now < anchor.not_after && seen.insert(&anchor.id))
            .collect()
    }

    /// With an authority that is to become the current one.
    #[must_use]
    pub fn introduce(mut self, authority: Authority, now: SystemTime) -> Self {
        self.old.retain(|anchor| now < anchor.not_after);
        self.next = Some(authority);
        self
    }

    /// With the next authority in charge, and the first leaf that it signed.
    #[must_use]
    pub fn promote(mut self, leaf: Leaf) -> Self {
        if let Some(next) = self.next.take() {
            let before = self.current.replace(next);
            self.old.extend(before.map(|authority| authority.anchor));
        }
        self.renew(leaf)
    }

    /// With another leaf.
    #[must_use]
    pub fn renew(mut self, leaf: Leaf) -> Self {
        self.leaf = Some(leaf);
        self
    }

    /// With the word of `replica` that it serves `leaf`; words of pods that are gone are dropped.
    #[must_use]
    pub fn acknowledge(mut self, replica: &str, leaf: Id, pods: Option<&BTreeSet<String>>) -> Self {
        if let Some(pods) = pods {
            self.served.retain(|name, _| pods.contains(name));
        }
        self.served.insert(replica.to_owned(), leaf);
        self
    }

    /// Without authorities that nobody needs any more.
    #[must_use]
    pub fn retire(mut self) -> Self {
        self.old.clear();
        self
    }
}
