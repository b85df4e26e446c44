//! The pods of Ray clusters, as far as an update of their cluster can hurt them.

use std::collections::BTreeMap;

use crate::json::{Fields, Json};
use crate::ray::Container;
use crate::ray::resource::Amounts;

/// The label with the name of a pod's RayCluster.
pub const CLUSTER: &str = "ray.io/cluster";

/// A pod of a Ray cluster that runs or is to run.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RayPod {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// The RayCluster that it belongs to.
    pub cluster: String,
    /// Its group; `headgroup` for the head.
    pub group: String,
    /// The amounts that the ray container has: its limits, or else its requests.
    pub amounts: Amounts,
}

impl RayPod {
    /// Reads a Pod object; `None` if it is not a Ray pod, has ended, or is being deleted.
    pub fn read(object: Fields<'_>) -> Option<Self> {
        let metadata = object.object("metadata")?;
        let labels = metadata.object("labels")?;
        let phase = object.below("status").text("phase");
        let is_leaving = metadata.contains_key("deletionTimestamp");
        // No update of the cluster can hurt a pod that has ended or is about to.
        if is_leaving || matches!(phase, Some("Succeeded" | "Failed")) {
            return None;
        }
        let containers = object.below("spec").list("containers");
        // KubeRay and Ray both take the first container for the one in which Ray runs.
        let ray = containers.get(0).and_then(Json::as_object);
        let container = ray.map(|ray| Container::new(0, ray));
        Some(Self {
            namespace: metadata.text("namespace")?.to_owned(),
            name: metadata.text("name")?.to_owned(),
            cluster: labels.text(CLUSTER)?.to_owned(),
            group: labels.text("ray.io/group").unwrap_or_default().to_owned(),
            amounts: Amounts::each(|resource| container?.size(resource.name())),
        })
    }
}

/// The pods of all Ray clusters.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Pods(BTreeMap<String, BTreeMap<String, Vec<RayPod>>>);

impl FromIterator<RayPod> for Pods {
    fn from_iter<I: IntoIterator<Item = RayPod>>(pods: I) -> Self {
        let mut index = Self::default();
        for pod in pods {
            let of_namespace = index.0.entry(pod.namespace.clone()).or_default();
            of_namespace
                .entry(pod.cluster.clone())
                .or_default()
                .push(pod);
        }
        index
    }
}

impl Pods {
    /// The pods of a RayCluster; none if they are not known.
    pub fn of(&self, namespace: &str, cluster: &str) -> &[RayPod] {
        self.0
            .get(namespace)
            .and_then(|clusters| clusters.get(cluster))
            .map_or(&[], Vec::as_slice)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::quantity::Quantity;

    fn pod(change: impl Fn(&mut Value)) -> Option<RayPod> {
        let mut pod = json!({
            "metadata": {"name": "p", "namespace": "n",
                "labels": {"ray.io/cluster": "c", "ray.io/group": "g"}},
            "spec": {"containers": [{"resources": {
                "requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"memory": "2Gi"}}}]},
            "status": {"phase": "Running"}});
        change(&mut pod);
        RayPod::read((&pod).into())
    }

    #[test]
    fn reads_group_and_size() {
        let pod = pod(|_| ()).unwrap();
        assert_eq!((pod.cluster.as_str(), pod.group.as_str()), ("c", "g"));
        assert_eq!(pod.amounts.cpu, Some(Quantity::from_units(1)));
        assert_eq!(pod.amounts.memory, Quantity::parse("2Gi").ok());
        let pods: Pods = [pod].into_iter().collect();
        assert_eq!((pods.of("n", "c").len(), pods.of("n", "d").len()), (1, 0));
    }

    #[test]
    fn pods_that_ended_or_leave_or_are_not_rays_do_not_count() {
        assert_eq!(pod(|pod| pod["status"]["phase"] = json!("Succeeded")), None);
        assert_eq!(
            pod(|pod| pod["metadata"]["deletionTimestamp"] = json!("x")),
            None
        );
        assert_eq!(pod(|pod| pod["metadata"]["labels"] = json!({})), None);
    }
}
