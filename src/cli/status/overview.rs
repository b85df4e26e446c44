//! One line for each RayCluster. Pure.

use rayfit_core::ray::{Kind, RayObject, ippr};
use rayfit_core::reconcile::ScalerRole;
use rayfit_core::reconcile::ownership::record::HandoverRecord;
use rayfit_core::report::table::Table;
use rayfit_core::simulate::price::Price;
use rayfit_core::snapshot::ClusterId;
use rayfit_core::snapshot::pod::{Pod, PodRole};
use rayfit_core::snapshot::pod_condition::PodCondition;
use rayfit_core::snapshot::pod_object::PodObject;
use serde_json::Value;

use crate::cli::live::worker_pods::WorkerPods;

/// All RayClusters, given their pods.
pub(super) fn text(clusters: &[Value], pods: &[PodObject], price: Option<Price>) -> String {
    if clusters.is_empty() {
        return "No RayClusters found.\n".to_owned();
    }
    let mut table = Table::new(&[
        "NAMESPACE",
        "NAME",
        "MODE",
        "SCALED BY",
        "WORKERS",
        "WANTED",
        "MAX",
        "RESIZING",
        "STATE",
    ]);
    if price.is_some() {
        table
            .titles
            .push("WORKERS HAVE (PRICE OF AN HOUR)".to_owned());
    }
    for cluster in clusters {
        let Some(root) = cluster.as_object() else {
            continue;
        };
        let object = RayObject::of_kind(Kind::RayCluster, root);
        let id = ClusterId::of(cluster);
        let of_cluster = pods
            .iter()
            .filter(|pod| id.owns(&pod.metadata))
            .map(Pod::of);
        let have = price.map(|price| {
            let pods = of_cluster.clone();
            let workers = WorkerPods::of(cluster, pods, Err(String::new()), price);
            workers.have.to_string()
        });
        let workers: Vec<Pod<'_>> = of_cluster
            .filter(|pod| pod.role == PodRole::Worker && !pod.ended)
            .collect();
        let is_resizing = |pod: &&Pod<'_>| resize_conditions(pod).next().is_some();
        let resizing = workers.iter().filter(is_resizing).count();
        let mut state = cluster["status"]["state"].as_str().unwrap_or_default();
        if cluster["spec"]["suspend"] == true {
            state = "suspended";
        }
        let grows = object.annotation(ippr::ANNOTATION).is_some();
        let cells = [
            object.namespace().unwrap_or_default().to_owned(),
            object.name().unwrap_or_default().to_owned(),
            object.reconcile_mode().to_string(),
            scaler(&object).to_owned(),
            workers.len().to_string(),
            sum(cluster, "replicas"),
            sum(cluster, "maxReplicas"),
            if grows {
                resizing.to_string()
            } else {
                String::new()
            },
            state.to_owned(),
        ];
        table.line(cells.into_iter().chain(have));
    }
    table.to_string()
}

/// The scaler, according to the hand-over record; a sidecar is shown without the UID of its pod.
pub(super) fn scaler(object: &RayObject<'_>) -> &'static str {
    match HandoverRecord::of(object) {
        HandoverRecord::Absent => "",
        HandoverRecord::Nobody => "nobody",
        HandoverRecord::Held(ScalerRole::Central { .. }) => "central",
        HandoverRecord::Held(ScalerRole::Sidecar { .. }) => "sidecar",
        HandoverRecord::Taking { .. } => "changing",
        HandoverRecord::Unknown(_) => "unknown",
    }
}

/// The conditions that a pod has while a resize is not complete.
pub(super) fn resize_conditions<'a>(pod: &Pod<'a>) -> impl Iterator<Item = &'a PodCondition> {
    let conditions = pod.object.status.conditions.iter();
    conditions.filter(|one| one.kind.starts_with("PodResize") && one.is_true())
}

/// The sum of a field over all worker groups, counted in pods.
fn sum(cluster: &Value, key: &str) -> String {
    let groups = cluster["spec"]["workerGroupSpecs"]
        .as_array()
        .into_iter()
        .flatten();
    let of = |group: &Value| {
        let hosts = group["numOfHosts"].as_i64().unwrap_or(1);
        group[key].as_i64().unwrap_or(0).saturating_mul(hosts)
    };
    let sum = groups.map(of).fold(0_i64, i64::saturating_add);
    // KubeRay's own default is the largest 32-bit number, which means that there is no bound.
    if sum >= i64::from(i32::MAX) {
        "none".to_owned()
    } else {
        sum.to_string()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_line_says_how_a_cluster_is_scaled() {
        let cluster = json!({
            "metadata": { "namespace": "ray", "name": "demo", "annotations": {
                "rayfit.dev/reconcile": "sidecar", "rayfit.dev/scaled-by": "sidecar/1-2", "ray.io/ippr": "{}"
            } },
            "spec": { "workerGroupSpecs": [{ "replicas": 2, "maxReplicas": 4, "numOfHosts": 2 }, { "replicas": 1, "maxReplicas": 3 }] },
            "status": { "state": "ready" }
        });
        let pod = json!({
            "metadata": { "namespace": "ray", "name": "w", "labels": { "ray.io/cluster": "demo", "ray.io/node-type": "worker" } },
            "spec": { "nodeName": "n", "containers": [{ "name": "ray", "resources": { "requests": { "cpu": "2", "memory": "8Gi" } } }] },
            "status": { "phase": "Running", "conditions": [{ "type": "PodResizeInProgress", "status": "True" }] }
        });
        let price = "cpu-hour=0.5,gib-hour=0.25".parse().ok();
        let text = text(&[cluster], &[serde_json::from_value(pod).unwrap()], price);
        let line: Vec<&str> = text.lines().nth(1).unwrap().split_whitespace().collect();
        assert_eq!(
            line,
            [
                "ray", "demo", "sidecar", "sidecar", "1", "5", "11", "1", "ready", "2", "CPU,",
                "8", "GiB", "(3.00)"
            ]
        );
    }

    #[test]
    fn without_clusters_it_says_so() {
        assert_eq!(text(&[], &[], None), "No RayClusters found.\n");
    }
}
