//! `match`: the Ray objects that a policy matches.

use std::collections::BTreeMap;

use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The Ray objects that a policy matches: those that meet all of its conditions.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Match {
    /// Labels of the object's namespace. A namespace can be named by its label
    /// kubernetes.io/metadata.name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace_selector: Option<ScopeSelector>,

    /// Labels of the object itself. Whoever writes the object chooses them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub object_selector: Option<ScopeSelector>,

    /// Names of objects; * stands for any text.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    // No object has a longer name than 253 characters.
    #[schemars(length(max = 100), inner(length(min = 1, max = 253)))]
    pub names: Vec<String>,

    /// RayCluster, RayJob, RayService, RayCronJob; all of them, if none is named.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = 4),
        inner(regex(pattern = "^Ray(Cluster|Job|Service|CronJob)$"))
    )]
    pub kinds: Vec<String>,
}

/// Requirements on labels, all of which must hold; an empty selector matches everything.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ScopeSelector {
    /// Labels with their values.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = 50))]
    pub match_labels: BTreeMap<String, String>,

    /// Further requirements.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 50))]
    pub match_expressions: Vec<LabelExpression>,
}

/// A requirement on one label.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize, KubeSchema)]
#[x_kube(
    validation = Rule::new("self.operator in ['In', 'NotIn'] ? (has(self.values) && size(self.values) > 0) : (!has(self.values) || size(self.values) == 0)")
        .message("In and NotIn need values, Exists and DoesNotExist take none")
)]
#[serde(rename_all = "camelCase")]
pub struct LabelExpression {
    /// The label.
    // A DNS subdomain of 253 characters, a slash, and a name of 63.
    #[schemars(length(min = 1, max = 317))]
    pub key: String,

    /// The comparison.
    pub operator: ScopeOperator,

    /// The values of the operators In and `NotIn`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 100))]
    pub values: Vec<String>,
}

/// The comparison of a label.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub enum ScopeOperator {
    /// The label exists, with one of the values.
    In,
    /// The label does not exist, or has another value.
    NotIn,
    /// The label exists.
    Exists,
    /// The label does not exist.
    DoesNotExist,
}
