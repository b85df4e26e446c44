//! The reasons why pods are about to leave, with their texts.

use std::fmt;

use schemars::JsonSchema;
use serde::Serialize;

use crate::snapshot::moment;
use crate::text::text_in_json;

/// The sign that a pod is about to leave against its autoscaler's will.
#[derive(Debug, Clone, PartialEq, Eq, derive_more::Display)]
pub enum DepartureReason {
    /// Its Kubernetes node is being deleted.
    #[display("Kubernetes node {_0} is being deleted")]
    NodeDeleted(String),
    /// Its Kubernetes node is cordoned.
    #[display("Kubernetes node {_0} is cordoned")]
    NodeCordoned(String),
    /// Its Kubernetes node has a taint that says so.
    #[display("Kubernetes node {node} has the taint {key}")]
    NodeTainted {
        /// The name of the node.
        node: String,
        /// The key of the taint.
        key: String,
    },
    /// The pod has the condition `DisruptionTarget`, with that reason.
    #[display("the pod is evicted ({_0})")]
    Disrupted(String),
}

/// A pod that is about to leave against its autoscaler's will.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Departure {
    /// The name of the pod.
    pub pod: String,
    /// The name of its group.
    pub group: String,
    /// The sign that it leaves.
    pub reason: DepartureReason,
    /// The time since which that is known, in seconds since 1970.
    pub since: f64,
    /// The time at which the pod is gone, as far as is known or assumed, in seconds since 1970.
    pub gone_at: f64,
    /// True if that time is known from the objects, and not assumed.
    pub is_known: bool,
    /// True if that time counts from now on, because neither the objects say nor anybody remembers since
    /// when the pod has been leaving: the next look from a workstation gives another one.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub counts_from_now: bool,
}

impl Departure {
    /// The departure with its time, in words, for whoever remembers it from now on.
    pub(crate) fn with_time(&self) -> String {
        let Self {
            pod, group, reason, ..
        } = self;
        let sure = if self.is_known { "is" } else { "may be" };
        let at = moment(self.gone_at);
        format!("pod {pod} of group {group} {sure} gone at {at}: {reason}")
    }
}

impl fmt::Display for Departure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A time that counts from now on is another one in each look, and Events with it would never be equal.
        if !self.counts_from_now {
            return f.write_str(&self.with_time());
        }
        let Self {
            pod, group, reason, ..
        } = self;
        write!(
            f,
            "pod {pod} of group {group} may be gone at any time: {reason}"
        )
    }
}

text_in_json!(DepartureReason);
