//! The names with which rules are written.

pub use serde_json::Value;

pub use super::cel::{Cel, Check, Each, NO_PODS, PLAIN};
pub use super::rule::{OwnMode, Rule};
pub use super::subject::Subject;
pub use crate::finding::Finding;
pub use crate::json::{Fields, Items, Json};
pub use crate::path::FieldPath;
pub use crate::policy::Mode;
pub use crate::quantity::Quantity;
pub use crate::ray::{
    AutoscalerVersion, Cluster, Container, Group, Kind, RayObject, RayVersion, ReconcileMode,
    Resource, since,
};
pub use crate::rule_id::RuleId;
pub use crate::text::{nearest, shown, shown_text};
