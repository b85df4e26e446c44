//! `status`: the results of the background audit, and whether the policy could be read.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::snapshot::is_default;

/// The results of the background audit, and whether the policy could be read.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct RayPolicyStatus {
    /// The generation of the policy that this status describes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,

    /// Ray objects that the policy matches.
    pub objects: i64,

    /// Of those, the ones that would be denied if they were created now.
    pub denied: i64,

    /// Of those, the ones that would be denied only if mode were Enforce.
    pub would_deny: i64,

    /// Findings by rule.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub rules: Vec<RuleCount>,

    /// The objects with the most severe findings, at most 20.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub worst_offenders: Vec<Offender>,

    /// Ready: the policy could be read. `ExemptionsEnded`: some exemptions have ended.
    /// `FailClosed`: Ray objects are refused while no webhook answers.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    // A map by type, so that server-side apply by others leaves these conditions alone.
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Vec<Condition>,
}

/// Findings of one rule.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct RuleCount {
    /// The rule.
    pub rule: String,

    /// Objects with findings that deny.
    #[serde(skip_serializing_if = "is_default")]
    pub denied: i64,

    /// Objects with findings that warn.
    #[serde(skip_serializing_if = "is_default")]
    pub warned: i64,

    /// Objects with findings that are only recorded.
    #[serde(skip_serializing_if = "is_default")]
    pub audited: i64,

    /// Of the recorded ones, those that are exempt.
    #[serde(skip_serializing_if = "is_default")]
    pub exempt: i64,

    /// Objects that would be denied only if this rule were enforced.
    #[serde(skip_serializing_if = "is_default")]
    pub would_deny: i64,
}

/// An object with findings.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Offender {
    /// Its kind.
    pub kind: String,

    /// Its namespace.
    pub namespace: String,

    /// Its name.
    pub name: String,

    /// Findings that deny, or would if mode were Enforce.
    pub denials: i64,

    /// The number of all findings.
    pub findings: i64,

    /// The rules of the findings, the most severe first.
    pub rules: Vec<String>,
}

/// A condition, as Kubernetes writes them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Condition {
    /// The type of the condition.
    #[serde(rename = "type")]
    pub type_: String,

    /// True, False or Unknown.
    pub status: String,

    /// One word for programs.
    pub reason: String,

    /// A sentence for people.
    pub message: String,

    /// Since when it has this status.
    #[schemars(extend("format" = "date-time"))]
    pub last_transition_time: String,

    /// The generation of the policy that it describes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
}
