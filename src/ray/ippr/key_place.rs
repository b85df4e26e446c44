//! The place of a key in the annotation.

use crate::path::FieldPath;

/// The annotation on the RayCluster, or on the RayJob or RayService that the RayCluster is made
/// from.
pub const ANNOTATION: &str = "ray.io/ippr";

/// A key, and the way to it from the root of the annotation.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct KeyPlace {
    /// The keys above the key.
    pub parents: Vec<String>,
    /// The key.
    pub key: String,
}

impl KeyPlace {
    /// The path of the key in the object.
    pub fn path(&self) -> FieldPath {
        let root = FieldPath::annotation(ANNOTATION);
        let parents = self.parents.iter().fold(root, FieldPath::inside);
        parents.inside(&self.key)
    }
}

/// The place of a key below `parents`.
pub(super) fn place(parents: &[&str], key: &str) -> KeyPlace {
    KeyPlace {
        parents: parents.iter().map(ToString::to_string).collect(),
        key: key.to_owned(),
    }
}
