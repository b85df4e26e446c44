//! From nodes that are to be removed to drain requests.

use std::collections::BTreeMap;

use crate::hash::HashSet;
use crate::plan::decided::Decided;
use crate::plan::nodes::node::{Fate, PlannedNode};
use crate::plan::outcome::cause::RemovalCause;
use crate::plan::outcome::plan::NodeDrain;
use crate::plan::slices::departures::reason::Departure;
use crate::plan::slices::findings::Findings;
use crate::snapshot::gcs::NodeStatus;
use crate::snapshot::history::ToldDeparture;
use crate::snapshot::pod::Pod;

/// Minimum drift of the announced deadline, in seconds, before it is announced again.
const NOTABLY_S: f64 = 5.0;

/// The Ray nodes to drain, and those to stop because their time is over.
pub(crate) fn drains(decided: &Decided<'_>, findings: Option<&Findings<'_>>) -> Vec<NodeDrain> {
    let (state, now) = (&decided.state, decided.situation.now);
    let remembered = &decided.situation.history().excess;
    let stop_at = |pod: &str, cause| match cause {
        // Ray stops what is above a maximum together with its work.
        RemovalCause::GroupMax | RemovalCause::ClusterMax if findings.is_none() => Some(now),
        RemovalCause::GroupMax => {
            let since = remembered.get(pod).map_or(now, |one| one.since);
            // The clock may have been set back, and would let the node stay for as much longer.
            Some(since.min(now) + decided.situation.settings.drain_timeout_s)
        }
        _ => None,
    };
    let drain = |node: &PlannedNode| {
        let Fate::Remove(cause) = node.fate else {
            return None;
        };
        let pod = node.pod()?;
        Some(NodeDrain {
            pod: pod.to_owned(),
            group: state.group_name(node).to_owned(),
            node_id: node.ray_id()?.to_owned(),
            cause,
            idle_ms: node.idle_ms,
            stop_at: stop_at(pod, cause),
            departure: findings.and_then(|findings| findings.departures.get(pod).cloned()),
        })
    };
    let overdue = findings.iter().flat_map(|findings| &findings.excess);
    let overdue = overdue.filter(|node| node.is_stopped(now));
    let stops = overdue.map(|excess| NodeDrain {
        pod: excess.node.pod.clone(),
        group: excess.node.group.clone(),
        node_id: excess.node_id.clone(),
        cause: RemovalCause::GroupMax,
        idle_ms: 0,
        stop_at: Some(excess.stop_at),
        departure: None,
    });
    let mut drains: Vec<NodeDrain> = state.in_order().filter_map(drain).chain(stops).collect();
    let drained: HashSet<&str> = drains.iter().map(|drain| drain.pod.as_str()).collect();
    let others = decided.situation.own_pods.iter();
    let others = others.filter(|pod| !drained.contains(pod.name));
    let untold = |pod| untold(decided, &findings?.departures, pod);
    let untold: Vec<NodeDrain> = others.filter_map(untold).collect();
    drains.extend(untold);
    drains
}

/// Drains the Ray node of a pod that leaves, if it has become known when it is gone and the Ray node was
/// told another time, or none: it drains already, or its pod is being deleted. A second request only
/// replaces the time of the first one. (Ray, `gcs_node_manager.cc`, `SetNodeDraining`, and
/// `local_resource_manager.cc`, `SetLocalNodeDraining`.)
fn untold(
    decided: &Decided<'_>,
    departures: &BTreeMap<String, Departure>,
    pod: &Pod<'_>,
) -> Option<NodeDrain> {
    let departure = departures.get(pod.name)?;
    let ray = decided.situation.live.get(pod.name)?;
    // All others have a node in the decision, which is drained as such.
    let has_left = pod.deleting || ray.status == NodeStatus::Draining;
    let is_news = is_news(departure, decided.situation.history().told.get(pod.name));
    (has_left && is_news).then(|| NodeDrain {
        pod: pod.name.to_owned(),
        group: pod.group.to_owned(),
        node_id: ray.node_id.clone(),
        cause: RemovalCause::NodeLeaves,
        idle_ms: ray.idle_duration_ms,
        stop_at: None,
        departure: Some(departure.clone()),
    })
}

/// True if a deadline is to be announced to a Ray node. A known time replaces an assumed one, and
/// only an earlier time replaces a known one.
fn is_news(departure: &Departure, told: Option<&ToldDeparture>) -> bool {
    let differs = |told: &ToldDeparture| {
        let earlier_s = told.gone_at - departure.gone_at;
        earlier_s >= NOTABLY_S || !told.is_known && earlier_s <= -NOTABLY_S
    };
    departure.is_known && told.is_none_or(differs)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::slices::departures::reason::DepartureReason;

    #[test]
    fn a_ray_node_is_told_again_what_it_does_not_know_and_no_more() {
        let departure = |gone_at, is_known| Departure {
            pod: "w".to_owned(),
            group: "cpu".to_owned(),
            reason: DepartureReason::NodeCordoned("n".to_owned()),
            since: 0.0,
            gone_at,
            is_known,
            counts_from_now: false,
        };
        let announced = |gone_at, is_known| Some(ToldDeparture { gone_at, is_known });
        let news = |gone_at, told: Option<ToldDeparture>| {
            is_news(&departure(gone_at, true), told.as_ref())
        };
        assert!(news(40.0, None));
        assert!(!is_news(&departure(40.0, false), None), "assumed");
        assert!(news(40.0, announced(600.0, false)));
        assert!(news(700.0, announced(600.0, false)), "it has more time");
        assert!(!news(599.0, announced(600.0, false)));
        assert!(news(40.0, announced(60.0, true)));
        assert!(!news(40.0, announced(41.0, true)));
        assert!(
            !news(700.0, announced(60.0, true)),
            "that would go on and on"
        );
    }
}
