//! Ray's custom resources as Rayfit needs them: a borrowed, forgiving view of their JSON.
//!
//! Nothing is copied and nothing is required. A field of the wrong type reads as absent here and is
//! reported by the rule that is about it, so that one malformed field hides no other finding.
//! Reading order: [`kind`], [`object`], [`cluster`], [`group`], [`container`], then the
//! small languages inside them: [`resource`], [`ippr`], [`start_params`], [`version`],
//! [`reconcile`], [`initial_sizes`], [`label`], [`kueue`], [`drain`], [`feature_gate`]; and what follows from a group: [`pod_size`],
//! [`node_resources`].

pub mod cluster;
pub mod container;
pub mod drain;
pub mod feature_gate;
pub mod group;
pub mod initial_sizes;
pub mod ippr;
pub mod kind;
pub mod kueue;
pub mod label;
pub mod node_resources;
pub mod object;
pub mod pod_size;
pub mod reconcile;
pub mod resource;
pub mod start_params;
pub mod version;

pub use cluster::{AutoscalerVersion, Cluster};
pub use container::Container;
pub use group::{Group, Role};
pub use ippr::Ippr;
pub use kind::Kind;
pub use object::RayObject;
pub use reconcile::ReconcileMode;
pub use resource::Resource;
pub use version::{RayVersion, since};
