//! The metadata of Kubernetes objects.

use crate::json::Fields;

/// `metadata.<key>` of a Kubernetes object.
pub(super) fn metadata_text<'a>(object: Fields<'a>, key: &str) -> Option<&'a str> {
    object.below("metadata").text(key)
}
