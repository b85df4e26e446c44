//! What decisions need of a pod.

use k8s_openapi::jiff::Timestamp;
use serde_json::Value;

use crate::quantity::Quantity;
use crate::ray::{Fields, list_at, object_at, text_at};

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
#[derive(Debug, Clone)]
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
    /// `metadata`
    pub metadata: &'a Fields,
    /// `spec`
    pub spec: Option<&'a Fields>,
    /// `status`
    pub status: Option<&'a Fields>,
}

impl<'a> Pod<'a> {
    /// Reads a pod; `None` for what has no name.
    pub fn parse(value: &'a Value) -> Option<Self> {
        let object = value.as_object()?;
        let metadata = object_at(object, "metadata")?;
        let spec = object_at(object, "spec");
        let status = object_at(object, "status");
        let label = |key| object_at(metadata, "labels").and_then(|labels| text_at(labels, key));
        let phase = status.and_then(|status| text_at(status, "phase"));
        Some(Self {
            name: text_at(metadata, "name")?,
            role: match label("ray.io/node-type") {
                Some("head") => PodRole::Head,
                Some("worker") => PodRole::Worker,
                _ => PodRole::Other,
            },
            group: label("ray.io/group").unwrap_or_default(),
            replica: label("ray.io/worker-group-replica-name"),
            node: spec.and_then(|spec| text_at(spec, "nodeName")),
            deleting: metadata.contains_key("deletionTimestamp"),
            phase,
            ended: matches!(phase, Some("Succeeded" | "Failed")),
            metadata,
            spec,
            status,
        })
    }

    /// The RayCluster that it belongs to.
    pub fn cluster(&self) -> Option<&'a str> {
        text_at(object_at(self.metadata, "labels")?, "ray.io/cluster")
    }

    /// When it was created, in seconds since 1970.
    pub fn created(&self) -> Option<f64> {
        let time: Timestamp = text_at(self.metadata, "creationTimestamp")?.parse().ok()?;
        Some(time.as_duration().as_secs_f64())
    }

    /// An annotation.
    pub fn annotation(&self, key: &str) -> Option<&'a str> {
        text_at(object_at(self.metadata, "annotations")?, key)
    }

    /// The containers of the spec.
    pub fn containers(&self) -> impl Iterator<Item = &'a Fields> {
        self.spec
            .map_or(&[][..], |spec| list_at(spec, "containers"))
            .iter()
            .filter_map(Value::as_object)
    }

    /// The statuses of the containers.
    pub fn container_statuses(&self) -> impl Iterator<Item = &'a Fields> {
        self.status
            .map_or(&[][..], |status| list_at(status, "containerStatuses"))
            .iter()
            .filter_map(Value::as_object)
    }

    /// What the scheduler counts for it on its node: per container the larger of what is wanted
    /// and what was given (a resize in flight holds both), or its largest init container, plus the
    /// pod's overhead. (Kubernetes, `resource.PodRequests` with in-place resize.)
    pub fn requested(&self, resource: &str) -> Quantity {
        let running = sum(self.containers().map(|spec| self.held(spec, resource)));
        let restartable = |init: &Fields| text_at(init, "restartPolicy") == Some("Always");
        let inits = self
            .spec
            .map_or(&[][..], |spec| list_at(spec, "initContainers"));
        let inits = || inits.iter().filter_map(Value::as_object);
        let sidecars = sum(inits()
            .filter(|init| restartable(init))
            .map(|init| wanted(init, resource)));
        let largest = inits()
            .filter(|init| !restartable(init))
            .map(|init| wanted(init, resource))
            .max()
            .unwrap_or_default();
        let overhead = self
            .spec
            .and_then(|spec| amount(object_at(spec, "overhead")?, resource))
            .unwrap_or_default();
        sum([sum([running, sidecars]).max(largest), overhead])
    }

    fn held(&self, container: &Fields, resource: &str) -> Quantity {
        let name = text_at(container, "name");
        let given = self
            .container_statuses()
            .find(|status| text_at(status, "name") == name)
            .and_then(|status| {
                amount(
                    object_at(object_at(status, "resources")?, "requests")?,
                    resource,
                )
            });
        wanted(container, resource).max(given.unwrap_or_default())
    }
}

fn wanted(container: &Fields, resource: &str) -> Quantity {
    let resources = object_at(container, "resources");
    resources
        .and_then(|resources| amount(object_at(resources, "requests")?, resource))
        .or_else(|| amount(object_at(resources?, "limits")?, resource))
        .unwrap_or_default()
}

fn amount(map: &Fields, resource: &str) -> Option<Quantity> {
    Quantity::from_json(map.get(resource)?).ok()
}

/// The sum; beyond what can be represented, the larger part.
fn sum(quantities: impl IntoIterator<Item = Quantity>) -> Quantity {
    quantities.into_iter().fold(Quantity::ZERO, |total, each| {
        total.checked_add(each).unwrap_or(total.max(each))
    })
}
