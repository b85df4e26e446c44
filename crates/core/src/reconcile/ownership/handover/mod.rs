//! Ownership hand-over: no two autoscalers ever write to a cluster at the same time.
//!
//! The mode says which autoscaler should own the cluster; the annotation [`RECORD`] on the same
//! RayCluster says which one does. The rules:
//!
//! 1. An autoscaler that should own the cluster and is not in the record enters itself by a patch
//!    that tests the object's `resourceVersion`. If the record says `nobody`, the cluster was
//!    handed over, and that patch is enough; likewise if there is no record on a cluster that never
//!    had a head. Otherwise the autoscaler first writes that it is taking over, and completes that
//!    when it has seen this very entry for [`GRACE_S`]. A new sidecar always has to do so, because
//!    its head exists before it: from the objects alone it cannot tell a cluster that nobody has
//!    scaled from one whose record was lost.
//! 2. Effects on pods and Ray nodes need a recent read of the RayCluster (a GET, or an accepted
//!    patch of our own; a sidecar also reads its own pod). The read must have begun less than
//!    [`PERMISSION_S`] ago, [`Handover::step`] must have answered [`HandoverStep::Act`] to it, and the
//!    effects must be over before [`PERMISSION_S`] has passed. Patches of the RayCluster need no such
//!    read, because they test this record.
//! 3. An owner that should own the cluster no longer lets its effects end, and then writes
//!    `nobody`. A process that has not seen itself in the record for [`PERMISSION_S`] waits for that
//!    time first, because effects of a killed predecessor may still be under way. An autoscaler
//!    that was only about to take over writes nothing, because it does not know whether the
//!    previous owner's effects have ended.
//!
//! So an owner that is taken out of the record sends nothing any more [`PERMISSION_S`] later, even if
//! it is cut off and cannot say so, and the next owner begins later than that. The clocks of two
//! machines are never compared.

use json_patch::Patch;
use serde_json::Value;

use crate::ray::{Kind, RayObject};
use crate::reconcile::effects::replicas::annotate;
use crate::reconcile::ownership::record::{HandoverRecord, NOBODY, ScalerRole, TAKING};

pub use crate::ray::reconcile::RECORD;

/// Seconds for which a read of the RayCluster permits effects, counted from the moment at which
/// the read was requested to the end of the last effect.
pub const PERMISSION_S: f64 = 5.0;

/// Seconds for which an autoscaler waits that was not handed the cluster; more than [`PERMISSION_S`].
pub const GRACE_S: f64 = 6.0;

/// A process's memory of whether it owns a cluster. Starting from an empty one is always safe.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Handover {
    /// The entry by which this process is taking over, and when it was first seen, by the clock of
    /// `now`.
    taking: Option<(String, f64)>,
    /// The time since which the record has named this process, by the clock of `now`.
    held_since: Option<f64>,
}

/// The next step of the hand-over.
#[derive(Debug, Clone, PartialEq)]
pub enum HandoverStep {
    /// Scale the cluster.
    Act,
    /// Send this patch of the RayCluster; scale once it has been accepted and read back.
    Claim(Patch),
    /// Wait.
    Wait {
        /// The end of the wait, by the clock of `now`.
        until: f64,
        /// The reason for the wait.
        why: String,
    },
    /// Once no effect of ours is under way, send this patch of the RayCluster.
    Release(Patch),
    /// Do nothing.
    Rest,
}

impl Handover {
    /// The step that `role` takes for `cluster`, as it was just read. `now` is in seconds of any
    /// clock that only goes forward.
    pub fn step(
        &mut self,
        cluster: &Value,
        is_eligible: bool,
        role: &ScalerRole,
        now: f64,
    ) -> HandoverStep {
        let Some(root) = cluster.as_object() else {
            return HandoverStep::Rest;
        };
        let object = RayObject::of_kind(Kind::RayCluster, root);
        let record = HandoverRecord::of(&object);
        // Both are brought up to date at every step, whichever decides: their times count from when a
        // record was first seen.
        let entry_since = self.entry_since(&record, role, now);
        self.held_since = match &record {
            HandoverRecord::Held(by) if by == role => Some(self.held_since.unwrap_or(now)),
            _ => None,
        };
        let held_since = self.held_since;
        let write = |text: &str| annotate(cluster, RECORD, text);
        let mode = object.reconcile_mode();
        if !role.is_of_mode(mode) {
            let held_since = held_since.filter(|_| !object.is_deleting());
            return held_since.map_or(HandoverStep::Rest, |since| release(cluster, since, now));
        }
        if !is_eligible {
            return HandoverStep::Rest;
        }
        let own = role.recorded();
        let address = cluster
            .pointer("/status/head/podIP")
            .and_then(Value::as_str);
        let has_head = address.is_some_and(|address| !address.is_empty());
        let claim = match (&record, entry_since) {
            _ if held_since.is_some() => return HandoverStep::Act,
            (_, Some(entry_since)) if now < entry_since + GRACE_S => {
                return HandoverStep::Wait {
                    until: entry_since + GRACE_S,
                    why: format!(
                        "an autoscaler that may have scaled this cluster before has {GRACE_S} s to end its requests"
                    ),
                };
            }
            (HandoverRecord::Nobody, _) | (_, Some(_)) => write(&own),
            // The cluster never had a head, so that no process ever called its GCS and no effects can be under way.
            (HandoverRecord::Absent, None) if !has_head => write(&own),
            _ => {
                let version = object.metadata().and_then(|of| of.text("resourceVersion"));
                version.and_then(|version| write(&format!("{TAKING}{version}/{own}")))
            }
        };
        claim.map_or(HandoverStep::Rest, HandoverStep::Claim)
    }

    /// The time at which the entry of this process was first seen, if it is taking over.
    fn entry_since(&mut self, record: &HandoverRecord, role: &ScalerRole, now: f64) -> Option<f64> {
        let version = match record {
            HandoverRecord::Taking { role: by, version } if by == role => version,
            _ => {
                self.taking = None;
                return None;
            }
        };
        let previous = self.taking.take().filter(|(earlier, _)| earlier == version);
        let entry = previous.unwrap_or_else(|| (version.clone(), now));
        let since = entry.1;
        self.taking = Some(entry);
        Some(since)
    }
}

/// The step of a scaler that has held a cluster since then, and is not to scale it any more.
fn release(cluster: &Value, since: f64, now: f64) -> HandoverStep {
    let until = since + PERMISSION_S;
    if now < until {
        let why = format!("effects of a process that was killed have {PERMISSION_S} s to end");
        return HandoverStep::Wait { until, why };
    }
    let record = annotate(cluster, RECORD, NOBODY);
    record.map_or(HandoverStep::Rest, HandoverStep::Release)
}

#[cfg(test)]
mod interleavings;
