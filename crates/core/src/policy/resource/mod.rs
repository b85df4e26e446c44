//! `RayPolicy` as Kubernetes stores it (`rayfit.dev/v1alpha1`). It is read once, by
//! [`compile`](mod@crate::raypolicy::compile), into [`Policy`](super::Policy), which keeps those of these types that
//! need no other form.
//!
//! The comments on fields are what `kubectl explain raypolicy` shows. Limits on lengths keep the
//! cost of the CEL validations within what API servers allow.

#![allow(
    unreachable_pub,
    reason = "the derive repeats the types in a private place"
)]

pub mod amount;
pub mod exemption;
pub mod headroom;
pub mod limits;
pub mod reconcile;
pub mod scope;
pub mod status;
mod table;
pub mod values;

use std::collections::BTreeMap;

use kube::{CustomResource, CustomResourceExt as _, KubeSchema};
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use amount::Amount;
pub use exemption::{ExemptObjects, ExemptionSpec};
pub use headroom::{HeadroomRequestSpec, HeadroomSpec, Schedule};
pub use limits::{Limit, Limits, LimitsSpec};
pub use reconcile::{BackOff, InPlace, Reconcile, ScaleUpSpec};
pub use scope::{LabelExpression, Match, ScopeOperator, ScopeSelector};
pub use status::{Condition, Offender, RayPolicyStatus, RuleCount};
pub use values::{ContainerSize, Defaults, RayfitContainer};

use super::Mode;

/// Sets, for some Ray objects, the modes of Rayfit's rules, limits on what the objects may request,
/// and the values of defaults. Without any RayPolicy every rule has its own mode.
///
/// Of several policies that match an object, the one with the highest priority decides, and of
/// those with equal priority the first by name. Settings that it leaves out are taken from the next
/// one.
#[derive(CustomResource, Debug, Clone, Default, PartialEq, Deserialize, Serialize, KubeSchema)]
#[kube(
    group = "rayfit.dev",
    version = "v1alpha1",
    kind = "RayPolicy",
    plural = "raypolicies",
    shortname = "rayp",
    category = "rayfit",
    status = "RayPolicyStatus",
    derive = "PartialEq",
    derive = "Default",
    doc = "Sets, for some Ray objects, the modes of Rayfit's rules, limits on what the objects may \
           request, and the values of defaults.",
    printcolumn = r#"{"name": "Mode", "type": "string", "jsonPath": ".spec.mode"}"#,
    printcolumn = r#"{"name": "Priority", "type": "integer", "jsonPath": ".spec.priority"}"#,
    printcolumn = r#"{"name": "Objects", "type": "integer", "jsonPath": ".status.objects"}"#,
    printcolumn = r#"{"name": "Denied", "type": "integer", "jsonPath": ".status.denied"}"#,
    printcolumn = r#"{"name": "Would-Deny", "type": "integer", "jsonPath": ".status.wouldDeny"}"#,
    printcolumn = r#"{"name": "Ready", "type": "string", "jsonPath": ".status.conditions[?(@.type==\"Ready\")].status"}"#,
    printcolumn = r#"{"name": "Fail-Closed", "type": "boolean", "jsonPath": ".spec.failClosed", "priority": 1}"#,
    printcolumn = r#"{"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}"#
)]
#[x_kube(
    validation = Rule::new("!has(self.failClosed) || !self.failClosed || !has(self.match)")
        .message("failClosed applies to the whole cluster: set it in a policy without match"),
    validation = Rule::new("!has(self.rules) || self.rules.all(id, id.matches('^RF[1-9][0-9][0-9]$'))")
        .message("rules are written like RF105 (rayfit rules lists them)")
)]
#[serde(rename_all = "camelCase")]
pub struct RayPolicySpec {
    /// The Ray objects that the policy matches; all of them, if it is left out.
    #[serde(rename = "match", default, skip_serializing_if = "Option::is_none")]
    pub scope: Option<Match>,

    /// Of the policies that match an object, the one with the highest priority decides.
    #[serde(default)]
    pub priority: i32,

    /// The strictest mode that any rule can have: with Warn nothing is denied, with Audit the user
    /// sees nothing, with "Off" (in quotes) nothing is checked. Rules that are milder by themselves
    /// stay so; with Enforce every rule has its own mode.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<Mode>,

    /// Modes of single rules, for example RF105: Enforce. They take precedence over mode. Write
    /// "Off" in quotes.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = 200))]
    pub rules: BTreeMap<String, Mode>,

    /// Limits on what Ray objects may request (rules RF501 to RF506).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limits: Option<LimitsSpec>,

    /// Values that defaults fill in instead of Rayfit's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub defaults: Option<Defaults>,

    /// Mode and settings by which clusters are scaled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reconcile: Option<Reconcile>,

    /// Findings that are only recorded until a given time, each with a reason. An exemption applies
    /// to modes that this policy and those after it set, never to modes that an earlier policy
    /// sets.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 100))]
    pub exemptions: Vec<ExemptionSpec>,

    /// Refuse Ray objects while no webhook answers. This takes effect once enough webhooks are
    /// ready, and ends as soon as the field is false. Only in a policy without match; the first
    /// policy that sets the field decides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fail_closed: Option<bool>,
}

/// The CustomResourceDefinition to install.
pub fn definition() -> Value {
    let mut definition = serde_json::to_value(RayPolicy::crd()).unwrap_or_default();
    write_integers(&mut definition);
    definition
}

/// Writes 60.0 as 60.
fn write_integers(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(write_integers),
        Value::Object(map) => map.values_mut().for_each(write_integers),
        // Bounds of integers arrive as floating-point numbers.
        Value::Number(number) if number.is_f64() => {
            if let Ok(integer) = number.to_string().trim_end_matches(".0").parse::<i64>() {
                *value = integer.into();
            }
        }
        _ => {}
    }
}
