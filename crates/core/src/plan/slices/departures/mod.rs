//! Pods that are about to leave against the autoscaler's will: their Kubernetes node goes, or they
//! are evicted.
//!
//! Ray's autoscaler learns of it when the Ray node is dead. Here the objects say it before: no new
//! work is placed on such a node, room for its work is found elsewhere, and the Ray node is drained,
//! so that what can end in the time that is left does so.

pub(crate) mod reason;

use std::collections::BTreeMap;

use crate::hash::HashMap;
use crate::plan::nodes::group::ClusterConfig;
use crate::plan::outcome::cause::RemovalCause;
use crate::plan::outcome::plan::Plan;
use crate::plan::situation::Situation;
use crate::plan::slices::departures::reason::{Departure, DepartureReason};
use crate::snapshot::KubeNode;
use crate::snapshot::history::{History, ToldDeparture};
use crate::snapshot::pod::{Pod, PodRole};
use crate::snapshot::taint::{CORDON, Taint, TaintMeaning};
use crate::snapshot::toleration::UNANSWERED_S;

/// Seconds for which a kubelet may be silent before its node counts as leaving: a restart takes
/// some of them.
const SILENT_S: f64 = 60.0;

/// The condition of a pod that is about to be ended by a disruption.
const DISRUPTION: &str = "DisruptionTarget";

/// The reason for which a node leaves, with its beginning and its end, each if it is known.
#[derive(Debug, Clone)]
struct ExpectedDeparture {
    reason: DepartureReason,
    since: Option<f64>,
    /// The time at which the node is gone, in seconds since 1970.
    gone_at: Option<f64>,
    /// Seconds after which it is gone, from when it was first seen to leave.
    lasts_s: Option<f64>,
}

/// The worker pods that are about to leave, by name. Where nothing says when, a pod is assumed to be
/// gone after the time that nodes have to drain.
pub(crate) fn departures(
    situation: &Situation<'_>,
    config: &ClusterConfig,
) -> BTreeMap<String, Departure> {
    let (snapshot, now) = (situation.snapshot, situation.now);
    let nodes = snapshot.nodes.iter().flatten();
    let nodes = nodes.filter(|node| !node.is_open());
    let nodes = nodes.map(|node| (node.metadata.name.as_str(), node));
    let nodes: HashMap<&str, &KubeNode> = nodes.collect();
    let mut by_pod = BTreeMap::new();
    for pod in situation.own_pods {
        let is_ours = pod.role == PodRole::Worker
            && !pod.ended
            && config.number(pod.group).is_some()
            && !config.is_listed(pod.group, pod.name);
        if !is_ours {
            continue;
        }
        let node = pod.node.and_then(|node| nodes.get(node));
        let disrupted = || {
            let condition = pod.condition(DISRUPTION).filter(|one| one.is_true())?;
            Some(ExpectedDeparture {
                reason: DepartureReason::Disrupted(condition.reason.clone().unwrap_or_default()),
                since: None,
                gone_at: None,
                lasts_s: None,
            })
        };
        let by_node = node.and_then(|node| expected(node, pod, now));
        let Some(expected) = by_node.or_else(disrupted) else {
            continue;
        };
        let seen_at = snapshot.history.departing.get(pod.name).copied();
        // A taint has the clock of another machine, which may be ahead.
        let since = seen_at.or(expected.since).map(|since| since.min(now));
        let (since, is_new) = (since.unwrap_or(now), since.is_none());
        let killed_at = pod.killed_at();
        // The end of a pod that is deleted already is written in the pod itself.
        let gone_at = killed_at.or(expected.gone_at);
        let gone_at = gone_at.or(expected.lasts_s.map(|seconds| since + seconds));
        let departure = Departure {
            pod: pod.name.to_owned(),
            group: pod.group.to_owned(),
            reason: expected.reason,
            since,
            gone_at: gone_at.unwrap_or(since + situation.settings.drain_timeout_s),
            is_known: gone_at.is_some(),
            counts_from_now: is_new && killed_at.or(expected.gone_at).is_none(),
        };
        by_pod.insert(departure.pod.clone(), departure);
    }
    add_other_hosts(situation.own_pods, config, &mut by_pod);
    by_pod
}

/// True if somebody else deletes a pod that leaves, while KubeRay still counts it: KubeRay makes a pod
/// in its place once it is gone, or before, if `replicas` is one more. (KubeRay,
/// `raycluster_controller.go`, `reconcilePods`.) Replicas of several hosts are counted as wholes.
pub(crate) fn is_evicted(
    departures: &BTreeMap<String, Departure>,
    config: &ClusterConfig,
    pod: &Pod<'_>,
) -> bool {
    let group = config.group(pod.group);
    pod.role == PodRole::Worker
        && pod.deleting
        && !pod.ended
        && group.is_some_and(|group| group.hosts <= 1)
        && departures.contains_key(pod.name)
}

/// Adds the other hosts of multi-host replicas of which a host leaves.
fn add_other_hosts(
    own_pods: &[Pod<'_>],
    config: &ClusterConfig,
    by_pod: &mut BTreeMap<String, Departure>,
) {
    let is_slice = |pod: &&Pod<'_>| {
        let group = config.group(pod.group);
        group.is_some_and(|group| group.hosts > 1) && pod.role == PodRole::Worker && !pod.ended
    };
    let hosts = || own_pods.iter().filter(is_slice);
    let mut first: HashMap<(&str, &str), Departure> = HashMap::default();
    for pod in hosts() {
        if let Some((replica, departure)) = pod.replica.zip(by_pod.get(pod.name)) {
            let earliest = first
                .entry((pod.group, replica))
                .or_insert_with(|| departure.clone());
            if departure.gone_at < earliest.gone_at {
                earliest.clone_from(departure);
            }
        }
    }
    // The rest of a replica is of no use, and KubeRay deletes the whole of it.
    for pod in hosts().filter(|pod| !pod.deleting) {
        let of_replica = pod
            .replica
            .and_then(|replica| first.get(&(pod.group, replica)));
        if let Some(departure) = of_replica.filter(|_| !by_pod.contains_key(pod.name)) {
            let pod = pod.name.to_owned();
            let departure = departure.clone();
            by_pod.insert(pod.clone(), Departure { pod, ..departure });
        }
    }
}

/// The departure that the node of a pod announces for the pod.
fn expected(node: &KubeNode, pod: &Pod<'_>, now: f64) -> Option<ExpectedDeparture> {
    // A pod may be left on a node that goes because nothing there keeps it off, so that a pod made in
    // its place would come back again and again: one that only starts there, or that was made when the
    // node was being deleted already. Work that was there before is to end in time.
    let times = node.deleted_at().zip(pod.created());
    let is_later = times.is_some_and(|(deleted, created)| created > deleted);
    let is_open = || !node.spec.unschedulable || pod.toleration(&Taint::cordon()).is_some();
    let tolerates_all = || {
        node.spec
            .taints
            .iter()
            .all(|taint| pod.toleration(taint).is_some())
    };
    if (pod.phase == Some("Pending") || is_later) && is_open() && tolerates_all() {
        return None;
    }
    let taints = node.spec.taints.iter();
    let taints = taints.filter_map(|taint| by_taint(node, taint, pod, now));
    // The taint that says the most: with a time, or at least with its own reason.
    let best = taints.max_by_key(|departure| {
        let is_timed = departure.gone_at.or(departure.lasts_s).is_some();
        let is_plain = matches!(departure.reason, DepartureReason::NodeCordoned(_));
        (is_timed, !is_plain)
    });
    let name = &node.metadata.name;
    let reason = if node.metadata.deletion_timestamp.is_some() {
        DepartureReason::NodeDeleted(name.clone())
    } else if node.spec.unschedulable && !pod.stays_beside(&Taint::cordon()) {
        DepartureReason::NodeCordoned(node.metadata.name.clone())
    } else {
        return best;
    };
    let without_time = ExpectedDeparture {
        reason,
        since: None,
        gone_at: None,
        lasts_s: None,
    };
    Some(best.unwrap_or(without_time))
}

fn by_taint(node: &KubeNode, taint: &Taint, pod: &Pod<'_>, now: f64) -> Option<ExpectedDeparture> {
    let tainted = || DepartureReason::NodeTainted {
        node: node.metadata.name.clone(),
        key: taint.key.clone(),
    };
    let since = taint.added();
    match (taint.meaning()?, since) {
        // Nobody evicts the pod for such a taint, and the scheduler would put the pod in its place
        // there again. Where somebody does evict it, the pod says so.
        (TaintMeaning::Leaves(None), _) if pod.stays_beside(taint) => None,
        (TaintMeaning::Leaves(seconds), since) => Some(ExpectedDeparture {
            reason: if taint.key == CORDON {
                DepartureReason::NodeCordoned(node.metadata.name.clone())
            } else {
                tainted()
            },
            since,
            gone_at: None,
            lasts_s: seconds.map(f64::from),
        }),
        (TaintMeaning::Unreachable, Some(since))
            // The taint of the same key with the effect NoSchedule evicts nobody.
            if taint.effect == "NoExecute" && now - since >= SILENT_S =>
        {
            // Seconds for which the pod stays although its kubelet does not answer. The toleration that
            // admission writes into every pod is not kept.
            let tolerated = match pod.toleration(taint) {
                Some(toleration) => toleration.toleration_seconds?,
                None => UNANSWERED_S,
            };
            #[expect(clippy::cast_precision_loss, reason = "seconds")]
            let tolerated = tolerated.clamp(0, u32::MAX.into()) as f64;
            Some(ExpectedDeparture {
                reason: tainted(),
                since: Some(since),
                gone_at: Some(since + tolerated),
                lasts_s: None,
            })
        }
        (TaintMeaning::Unreachable | TaintMeaning::Short, _) => None,
    }
}

/// Departures that have been announced to Ray nodes that are about to leave.
pub(crate) fn announcements(
    previous: &History,
    departures: &BTreeMap<String, Departure>,
    plan: &Plan,
) -> BTreeMap<String, ToldDeparture> {
    let announced = previous.told.iter();
    let announced = announced.filter(|(pod, _)| departures.contains_key(*pod));
    let mut told: BTreeMap<String, ToldDeparture> = announced
        .map(|(pod, departure)| (pod.clone(), *departure))
        .collect();
    for drain in &plan.drains {
        if drain.cause == RemovalCause::NodeLeaves
            && let Some(departure) = &drain.departure
        {
            let departure = ToldDeparture {
                gone_at: departure.gone_at,
                is_known: departure.is_known,
            };
            told.insert(drain.pod.clone(), departure);
        }
    }
    told
}
