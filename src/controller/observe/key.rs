//! The key of an object.

use std::fmt;

use kube::api::ObjectMeta;

use crate::dns_name::{DnsName, NotADnsName};

/// The namespace and name of an object.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    /// Its namespace.
    pub namespace: DnsName,
    /// Its name.
    pub name: DnsName,
}

impl Key {
    /// The key of a namespace and a name.
    ///
    /// # Errors
    ///
    /// No object can have one of them.
    pub fn new(namespace: &str, name: &str) -> Result<Self, NotADnsName> {
        Ok(Self {
            namespace: DnsName::parse(namespace)?,
            name: DnsName::parse(name)?,
        })
    }

    /// The key of an object; `None` if it has no namespace or no name.
    pub fn of(meta: &ObjectMeta) -> Option<Self> {
        Self::new(meta.namespace.as_deref()?, meta.name.as_deref()?).ok()
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}
