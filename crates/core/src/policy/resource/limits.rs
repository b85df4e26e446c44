//! `limits`: the table of limits on what Ray objects may request, each with its rule.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::amount::Amount;
use crate::quantity::Quantity;

/// One limit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limit<T> {
    /// The most that is allowed.
    pub most: T,
    /// The policy that sets it.
    pub policy: Arc<str>,
}

/// Declares limits: the field, its type as it is written and compiled, its name under `spec.limits` and its rule.
macro_rules! limits {
    ($($(#[doc = $about:literal])* $(#[schemars($($range:tt)*)])?
    $field:ident: $written:ty => $most:ty, $name:literal, $rule:literal;)*) => {
        /// Limits on what Ray objects may request. Their rules have the mode that this policy sets for
        /// them, or Enforce if it sets none.
        #[derive(Debug, Clone, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
        #[serde(rename_all = "camelCase")]
        pub struct LimitsSpec {
            $($(#[doc = $about])*
            #[serde(default, skip_serializing_if = "Option::is_none")]
            $(#[schemars($($range)*)])?
            pub $field: Option<$written>,)*
        }

        /// The limits for one object (rules RF501 to RF506).
        #[derive(Debug, Clone, PartialEq, Eq, Default)]
        pub struct Limits {
            $($(#[doc = $about])* pub $field: Option<Limit<$most>>,)*
        }

        impl Limits {
            /// The limits that are set: the name of each under `spec.limits`, and the most that is allowed.
            pub fn named(&self) -> impl Iterator<Item = (&'static str, Quantity)> {
                let limits = [$(($name, self.$field.as_ref().map(|limit| limit.most.into()))),*];
                limits.into_iter().filter_map(|(name, most)| Some((name, most?)))
            }

            /// The rules whose limits are set.
            pub fn rules(&self) -> impl Iterator<Item = u16> {
                let limits = [$(($rule, self.$field.is_some())),*];
                limits.into_iter().filter_map(|(rule, is_set)| is_set.then_some(rule))
            }

            /// Takes those limits of `others` that are not set yet, and with `or_less` also those that allow less.
            pub fn take(&mut self, others: &Self, or_less: bool) {
                // Of equal limits the first stays, whose policy messages name.
                $(if let Some(other) = &others.$field
                    && (self.$field.as_ref()).is_none_or(|limit| or_less && other.most < limit.most)
                {
                    self.$field = Some(other.clone());
                })*
            }
        }
    };
}

limits! {
    /// The most workers that the groups of a cluster may have together (RF501).
    #[schemars(range(min = 0))]
    max_workers_per_cluster: i64 => i64, "maxWorkersPerCluster", 501;

    /// The most workers that one group may have (RF502).
    #[schemars(range(min = 0))]
    max_workers_per_group: i64 => i64, "maxWorkersPerGroup", 502;

    /// The most CPU of a pod, at its resize limit in ray.io/ippr if it has one (RF503).
    max_cpu_per_pod: Amount => Quantity, "maxCpuPerPod", 503;

    /// The most memory of a pod, at its resize limit in ray.io/ippr if it has one (RF503).
    max_memory_per_pod: Amount => Quantity, "maxMemoryPerPod", 503;

    /// The most GPUs of a cluster with all its workers (RF504).
    #[schemars(range(min = 0))]
    max_gpus_per_cluster: i64 => i64, "maxGpusPerCluster", 504;

    /// The longest time, in seconds, that an idle worker may be kept (RF505).
    #[schemars(range(min = 0))]
    max_idle_timeout_seconds: i64 => i64, "maxIdleTimeoutSeconds", 505;

    /// The most CPU of a cluster with all its workers, at their resize limits (RF506).
    max_cpu_per_cluster: Amount => Quantity, "maxCpuPerCluster", 506;

    /// The most memory of a cluster with all its workers, at their resize limits (RF506).
    max_memory_per_cluster: Amount => Quantity, "maxMemoryPerCluster", 506;
}
