//! A pod as decisions see it.

use k8s_openapi::jiff::Timestamp;

use super::pod_object::{Condition, Container, ContainerStatus, PodObject};
use super::requests::requests;
use crate::snapshot::amounts::Amounts;

/// What a pod is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PodRole {
    /// The head.
    Head,
    /// A worker.
    Worker,
    /// Something else of the cluster's (a Redis clean-up), or not labelled.
    Other,
}

/// A pod.
#[derive(Debug, Clone, Copy)]
pub struct Pod<'a> {
    /// Its name.
    pub name: &'a str,
    /// What it is for.
    pub role: PodRole,
    /// Its group; empty if not labelled.
    pub group: &'a str,
    /// The replica of a multi-host group that it belongs to.
    pub replica: Option<&'a str>,
    /// The Kubernetes node it runs on.
    pub node: Option<&'a str>,
    /// Kubernetes was asked to delete it.
    pub deleting: bool,
    /// `status.phase`
    pub phase: Option<&'a str>,
    /// It ended: it takes no room on its node any more.
    pub ended: bool,
    /// All that is kept of it.
    pub object: &'a PodObject,
}

impl<'a> Pod<'a> {
    /// What matters of a pod.
    pub fn of(object: &'a PodObject) -> Self {
        let labels = &object.metadata.labels;
        let phase = object.status.phase.as_deref();
        Self {
            name: &object.metadata.name,
            role: match labels.node_type.as_deref() {
                Some("head") => PodRole::Head,
                Some("worker") => PodRole::Worker,
                _ => PodRole::Other,
            },
            group: labels.group.as_deref().unwrap_or_default(),
            replica: labels.replica.as_deref(),
            node: object.spec.node_name.as_deref(),
            deleting: object.metadata.deletion_timestamp.is_some(),
            phase,
            ended: matches!(phase, Some("Succeeded" | "Failed")),
            object,
        }
    }

    /// Its UID: another pod of its name has another one. Empty only in snapshots by hand.
    pub fn uid(&self) -> &'a str {
        self.object.metadata.uid.as_deref().unwrap_or_default()
    }

    /// Its address, once it has one.
    pub fn address(&self) -> Option<&'a str> {
        let address = self.object.status.pod_ip.as_deref();
        address.filter(|address| !address.is_empty())
    }

    /// When it was created, in seconds since 1970.
    pub fn created(&self) -> Option<f64> {
        let created = self.object.metadata.creation_timestamp.as_deref()?;
        let time: Timestamp = created.parse().ok()?;
        Some(time.as_duration().as_secs_f64())
    }

    /// The containers of the spec; Ray runs in the first.
    pub fn containers(&self) -> &'a [Container] {
        &self.object.spec.containers
    }

    /// The statuses of the containers.
    pub fn container_statuses(&self) -> &'a [ContainerStatus] {
        &self.object.status.container_statuses
    }

    /// The first condition of a type.
    pub fn condition(&self, kind: &str) -> Option<&'a Condition> {
        self.conditions().iter().find(|one| one.kind == kind)
    }

    /// Its conditions, as far as they are kept.
    pub fn conditions(&self) -> &'a [Condition] {
        &self.object.status.conditions
    }

    /// What it takes of its node.
    pub fn requests(&self) -> Amounts {
        requests(self.object)
    }
}
