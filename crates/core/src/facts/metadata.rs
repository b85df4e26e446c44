//! The metadata of Kubernetes objects.

use crate::ray::{Fields, text_at};

/// `metadata.<key>` of a Kubernetes object.
pub(super) fn metadata_text<'a>(object: &'a Fields, key: &str) -> Option<&'a str> {
    text_at(object.get("metadata")?.as_object()?, key)
}
