//! The interface by which the RayCluster that owns a pod is read.

use std::fmt;
use std::time::Duration;

use futures_util::future::BoxFuture;

use crate::dns_name::DnsName;
use crate::initial_size::OwnerCluster;

/// The namespace and name of a RayCluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnerName {
    /// The namespace, which is that of the pod too.
    pub namespace: DnsName,
    /// The name.
    pub name: DnsName,
}

impl OwnerName {
    /// `None` if no object can have that name: anybody can write an owner reference into a pod.
    pub fn new(namespace: &str, name: &str) -> Option<Self> {
        Some(Self {
            namespace: DnsName::parse(namespace).ok()?,
            name: DnsName::parse(name).ok()?,
        })
    }
}

impl fmt::Display for OwnerName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

/// The reason for which a RayCluster was not read. The pod is then made as its template says.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OwnerUnread {
    /// The process has no client of an API server, or not yet.
    #[error("no API server is known")]
    NoApiServer,
    /// Too many pods wait for theirs.
    #[error("too many pods wait for their RayClusters to be read")]
    TooMany,
    /// It took too long, the wait for a turn included.
    #[error("the RayCluster was not read within {} ms", .0.as_millis())]
    TooSlow(Duration),
    /// The API server refused, or its answer cannot be used.
    #[error("the RayCluster cannot be read: {0}")]
    Failed(String),
}

/// Reads RayClusters.
pub trait OwnerReader: fmt::Debug + Send + Sync {
    /// The RayCluster as it is stored now; `None` if there is none. Dropping the future ends the request.
    fn read(
        &self,
        owner: OwnerName,
    ) -> BoxFuture<'static, Result<Option<OwnerCluster>, OwnerUnread>>;

    /// The time in seconds since 1970, by the clock by which sizes are written.
    fn now(&self) -> f64;
}
