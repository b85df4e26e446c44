//! The Ray objects that the API server stores, as far as policies choose objects by it.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::ray::Kind;

/// The stored Ray objects, by kind; a kind that is not known is not there.
pub type Objects = BTreeMap<Kind, Arc<[Arc<StoredObject>]>>;

/// A stored Ray object. There can be thousands, so only little of each is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredObject {
    /// Its namespace.
    pub namespace: Box<str>,
    /// Its name.
    pub name: Box<str>,
    /// Its labels.
    pub labels: Box<[(Box<str>, Box<str>)]>,
}

impl StoredObject {
    /// The value of a label.
    pub fn label(&self, key: &str) -> Option<&str> {
        let label = self.labels.iter().find(|(name, _)| &**name == key);
        label.map(|(_, value)| &**value)
    }
}
