//! Drains of Ray nodes: the kind of drain that a planned removal becomes.

use crate::plan::{self, RemovalCause};
use crate::reconcile::effects::effect::{Drain, DrainKind};
use crate::seconds::milliseconds;
use crate::snapshot::moment;

/// The drain request for a planned removal. An idle Ray node is drained at once, unless its raylet
/// finds that it has work by now. A Ray node that has to go because of a maximum or a removed group
/// takes no new work and goes when it has none left; where its time to do so is limited, it is told
/// by when, and stopped once that has come. Its pod is deleted in a later round, once Ray has
/// stopped in it. `now` is in seconds since 1970.
pub(crate) fn of(planned: &plan::NodeDrain, now: f64) -> Result<Drain, crate::text::Misread> {
    let idle = |why: String| (why, DrainKind::Idle, String::new());
    // A time by which the node has to be gone counts for these, if there is one.
    let bounded = |why: &str| {
        let (kind, limit) = match planned.stop_at {
            None => (DrainKind::WhenDone, String::new()),
            Some(at) if at <= now => (DrainKind::Stop, "; its time is over".to_owned()),
            Some(at) => {
                let limit = format!("; it is stopped at {} if it still has work", moment(at));
                (DrainKind::Until(milliseconds(at)), limit)
            }
        };
        (why.to_owned(), kind, limit)
    };
    let (why, kind, limit) = match planned.cause {
        RemovalCause::Idle | RemovalCause::Stopped | RemovalCause::Unschedulable => {
            idle(format!("idle for {} seconds", planned.idle_ms / 1000))
        }
        RemovalCause::Scattered
        | RemovalCause::NotAdmitted
        | RemovalCause::MadeTooLarge
        | RemovalCause::NeverJoined => idle(planned.cause.to_string()),
        RemovalCause::GivesWay => idle("other demand needs its room".to_owned()),
        RemovalCause::GroupMax => bounded("its group has more nodes than its maximum"),
        RemovalCause::ClusterMax => bounded("the cluster has more nodes than its maximum"),
        RemovalCause::GroupGone => bounded("its group is no longer in the RayCluster"),
        RemovalCause::StopRequested => bounded("it is to leave"),
        RemovalCause::NodeLeaves => {
            if let Some(departure) = &planned.departure {
                // The work that is left ends when the node is taken away.
                let at = departure.gone_at.max(now);
                let sure = if departure.is_known { "is" } else { "may be" };
                let limit = format!("; it {sure} gone at {}", moment(at));
                let why = departure.reason.to_string();
                (why, DrainKind::Until(milliseconds(at)), limit)
            } else {
                let why = planned.cause.to_string();
                (why, DrainKind::WhenDone, String::new())
            }
        }
    };
    Ok(Drain {
        pod: planned.pod.clone(),
        node_id: planned.node_id.parse()?,
        kind,
        group: planned.group.clone(),
        cause: planned.cause,
        message: format!("Rayfit: {why}{limit}"),
    })
}

#[cfg(test)]
mod tests {
    use crate::plan::NodeDrain;
    use crate::reconcile::effects::drain::*;

    #[test]
    fn what_is_above_a_maximum_drains_until_its_time_is_over() {
        let kind = |cause, stop_at| {
            let planned = NodeDrain {
                pod: "w".to_owned(),
                group: "cpu".to_owned(),
                node_id: "ab".repeat(28),
                cause,
                idle_ms: 0,
                stop_at,
                departure: None,
            };
            let drain = of(&planned, 1000.0).unwrap();
            (drain.kind, drain.message)
        };
        let (until, message) = kind(RemovalCause::GroupMax, Some(1600.0));
        assert_eq!(until, DrainKind::Until(1_600_000));
        assert_eq!(
            message,
            "Rayfit: its group has more nodes than its maximum; it is stopped at \
             1970-01-01T00:26:40Z if it still has work"
        );
        let over = kind(RemovalCause::GroupMax, Some(1000.0)).0;
        assert_eq!(over, DrainKind::Stop);
        assert_eq!(kind(RemovalCause::GroupGone, None).0, DrainKind::WhenDone);
        assert_eq!(kind(RemovalCause::Idle, None).0, DrainKind::Idle);
    }

    #[test]
    fn what_leaves_with_its_kubernetes_node_is_told_when_and_never_stopped_here() {
        let drain = |gone_at| {
            let planned = NodeDrain {
                pod: "w".to_owned(),
                group: "cpu".to_owned(),
                node_id: "ab".repeat(28),
                cause: RemovalCause::NodeLeaves,
                idle_ms: 0,
                stop_at: None,
                departure: Some(plan::Departure {
                    pod: "w".to_owned(),
                    group: "cpu".to_owned(),
                    reason: plan::DepartureReason::NodeCordoned("n".to_owned()),
                    since: 900.0,
                    gone_at,
                    is_known: false,
                    counts_from_now: false,
                }),
            };
            of(&planned, 1000.0).unwrap()
        };
        assert_eq!(drain(1600.0).kind, DrainKind::Until(1_600_000));
        assert_eq!(
            drain(1600.0).message,
            "Rayfit: Kubernetes node n is cordoned; it may be gone at 1970-01-01T00:26:40Z"
        );
        assert_eq!(drain(950.0).kind, DrainKind::Until(1_000_000));
    }
}
