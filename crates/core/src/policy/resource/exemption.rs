//! `exemptions`: findings that are only recorded until a given time.

use kube::KubeSchema;
use serde::{Deserialize, Serialize};

/// An exemption: findings of some rules in some objects that are only recorded until a given time.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, KubeSchema)]
#[x_kube(
    validation = Rule::new("!self.rules.exists(rule, rule == '*') || size(self.rules) == 1")
        .message("* stands for every rule: write it alone")
)]
#[serde(rename_all = "camelCase")]
pub struct ExemptionSpec {
    /// The rules, or * for all of them.
    #[schemars(
        length(min = 1, max = 200),
        inner(length(max = 16), regex(pattern = "^(\\*|RF[1-9][0-9]{2})$"))
    )]
    pub rules: Vec<String>,

    /// The objects, among those that the policy matches.
    #[schemars(length(min = 1, max = 200))]
    pub objects: Vec<ExemptObjects>,

    /// The reason for the exemption.
    #[schemars(length(min = 1, max = 1024))]
    pub reason: String,

    /// The ticket under which the work on it is tracked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 256))]
    pub ticket: Option<String>,

    /// The time of its end, in RFC 3339, for example 2027-01-31T00:00:00Z. At most a year ahead.
    #[schemars(length(max = 64), extend("format" = "date-time"))]
    pub expires: String,
}

/// Some objects by name.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, Serialize, KubeSchema)]
#[x_kube(
    validation = Rule::new("has(self.namespace) || has(self.name)")
        .message("write a namespace, a name, or both")
)]
#[serde(rename_all = "camelCase")]
pub struct ExemptObjects {
    /// RayCluster, RayJob, RayService or RayCronJob; any, if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(
        length(max = 16),
        regex(pattern = "^Ray(Cluster|Job|Service|CronJob)$")
    )]
    pub kind: Option<String>,

    /// The namespace; * stands for any text. Any, if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 63))]
    pub namespace: Option<String>,

    /// The name; * stands for any text. Any, if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub name: Option<String>,
}
