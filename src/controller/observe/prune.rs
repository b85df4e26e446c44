//! Who a watched object is: the part of its metadata by which it is indexed. What is kept of the rest
//! is listed with the types that read it. Pure.

use serde_json::{Map, Value};

/// Of any object: who it is, and the labels and annotations of those who scale it.
pub(super) fn metadata(metadata: &Value) -> Map<String, Value> {
    let keys = [
        "name",
        "namespace",
        "uid",
        "resourceVersion",
        "generation",
        "creationTimestamp",
        "deletionTimestamp",
        "finalizers",
        "ownerReferences",
    ];
    let kept = keys
        .iter()
        .filter_map(|key| Some(((*key).to_owned(), metadata.get(*key)?.clone())));
    let mut kept: Map<String, Value> = kept.collect();
    for key in ["labels", "annotations"] {
        if let Some(map) = metadata[key].as_object() {
            let ours = map
                .iter()
                .filter(|(name, _)| name.starts_with("ray.io/") || name.starts_with("rayfit.dev/"));
            kept.insert(
                key.to_owned(),
                ours.map(|(name, value)| (name.clone(), value.clone()))
                    .collect(),
            );
        }
    }
    kept
}
