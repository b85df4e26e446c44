//! Ray's custom resources as Rayfit needs them: a borrowed, forgiving view of their JSON.
//!
//! Nothing is copied and nothing is required. A field of the wrong type reads as absent here and is
//! reported by the rule that is about it, so that one malformed field hides no other finding.
//! Reading order: [`kind`], [`object`], [`cluster`], [`group`], [`container`], then the small
//! languages inside them: [`resource`], [`ippr`], [`start_params`], [`version`], [`reconcile`],
//! [`label`], [`label_key`], [`kueue`]; and what follows from a group: [`pod_size`], [`pod_most`]
//! ([`devices`]), [`node_resources`] ([`tpu`]).

pub mod cluster;
pub mod container;
pub mod devices;
pub mod group;
pub mod ippr;
pub mod kind;
pub mod kueue;
pub mod label;
pub mod label_key;
pub mod node_resources;
pub mod object;
pub mod pod_most;
pub mod pod_size;
pub mod reconcile;
pub mod resource;
pub mod start_params;
pub mod tpu;
pub mod version;

pub use cluster::{AutoscalerVersion, Cluster};
pub use container::Container;
pub use group::{Group, Role};
pub use ippr::Ippr;
pub use kind::Kind;
pub use object::RayObject;
pub use reconcile::ReconcileMode;
pub use resource::Resource;
pub use version::RayVersion;

use serde_json::{Map, Value};

/// A JSON object.
pub type Fields = Map<String, Value>;

/// The value at `key`, if it is an object.
pub(crate) fn object_at<'a>(fields: &'a Fields, key: &str) -> Option<&'a Fields> {
    fields.get(key)?.as_object()
}

/// The list at `key`. An absent value, or one of another type, reads as an empty list.
pub(crate) fn list_at<'a>(fields: &'a Fields, key: &str) -> &'a [Value] {
    fields
        .get(key)
        .and_then(Value::as_array)
        .map_or(&[], Vec::as_slice)
}

/// The value at `key`, if it is a string.
pub(crate) fn text_at<'a>(fields: &'a Fields, key: &str) -> Option<&'a str> {
    fields.get(key)?.as_str()
}
