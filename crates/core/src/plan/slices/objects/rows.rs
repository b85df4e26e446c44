//! Rows as the objects have them: a decision does not follow what Ray nodes report of themselves, nor the order in
//! which they are reported, nor what is remembered.

use std::collections::BTreeMap;

use crate::plan::nodes::group::ClusterConfig;
use crate::plan::nodes::node::Stage;
use crate::plan::nodes::rows::{Leftovers, NodeRow};
use crate::plan::situation::Situation;
use crate::plan::slices::departures::is_evicted;
use crate::plan::slices::departures::reason::Departure;
use crate::plan::slices::objects::hanging::HangingPods;
use crate::snapshot::pod::{Pod, PodRole};

/// Has the rows go by the pods' labels, leaves out heads that stand by, and keeps those that Ray gives up.
pub(crate) fn settle<'a>(
    rows: &mut Vec<NodeRow<'a>>,
    leftovers: &mut Leftovers<'a>,
    situation: &Situation<'a>,
) {
    // Whether such a pod still counts is read from the objects, long before Ray's time for it is over.
    let never_joined = leftovers.never_joined.drain(..);
    rows.extend(never_joined.map(|pod| NodeRow::of(pod.group, pod, Stage::Allocated, None)));
    // Head pods that stand by while another one leads join only once they lead, so nothing can be placed
    // on them. Ray knows of one head only.
    let leads = |pod: &Pod<'_>| situation.live.contains_key(pod.name);
    let is_head = |pod: &Pod<'_>| pod.role == PodRole::Head;
    let one_leads = (situation.own_pods.iter()).any(|pod| is_head(pod) && leads(pod));
    rows.retain(|row| (row.pod).is_none_or(|pod| !one_leads || !is_head(pod) || leads(pod)));
    for row in rows {
        // Ray goes by the group that the Ray node reports. That may be a lie, by which a pod would get
        // the sizes of another group; KubeRay, and the rules for plans, go by the pod's label.
        row.group = row.pod.map_or(row.group, |pod| pod.group);
    }
}

/// Takes out the rows of groups that are not known, but for nodes of removed groups, which are to be drained.
pub(crate) fn take_out_unknown(rows: &mut Vec<NodeRow<'_>>, config: &ClusterConfig) {
    rows.retain(|row| {
        let is_removed = row.stage == Stage::Running && config.has_lost(row.group);
        is_removed || config.number(row.group).is_some()
    });
}

/// Adds the pods that KubeRay was asked for and has not made yet, as `replicas` says. A pod that is
/// deleted is missing, and is made again, but for one that leaves with its node: what takes its place
/// is a launch. The rows are then in an order that depends neither on Ray's report, nor on what is
/// remembered, nor on a pod of another group.
pub(crate) fn add_awaited<'a>(
    rows: &mut Vec<NodeRow<'a>>,
    config: &'a ClusterConfig,
    pods: &[Pod<'_>],
    departures: &BTreeMap<String, Departure>,
    hanging: &HangingPods<'_>,
) {
    // KubeRay counts pods that hang among those that it was asked for, so what is remembered says too much.
    rows.retain(|row| {
        row.pod.is_some() || row.stage != Stage::Requested || hanging.count(row.group) == 0
    });
    let is_present = |pod: &&Pod<'_>| {
        let is_evicted = || is_evicted(departures, config, pod) && !hanging.holds(pod);
        pod.role == PodRole::Worker
            && (!pod.deleting || is_evicted())
            && !config.is_listed(pod.group, pod.name)
    };
    let mut present = config.count(pods.iter().filter(is_present));
    let asked_for = rows.iter();
    for row in asked_for.filter(|row| row.pod.is_none() && row.stage == Stage::Requested) {
        if let Some(group) = config.number(row.group) {
            present[group] = present[group].saturating_add(row.count);
        }
    }
    let groups = config.groups.enumerate();
    for (number, group) in groups.filter(|(_, group)| !group.is_head()) {
        let max = group.max_replicas.unwrap_or(0).max(0);
        let replicas = group.asked_for().clamp(0, max);
        // Replicas count as wholes.
        let hanging = hanging.count(&group.name).div_ceil(group.hosts) * group.hosts;
        let count = group
            .nodes(replicas)
            .saturating_sub(present[number].saturating_add(hanging));
        // This is how launches survive a restart of the controller.
        if count > 0 {
            rows.push(NodeRow {
                group: &group.name,
                pod: None,
                ray: None,
                stage: Stage::Requested,
                head: false,
                since: None,
                count,
            });
        }
    }
    // Of several nodes that are equally good the same one then wins in every round, so that the
    // others can become idle.
    rows.sort_by_key(|row| match row.pod {
        Some(pod) => (false, row.group, pod.name),
        // Launches have no name. The sort is stable and leaves them in the order in which they were
        // asked for.
        None => (true, "", ""),
    });
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::plan::nodes::rows;
    use crate::plan::settings::PlanSettings;
    use crate::snapshot::Snapshot;

    #[test]
    fn a_head_that_stands_by_while_another_leads_is_no_node() {
        let pod = |name: &str| {
            json!({"metadata": {"name": name, "labels": {"ray.io/cluster": "c",
                "ray.io/node-type": "head", "ray.io/group": "headgroup"}}})
        };
        let rows_of = |reported: &[&str], is_improved: bool| {
            let nodes = reported.iter().map(|name| {
                json!({"instanceId": name, "rayNodeTypeName": "headgroup", "status": "RUNNING"})
            });
            let snapshot: Snapshot = serde_json::from_value(json!({
                "apiVersion": "rayfit.dev/v1alpha1", "kind": "Snapshot",
                "time": "2026-01-14T12:00:00Z", "gcs": {"nodeStates": nodes.collect::<Vec<_>>()},
                "pods": [pod("a"), pod("b")], "rayCluster": {"metadata": {"name": "c"}}}))
            .unwrap();
            let own_pods: Vec<Pod<'_>> = snapshot.pods.iter().collect();
            let situation = Situation {
                snapshot: &snapshot,
                settings: &PlanSettings::default(),
                own_pods: &own_pods,
                live: &snapshot.gcs.live(),
                now: 0.0,
            };
            let (mut rows, mut leftovers) = rows::rows(&situation);
            if is_improved {
                settle(&mut rows, &mut leftovers, &situation);
            }
            let names = rows.iter().filter_map(|row| Some(row.pod?.name.to_owned()));
            names.collect::<Vec<_>>()
        };
        assert_eq!(rows_of(&["b"], true), ["b"]);
        assert_eq!(rows_of(&["b"], false), ["b", "a"], "as Ray");
        assert_eq!(rows_of(&[], true), ["a", "b"], "neither leads yet");
    }
}
