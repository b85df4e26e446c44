//! How the RayCluster that owns a pod is asked for.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;

use crate::initial_size::OwnerCluster;

/// The namespace and name of a RayCluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnerName {
    /// The namespace, which is that of the pod too.
    pub namespace: Arc<str>,
    /// The name.
    pub name: String,
}

/// The longest name in Kubernetes.
const LONGEST: usize = 253;

impl OwnerName {
    /// `None` if no object can have that name. Anybody can write an owner reference into a pod, and both become parts of
    /// the path of a request: with other characters it would be a request for something else.
    pub fn new(namespace: &str, name: &str) -> Option<Self> {
        (is_name(namespace) && is_name(name)).then(|| Self {
            namespace: namespace.into(),
            name: name.to_owned(),
        })
    }
}

impl fmt::Display for OwnerName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

fn is_name(text: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    text.len() <= LONGEST
        && text.bytes().next().is_some_and(is_plain)
        && text
            .bytes()
            .all(|byte| is_plain(byte) || byte == b'-' || byte == b'.')
}

/// Why a RayCluster was not read. The pod is then made as its template says.
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
    /// What the RayCluster says as it is stored now; `None` if there is no such RayCluster. Dropping the future ends the request.
    fn read(
        &self,
        owner: OwnerName,
    ) -> BoxFuture<'static, Result<Option<OwnerCluster>, OwnerUnread>>;

    /// The time in seconds since 1970, by the clock by which sizes are written.
    fn now(&self) -> f64;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_would_ask_for_something_else_is_no_name() {
        for name in [
            "",
            ".",
            "..",
            "../secrets",
            "a/b",
            "a?x",
            "a#x",
            "a%2fb",
            "a b",
            "A",
            "-a",
            "a\n",
            "ä",
        ] {
            assert_eq!(OwnerName::new("ml", name), None, "{name:?}");
            assert_eq!(OwnerName::new(name, "demo"), None, "{name:?}");
        }
        assert_eq!(OwnerName::new("ml", &"a".repeat(LONGEST + 1)), None);
        for name in ["a", "demo-raycluster-x7k2p", "1.2"] {
            assert!(OwnerName::new("ml", name).is_some(), "{name}");
        }
    }
}
