//! The fields that a study can vary, and where each of them is set.

use std::ops::RangeInclusive;
use std::sync::Arc;

use serde_json::{Map, Value, json};

use crate::plan::Headroom;
use crate::quantity::nearest_whole;
use crate::ray::ippr::ANNOTATION;
use crate::reconcile::RoundSettings;
use crate::simulate::settings::WorldSettings;

/// A field that can be varied, by the name by which users know it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::Display, strum::IntoStaticStr)]
#[strum(serialize_all = "camelCase")]
pub enum VariedField {
    /// `autoscalerOptions.idleTimeoutSeconds`, and of each group that has its own.
    IdleTimeoutSeconds,
    /// `minReplicas` of worker groups.
    MinReplicas,
    /// `maxReplicas` of worker groups.
    MaxReplicas,
    /// `max-cpu` of worker groups in `ray.io/ippr`.
    #[strum(serialize = "max-cpu")]
    MaxCpu,
    /// `max-memory` of worker groups in `ray.io/ippr`, in GiB.
    #[strum(serialize = "max-memory")]
    MaxMemory,
    /// A field of RayPolicies.
    #[strum(transparent)]
    Policy(PolicyField),
    /// Seconds that a pod takes from its node to its Ray node.
    PodStartSeconds,
    /// Seconds that a Kubernetes node takes to be ready.
    NodeStartSeconds,
    /// Seconds that a Kubernetes node takes to pull an image.
    ImagePullSeconds,
}

/// A field of RayPolicies, which has an effect with strategy `rayfit` only.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, strum::Display, strum::EnumIter, strum::IntoStaticStr,
)]
#[strum(serialize_all = "camelCase")]
pub enum PolicyField {
    /// `reconcile.inPlace.keepSmallSeconds`.
    KeepSmallSeconds,
    /// `reconcile.inPlace.shrinkAfterSeconds`.
    ShrinkAfterSeconds,
    /// `reconcile.headroom.cpus`.
    HeadroomCpus,
}

impl PolicyField {
    /// Its value in the settings.
    pub fn read(self, settings: &RoundSettings) -> f64 {
        let plan = &settings.plan;
        match self {
            Self::KeepSmallSeconds => plan.keep_small_s.unwrap_or(0.0),
            Self::ShrinkAfterSeconds => plan.shrink_after_s.unwrap_or(0.0),
            Self::HeadroomCpus => f64::from(plan.headroom.cpus),
        }
    }

    /// Sets it, as a RayPolicy does: 0 turns it off.
    pub fn set(self, value: f64, settings: &mut RoundSettings) {
        let seconds = Some(value).filter(|seconds| *seconds > 0.0);
        let plan = &mut settings.plan;
        match self {
            Self::KeepSmallSeconds => plan.keep_small_s = seconds,
            Self::ShrinkAfterSeconds => plan.shrink_after_s = seconds,
            Self::HeadroomCpus => {
                let cpus = u32::try_from(nearest_whole(value)).unwrap_or(u32::MAX);
                let headroom = Headroom::clone(&plan.headroom);
                plan.headroom = Arc::new(Headroom { cpus, ..headroom });
            }
        }
    }
}

impl VariedField {
    /// All fields.
    pub const ALL: [Self; 11] = [
        Self::IdleTimeoutSeconds,
        Self::MinReplicas,
        Self::MaxReplicas,
        Self::MaxCpu,
        Self::MaxMemory,
        Self::Policy(PolicyField::KeepSmallSeconds),
        Self::Policy(PolicyField::ShrinkAfterSeconds),
        Self::Policy(PolicyField::HeadroomCpus),
        Self::PodStartSeconds,
        Self::NodeStartSeconds,
        Self::ImagePullSeconds,
    ];

    /// The values that it can have, whether they are whole, and how to say that.
    pub(super) fn extent(self) -> (RangeInclusive<f64>, bool, &'static str) {
        match self {
            Self::MinReplicas | Self::MaxReplicas | Self::Policy(PolicyField::HeadroomCpus) => {
                (0.0..=100_000.0, true, "a whole number from 0 to 100000")
            }
            Self::MaxCpu => (0.001..=100_000.0, false, "cores from 0.001 to 100000"),
            Self::MaxMemory => (0.001..=100_000.0, false, "GiB from 0.001 to 100000"),
            Self::Policy(_) => (0.0..=86_400.0, true, "whole seconds from 0 to 86400"),
            Self::IdleTimeoutSeconds
            | Self::PodStartSeconds
            | Self::NodeStartSeconds
            | Self::ImagePullSeconds => (0.0..=86_400.0, false, "seconds from 0 to 86400"),
        }
    }

    /// Sets the field, of all groups or of one, where it is.
    pub(super) fn set(
        self,
        group: Option<&str>,
        value: f64,
        cluster: &mut Value,
        world: &mut WorldSettings,
        reconciler: &mut RoundSettings,
    ) {
        #[expect(clippy::cast_possible_truncation, reason = "checked when it was read")]
        let whole = value as i64;
        match self {
            Self::IdleTimeoutSeconds => {
                cluster["spec"]["autoscalerOptions"]["idleTimeoutSeconds"] = json!(value);
                // A group with a timeout of its own does not take that of the cluster.
                each_group(cluster, None, |group| {
                    if group.contains_key("idleTimeoutSeconds") {
                        group.insert("idleTimeoutSeconds".to_owned(), json!(value));
                    }
                });
            }
            Self::MinReplicas => each_group(cluster, group, |group| {
                group.insert("minReplicas".to_owned(), json!(whole));
                // A manifest with this minimum would ask for as many from the beginning.
                let replicas = group.get("replicas").and_then(Value::as_i64);
                group.insert(
                    "replicas".to_owned(),
                    json!(replicas.unwrap_or(0).max(whole)),
                );
            }),
            Self::MaxReplicas => each_group(cluster, group, |group| {
                group.insert("maxReplicas".to_owned(), json!(whole));
            }),
            Self::MaxCpu => limit(cluster, group, "max-cpu", &format!("{value}")),
            Self::MaxMemory => {
                let bytes = format!("{:.0}", value * f64::from(1_u32 << 30));
                limit(cluster, group, "max-memory", &bytes);
            }
            Self::Policy(field) => field.set(value, reconciler),
            // The start of Ray is a part of it, which `set_pod_start` keeps.
            Self::PodStartSeconds => world.set_pod_start(value),
            Self::NodeStartSeconds => {
                let pools = world.pools.iter_mut();
                pools.for_each(|pool| pool.start_s = value);
            }
            Self::ImagePullSeconds => {
                let pools = world.pools.iter_mut();
                pools.for_each(|pool| pool.image_pull_s = value);
            }
        }
    }
}

/// Changes the worker groups that have this name; all without one.
fn each_group(
    cluster: &mut Value,
    name: Option<&str>,
    mut change: impl FnMut(&mut Map<String, Value>),
) {
    let groups = cluster
        .pointer_mut("/spec/workerGroupSpecs")
        .and_then(Value::as_array_mut);
    let groups = groups.into_iter().flatten();
    for group in groups.filter_map(Value::as_object_mut) {
        let own = group.get("groupName").and_then(Value::as_str);
        if name.is_none_or(|name| own == Some(name)) {
            change(group);
        }
    }
}

/// Sets a resize limit of the groups in `ray.io/ippr` that have this name; of all without one.
fn limit(cluster: &mut Value, name: Option<&str>, key: &str, amount: &str) {
    let text = &mut cluster["metadata"]["annotations"][ANNOTATION];
    let read = text
        .as_str()
        .and_then(|text| serde_json::from_str(text).ok());
    let Some::<Value>(mut ippr) = read else {
        return;
    };
    let groups = ippr.get_mut("groups").and_then(Value::as_object_mut);
    for (group, limits) in groups.into_iter().flatten() {
        if name.is_none_or(|name| group == name)
            && let Some(limits) = limits.as_object_mut()
        {
            limits.insert(key.to_owned(), json!(amount));
        }
    }
    *text = Value::String(ippr.to_string());
}
