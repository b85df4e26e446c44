//! The key of an object.

use kube::api::ObjectMeta;

pub use crate::dns_name::Key;

impl Key {
    /// The key of an object; `None` if it has no namespace or no name.
    pub fn of(meta: &ObjectMeta) -> Option<Self> {
        Self::new(meta.namespace.as_deref()?, meta.name.as_deref()?).ok()
    }
}
