//! `reconcile.headroom` and `reconcile.schedules`: room that is kept free for demand to come.

use std::collections::BTreeMap;

use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::amount::Amount;

/// Room that is kept free in each cluster for demand to come. Of sharePercent and cpus the larger
/// one counts; requests are kept besides.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HeadroomSpec {
    /// CPUs to keep free, in percent of those that are in use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 1_000))]
    pub share_percent: Option<i64>,

    /// CPUs to keep free.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpus: Option<Amount>,

    /// Requests for which room is kept free.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 20))]
    pub requests: Vec<HeadroomRequestSpec>,
}

/// A request for which room is kept free.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HeadroomRequestSpec {
    /// The resources that one task or actor asks Ray for, for example CPU: 4, GPU: 1, memory: 16Gi.
    #[schemars(extend("minProperties" = 1, "maxProperties" = 20))]
    pub resources: BTreeMap<String, Amount>,

    /// The number of them; 1 if it is left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 10_000))]
    pub count: Option<i64>,
}

/// Room that is kept ready at certain hours.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, Serialize, KubeSchema)]
#[x_kube(
    validation = Rule::new("has(self.end) != has(self.durationSeconds)")
        .message("write end or durationSeconds, one of the two")
)]
#[serde(rename_all = "camelCase")]
pub struct Schedule {
    /// Its name, which plans and Events give as the reason.
    #[schemars(
        length(min = 1, max = 63),
        regex(pattern = "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$")
    )]
    pub name: String,

    /// The beginning of the hours, as a cron expression of five fields: 0 8 * * 1-5.
    #[schemars(length(min = 1, max = 100))]
    pub start: String,

    /// The end of the hours, as a cron expression; at most 31 days after they began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 100))]
    pub end: Option<String>,

    /// The duration of the hours, in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 60, max = 2_678_400))]
    pub duration_seconds: Option<i64>,

    /// The time zone of start and end, for example Europe/Berlin; UTC if it is left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 64))]
    pub time_zone: Option<String>,

    /// By worker group, the replicas that are kept while the hours last. Groups that a cluster does
    /// not have are ignored, and maxReplicas holds.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = 100))]
    pub min_replicas: BTreeMap<String, i64>,

    /// The headroom while the hours last. Where more than one headroom holds, the largest value of
    /// each kind counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub headroom: Option<HeadroomSpec>,
}
