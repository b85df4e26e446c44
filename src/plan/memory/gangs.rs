//! Placement groups whose pods did not all get a Kubernetes node: when they are tried again.
//!
//! A placement group runs with all of its pods or not at all. Where others take the room for the
//! rest, the pods that have a node hold room that is of use to nobody, and two placement groups may
//! hold each other up for ever. So the pods of one are given up after a while, and it is tried again
//! later: after a minute, then two, up to ten, each a little longer or shorter for each placement
//! group, so that the same two do not meet again. Those that are to be tried again are tried one at a
//! time.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use crate::hash::HashSet;
use crate::plan::decided::Decided;
use crate::plan::demand::requests::{Demand, DemandOrigin};
use crate::plan::demand::shape::ShapeId;
use crate::plan::list::{DemandIndex, List};
use crate::plan::nodes::life::Stage;
use crate::plan::nodes::node::PlannedNode;
use crate::plan::outcome::unmet::UnmetReason;
use crate::seconds::Retry;
use crate::snapshot::history::GangMemory;

/// The times after which a placement group is tried again, on average.
const RETRY: Retry = Retry::UP_TO_TEN_MINUTES;

/// The shortest time for which pods may look for a Kubernetes node, in seconds.
const LEAST_S: f64 = 5.0;

/// The most placement groups that are remembered.
const MOST: usize = 200;

/// The placement groups that have been given up and still wait, by their titles.
pub(super) type Gangs = BTreeMap<String, GangMemory>;

/// Keeps those demands back that are not to be tried now. Returns the shapes of their bundles:
/// what could hold one is to make room.
pub(super) fn keep_back(
    waiting: &Gangs,
    demands: &mut List<DemandIndex, Demand<'_>>,
    now: f64,
) -> HashSet<ShapeId> {
    let mut shapes = HashSet::default();
    let due = waiting.iter().filter(|(_, memory)| memory.retry_at <= now);
    let tried = due.min_by(|(one, is), (other, was)| {
        (is.retry_at.total_cmp(&was.retry_at)).then_with(|| one.cmp(other))
    });
    let tried = tried.map(|(title, _)| title.as_str());
    for demand in demands.iter_mut() {
        let DemandOrigin::Gang(_, gang) = demand.kind else {
            continue;
        };
        let title = gang.title();
        let Some(memory) = waiting.get(title).filter(|_| tried != Some(title)) else {
            continue;
        };
        let why = if memory.retry_at > now {
            UnmetReason::TriedAgain(memory.retry_at)
        } else {
            UnmetReason::TriedInTurn
        };
        if let Ok(batches) = std::mem::replace(&mut demand.batches, Err(why)) {
            shapes.extend(batches.iter().map(|batch| batch.shape));
        }
    }
    shapes
}

/// Gives up the placement groups of which a pod has been without a Kubernetes node for too long:
/// longer than `unschedulable_s` seconds, with none on its way, or with scheduling gates and in the
/// way of others. Returns whether there are any.
pub(super) fn give_up(
    waiting: &mut Gangs,
    decided: &Decided<'_>,
    cluster: &str,
    unschedulable_s: f64,
) -> bool {
    let (state, now) = (&decided.state, decided.now);
    let awaited = &decided.evidence.awaited;
    let mut is_any = false;
    for (number, demand) in decided.demands.enumerate() {
        let (DemandOrigin::Gang(_, gang), Ok(batches)) = (demand.kind, &demand.batches) else {
            continue;
        };
        let units: u64 = batches
            .iter()
            .map(|batch| batch.count)
            .fold(0, u64::saturating_add);
        let title = gang.title();
        let times = waiting.get(title).map_or(0, |memory| memory.times);
        let patience = unschedulable_s.max(LEAST_S) * (1.0 + 0.5 * spread(cluster, title, times));
        let is_for_it = |node: &PlannedNode| node.takes.iter().any(|take| take.demand == number);
        let for_long = |waits: Option<f64>| waits.is_some_and(|waits| waits >= patience);
        let finds_no_node = |node: &PlannedNode| {
            let is_awaited = node.pod().is_some_and(|pod| awaited.contains(pod));
            !is_awaited && is_for_it(node) && for_long(node.unschedulable_s)
        };
        // Pods with scheduling gates take nothing from anybody, and are admitted as soon as all of
        // them can be. They only are in the way of what was asked for together with them, and for
        // them others may hold room.
        let is_gated = |node: &PlannedNode| is_for_it(node) && for_long(node.gated_s);
        let is_hindered = |node: &PlannedNode| {
            if is_for_it(node) {
                node.stage() == Stage::Running
            } else {
                node.gated_s.is_some() && node.stays()
            }
        };
        let waits = || {
            state.in_order().any(finds_no_node)
                || state.in_order().any(is_gated) && state.in_order().any(is_hindered)
        };
        // A single bundle is there or is not, and holds nothing while it waits for others.
        if units < 2 || title.is_empty() || !waits() {
            continue;
        }
        // A tenant may make any number of placement groups. Those that are known are still
        // tried again.
        if times == 0 && waiting.len() >= MOST {
            continue;
        }
        let times = times.saturating_add(1);
        let later = RETRY.wait_s(times) * (0.5 + spread(cluster, title, times));
        let memory = GangMemory {
            times,
            retry_at: now + later,
        };
        // Remembered by title, because Ray's report has the placement groups in another order each time.
        waiting.insert(title.to_owned(), memory);
        is_any = true;
    }
    is_any
}

/// A number from 0 up to 1 that is the same whenever it is asked for, and another one for each
/// placement group and each of its tries.
fn spread(cluster: &str, title: &str, times: u32) -> f64 {
    // Its keys are always the same, unlike those of a `HashMap`, and equal snapshots are to give
    // equal plans.
    let mut hasher = DefaultHasher::new();
    (cluster, title, times).hash(&mut hasher);
    let share = u32::try_from(hasher.finish() >> 32).unwrap_or_default();
    f64::from(share) / (f64::from(u32::MAX) + 1.0)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use crate::plan::{PlanSettings, RemovalCause, UnmetReason, decide};
    use crate::snapshot::{History, Snapshot};

    /// Seconds since 1970 of the first round.
    const START: u32 = 1_768_392_000;

    /// The number of pods that all Kubernetes nodes hold together.
    const PLACES: usize = 8;

    /// The number of bundles of a placement group, each as large as a pod.
    const BUNDLES: usize = 6;

    #[derive(Debug, Clone)]
    struct PlayedPod {
        name: String,
        made: u32,
        runs_since: Option<u32>,
    }

    /// A RayCluster with one placement group, which goes once all of its pods run.
    #[derive(Default)]
    struct PlayedCluster {
        name: &'static str,
        pods: Vec<PlayedPod>,
        made: u32,
        history: History,
        whole_at: Option<u32>,
    }

    impl PlayedCluster {
        fn snapshot(&self, later: u32) -> Snapshot {
            let at = |later: u32| crate::snapshot::moment(f64::from(START + later));
            let pod = |name: &str, kind: &str, group: &str, made: u32, status: &Value| {
                json!({
                    "metadata": { "name": name, "uid": name, "creationTimestamp": at(made), "labels": {
                        "ray.io/cluster": self.name, "ray.io/node-type": kind, "ray.io/group": group } },
                    "status": status,
                })
            };
            let node = |name: &str, group: &str, total: &Value, idle_s: u32| {
                json!({ "nodeId": "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA==", "instanceId": name,
                    "rayNodeTypeName": group, "status": "IDLE", "idleDurationMs": idle_s * 1000,
                    "totalResources": total, "availableResources": total })
            };
            let waits = json!({ "phase": "Pending", "conditions": [
                { "type": "PodScheduled", "status": "False", "reason": "Unschedulable" }] });
            let runs = json!({ "phase": "Running" });
            let head_size = json!({ "node:__internal_head__": 1 });
            let mut pods = vec![pod("h", "head", "headgroup", 0, &runs)];
            let mut nodes = vec![node("h", "headgroup", &head_size, 0)];
            for one in &self.pods {
                let status = if one.runs_since.is_some() {
                    &runs
                } else {
                    &waits
                };
                pods.push(pod(&one.name, "worker", "cpu", one.made, status));
                if let Some(since) = one.runs_since {
                    nodes.push(node(&one.name, "cpu", &json!({ "CPU": 1 }), later - since));
                }
            }
            let container = json!({ "name": "ray", "resources": { "limits": { "cpu": "1", "memory": "1Gi" } } });
            let template = json!({ "spec": { "containers": [container] } });
            let bundles: Vec<Value> = (0..BUNDLES)
                .map(|_| json!({ "resourcesBundle": { "CPU": 1 } }))
                .collect();
            let mut snapshot: Snapshot = serde_json::from_value(json!({
                "apiVersion": "rayfit.dev/v1alpha1", "kind": "Snapshot", "time": at(later),
                "rayCluster": { "metadata": { "name": self.name, "namespace": "ray" }, "spec": {
                    "headGroupSpec": { "rayStartParams": { "num-cpus": "0" }, "template": template },
                    "workerGroupSpecs": [{ "groupName": "cpu", "replicas": self.pods.len(),
                        "minReplicas": 0, "maxReplicas": 20, "rayStartParams": {}, "template": template }],
                } },
                "pods": pods,
                "gcs": { "nodeStates": nodes, "pendingGangResourceRequests": [
                    { "requests": bundles, "details": format!("{}:SPREAD|PENDING", self.name) }] },
            }))
            .unwrap();
            snapshot.history = self.history.clone();
            snapshot
        }

        /// Carries out a round.
        fn round(&mut self, later: u32) {
            if self.whole_at.is_some() {
                return;
            }
            let (plan, _) = decide(&self.snapshot(later), &PlanSettings::default());
            let deleted = plan.groups[0].deletions().map(|deletion| &deletion.pod);
            let gone: Vec<&String> = deleted
                .chain(plan.drains.iter().map(|drain| &drain.pod))
                .collect();
            self.pods.retain(|pod| !gone.contains(&&pod.name));
            for _ in 0..plan.groups[0].launch_now {
                self.made += 1;
                self.pods.push(PlayedPod {
                    name: format!("w{}", self.made),
                    made: later,
                    runs_since: None,
                });
            }
            self.history = plan.remember;
            self.history.instances.clear();
        }
    }

    /// Gives the pods that wait the places that are free, to one cluster after the other.
    fn schedule(clusters: &mut [PlayedCluster], later: u32) {
        loop {
            let taken: usize = (clusters.iter())
                .map(|cluster| {
                    cluster
                        .pods
                        .iter()
                        .filter(|pod| pod.runs_since.is_some())
                        .count()
                })
                .sum();
            let waiting = clusters.iter_mut().filter_map(|cluster| {
                let runs = cluster.pods.iter().filter(|pod| pod.runs_since.is_some());
                let runs = runs.count();
                let pod = cluster
                    .pods
                    .iter_mut()
                    .find(|pod| pod.runs_since.is_none())?;
                Some((runs, pod))
            });
            let Some((_, pod)) = waiting.min_by_key(|(runs, _)| *runs) else {
                return;
            };
            if taken >= PLACES {
                return;
            }
            pod.runs_since = Some(later);
        }
    }

    #[test]
    fn two_placement_groups_never_hold_each_other_for_ever() {
        let cluster = |name| PlayedCluster {
            name,
            ..PlayedCluster::default()
        };
        let mut clusters = [cluster("a"), cluster("b")];
        for later in (0..3600).step_by(2) {
            for cluster in &mut clusters {
                cluster.round(later);
            }
            schedule(&mut clusters, later);
            for cluster in &mut clusters {
                let runs = |pod: &&PlayedPod| pod.runs_since.is_some();
                if cluster.pods.iter().filter(runs).count() >= BUNDLES {
                    cluster.whole_at.get_or_insert(later);
                }
                // Each has work for two minutes, and is then deleted.
                if cluster.whole_at.is_some_and(|at| later >= at + 120) {
                    cluster.pods.clear();
                }
            }
        }
        let whole = clusters.map(|cluster| (cluster.name, cluster.whole_at, cluster.made));
        for (name, whole_at, made) in whole {
            assert!(whole_at.is_some_and(|at| at < 1200), "{name}: {whole_at:?}");
            assert!(made <= 30, "{name}: {made} pods");
        }
    }

    /// A snapshot in which other placement groups wait than the one of the played cluster, with how
    /// often each was given up and when it is tried again.
    fn waits_for(cluster: &PlayedCluster, later: u32, gangs: &[(&str, Value, u32)]) -> Snapshot {
        let mut written = serde_json::to_value(cluster.snapshot(later)).unwrap();
        let pending = gangs.iter().map(|(name, bundle, _)| {
            let bundle = json!({ "resourcesBundle": bundle });
            json!({ "requests": [bundle, bundle], "details": format!("{name}:SPREAD|PENDING") })
        });
        written["gcs"]["pendingGangResourceRequests"] = pending.collect();
        for (name, _, retry_at) in gangs {
            written["history"]["gangs"][format!("{name}:SPREAD")] =
                json!({ "times": 1, "retryAt": START + retry_at });
        }
        serde_json::from_value(written).unwrap()
    }

    #[test]
    fn what_waits_for_another_one_says_the_same_as_time_passes() {
        let cluster = PlayedCluster::default();
        let gangs = [
            ("one", json!({ "CPU": 1 }), 10),
            ("two", json!({ "CPU": 1 }), 20),
        ];
        let [first, second] = [100, 101].map(|later| {
            let snapshot = waits_for(&cluster, later, &gangs);
            decide(&snapshot, &PlanSettings::default()).0
        });
        assert_eq!(first.unmet[0].reasons, [UnmetReason::TriedInTurn]);
        assert_eq!(first.unmet, second.unmet);
        assert_eq!(
            (first.unmet.len(), first.groups[0].launch),
            (1, 2),
            "one is tried"
        );
    }

    #[test]
    fn only_what_could_hold_a_bundle_makes_room() {
        let pod = |name: &str, runs_since| PlayedPod {
            name: name.to_owned(),
            made: 0,
            runs_since,
        };
        let cluster = PlayedCluster {
            pods: vec![pod("idle", Some(80)), pod("pending", None)],
            ..PlayedCluster::default()
        };
        for (bundle, makes_room) in [
            (json!({ "CPU": 1 }), true),
            (json!({ "GPU": 1 }), false),
            (json!({ "CPU": 2 }), false),
        ] {
            let snapshot = waits_for(&cluster, 100, &[("one", bundle.clone(), 200)]);
            let (plan, _) = decide(&snapshot, &PlanSettings::default());
            let drained = plan
                .drains
                .iter()
                .map(|drain| (drain.pod.as_str(), drain.cause));
            let deleted =
                (plan.groups[0].delete.iter()).map(|gone| (gone.pod.as_str(), gone.cause));
            let gone: Vec<_> = drained.chain(deleted).collect();
            let scattered = RemovalCause::Scattered;
            let expected = [("idle", scattered), ("pending", scattered)];
            assert_eq!(gone, expected[..if makes_room { 2 } else { 0 }], "{bundle}");
        }
    }
}
