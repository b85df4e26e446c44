//! A pod as decisions see it.

use super::pod_condition::PodCondition;
use super::pod_object::{ContainerStatus, PodContainer, PodObject};
use super::requests::requests;
use super::taint::Taint;
use super::toleration::PodToleration;
use crate::ray::resource::Amounts;
use crate::snapshot::moment::seconds;

/// The exit code of a process that was asked to end, by SIGTERM.
const TERMINATED: i32 = 128 + 15;

/// The role of a pod in its RayCluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PodRole {
    /// The head pod.
    Head,
    /// A worker pod.
    Worker,
    /// Another pod of the cluster (such as a Redis clean-up), or a pod without the label.
    Other,
}

/// A pod, with the fields that decisions ask for most.
#[derive(Debug, Clone, Copy)]
pub struct Pod<'a> {
    /// The name.
    pub name: &'a str,
    /// The role.
    pub role: PodRole,
    /// The name of its group; empty without the label.
    pub group: &'a str,
    /// The replica of a multi-host group that it belongs to.
    pub replica: Option<&'a str>,
    /// The name of the Kubernetes node that it runs on.
    pub node: Option<&'a str>,
    /// Kubernetes was asked to delete it.
    pub deleting: bool,
    /// The phase of the pod (`status.phase`).
    pub phase: Option<&'a str>,
    /// It has ended, so that it takes nothing of its node any more.
    pub ended: bool,
    /// All fields that are kept of the pod.
    pub object: &'a PodObject,
}

impl<'a> Pod<'a> {
    /// Reads a pod.
    pub fn of(object: &'a PodObject) -> Self {
        let labels = &object.metadata.labels;
        let phase = object.status.phase.as_deref();
        Self {
            name: &object.metadata.name,
            role: match labels.node_type.as_deref() {
                Some("head") => PodRole::Head,
                Some("worker") => PodRole::Worker,
                // KubeRay's clean-up of Redis has the cluster's label too, with the node type `redis-cleanup`.
                _ => PodRole::Other,
            },
            group: labels.group.as_deref().unwrap_or_default(),
            replica: labels.replica.as_deref(),
            node: object.spec.node_name.as_deref(),
            deleting: object.metadata.deletion_timestamp.is_some(),
            phase,
            // The scheduler and the kubelet count pods of these phases no more.
            ended: matches!(phase, Some("Succeeded" | "Failed")),
            object,
        }
    }

    /// The UID, which another pod of the same name does not have. It is empty only in snapshots
    /// that were written by hand.
    pub fn uid(&self) -> &'a str {
        self.object.metadata.uid.as_deref().unwrap_or_default()
    }

    /// The address of the pod, once it has one.
    pub fn address(&self) -> Option<&'a str> {
        let address = self.object.status.pod_ip.as_deref();
        address.filter(|address| !address.is_empty())
    }

    /// The creation time, in seconds since 1970.
    pub fn created(&self) -> Option<f64> {
        seconds(self.object.metadata.creation_timestamp.as_deref()?)
    }

    /// The time at which the pod is killed, if Kubernetes was asked to delete it, in seconds since
    /// 1970: Kubernetes adds the grace period to the time at which it was asked.
    pub fn killed_at(&self) -> Option<f64> {
        seconds(self.object.metadata.deletion_timestamp.as_deref()?)
    }

    /// The start time of the container that Ray runs in, in seconds since 1970; `None` unless it runs.
    pub fn started(&self) -> Option<f64> {
        let ray = self.containers().first()?;
        let mut statuses = self.container_statuses().iter();
        let status = statuses.find(|status| status.name == ray.name)?;
        let running = status.state.running.as_ref()?;
        let started = running.started_at.as_deref().and_then(seconds);
        started.or_else(|| self.created())
    }

    /// True for a pod that has ended by itself: Ray's container has ended, or an init container has
    /// failed, before anybody asked Kubernetes to delete the pod.
    pub fn ended_by_itself(&self) -> bool {
        let grace = self.object.metadata.deletion_grace_period_seconds;
        #[expect(clippy::cast_precision_loss, reason = "seconds")]
        let grace = grace.unwrap_or(0) as f64;
        let asked_at = self.killed_at().map(|killed_at| killed_at - grace);
        let status = &self.object.status;
        let ray = self.containers().first().map(|ray| ray.name.as_str());
        let ray = (status.container_statuses.iter()).filter(|one| Some(one.name.as_str()) == ray);
        let failed = |one: &&ContainerStatus| {
            let ended = one.state.terminated.as_ref();
            ended.is_some_and(|end| end.exit_code != Some(0))
        };
        let init = status.init_container_statuses.iter().filter(failed);
        let mut ends = ray
            .chain(init)
            .filter_map(|one| one.state.terminated.as_ref());
        ends.any(|end| match asked_at {
            None => true,
            // Both are whole seconds, and KubeRay deletes such a pod in the second in which it ends.
            Some(asked_at) => {
                let finished_at = end.finished_at.as_deref().and_then(seconds);
                let is_before = finished_at.is_some_and(|finished_at| finished_at <= asked_at);
                is_before && end.exit_code != Some(TERMINATED)
            }
        })
    }

    /// The containers of the spec. Ray runs in the first one.
    pub fn containers(&self) -> &'a [PodContainer] {
        &self.object.spec.containers
    }

    /// The statuses of the containers.
    pub fn container_statuses(&self) -> &'a [ContainerStatus] {
        &self.object.status.container_statuses
    }

    /// The first condition of a type.
    pub fn condition(&self, kind: &str) -> Option<&'a PodCondition> {
        let mut conditions = self.object.status.conditions.iter();
        conditions.find(|one| one.kind == kind)
    }

    /// True if the scheduler has found no room for the pod on any Kubernetes node.
    pub fn is_unschedulable(&self) -> bool {
        // The condition outlives its truth: a pod that is deleted while it waits keeps it.
        let scheduled = self.condition("PodScheduled");
        let refused = scheduled.is_some_and(|condition| {
            !condition.is_true() && condition.reason.as_deref() == Some("Unschedulable")
        });
        refused && self.node.is_none() && !self.ended && !self.deleting
    }

    /// True while the scheduler leaves the pod alone until somebody removes its scheduling gates.
    pub fn is_gated(&self) -> bool {
        let gates = &self.object.spec.scheduling_gates;
        !gates.is_empty() && self.node.is_none() && !self.ended && !self.deleting
    }

    /// The pod's toleration for a taint: the first that is about it, as for Kubernetes. With one, the scheduler
    /// puts the pod on nodes with the taint. (Kubernetes, `component-helpers/scheduling/corev1/helpers.go`.)
    pub fn toleration(&self, taint: &Taint) -> Option<&'a PodToleration> {
        let mut tolerations = self.object.spec.tolerations.iter();
        tolerations.find(|toleration| toleration.covers(taint))
    }

    /// True if the taint never evicts the pod.
    pub fn stays_beside(&self, taint: &Taint) -> bool {
        let toleration = self.toleration(taint);
        toleration.is_some_and(|toleration| toleration.toleration_seconds.is_none())
    }

    /// The amounts that the pod takes of its node.
    pub fn requests(&self) -> Amounts {
        requests(self.object)
    }
}
