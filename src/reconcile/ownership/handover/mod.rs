//! Whose turn it is: two scalers never write at the same time.
//!
//! The mode says who should scale; the annotation [`RECORD`] on the same RayCluster says who
//! does. The rules:
//!
//! 1. Who is to scale and is not in the record puts itself there by a patch that tests the
//!    object's `resourceVersion`. If the record says `nobody`, it was handed over, and that is
//!    all; likewise if nothing is recorded of a cluster that never had a head. Otherwise it first
//!    writes that it is taking over, and completes that when it has seen this very entry for
//!    [`GRACE_S`]. So does each new sidecar, whose head is there before it: from the objects alone
//!    it cannot tell a cluster that nobody has scaled from one whose record was lost.
//! 2. Effects on pods and Ray nodes are sent only on the strength of a read of the RayCluster
//!    (a GET, or an accepted patch of ours; a sidecar also reads its own pod) that began less than
//!    [`PERMIT_S`] ago and by which [`Handover::turn`] said [`HandoverStep::Act`]; they must be over by
//!    then. Patches of the RayCluster need no such read, because they test its version.
//! 3. Who is in the record and is not to scale any more lets its effects end, then writes
//!    `nobody`. A process that was not itself in the record for [`PERMIT_S`] waits for that
//!    first: effects of one that was killed may still be under way. Who was only about to take
//!    over writes nothing: it does not know whether the one before has fallen silent.
//!
//! So whoever was in the record is silent [`PERMIT_S`] after it was taken out, even if it is cut
//! off and cannot say so, and the next begins later than that. No clocks are compared.

use json_patch::Patch;
use serde_json::Value;

use crate::ray::{Kind, RayObject, text_at};
use crate::reconcile::effects::replicas::annotate;
use crate::reconcile::ownership::eligibility::{Eligibility, ScalerRole, is_of_mode};

pub use crate::ray::reconcile::RECORD;

/// For how long a read of the RayCluster permits effects, in seconds, from the moment it was
/// asked for to the end of the last effect.
pub const PERMIT_S: f64 = 5.0;

/// For how long a scaler that was not handed the cluster waits, in seconds; more than
/// [`PERMIT_S`].
pub const GRACE_S: f64 = 6.0;

const NOBODY: &str = "nobody";
const CENTRAL: &str = "central";
const SIDECAR: &str = "sidecar/";
const TAKING: &str = "taking/";

/// Who scales, as the object says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OwnershipRecord {
    /// Nothing is said.
    Absent,
    /// It was handed over.
    Nobody,
    /// Somebody.
    Held(ScalerRole),
    /// Somebody is about to.
    Taking {
        /// Who.
        role: ScalerRole,
        /// The object's version when that was written: no two entries are alike.
        version: String,
    },
    /// Something that is none of these.
    Unknown(String),
}

/// What one remembers to know whose turn it is. A new one is always safe.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Handover {
    /// The entry by which we are taking over, and when it was first seen, in the clock of `now`.
    taking: Option<(String, f64)>,
    /// Since when the record has named us, in the clock of `now`.
    held_since: Option<f64>,
}

/// What to do.
#[derive(Debug, Clone, PartialEq)]
pub enum HandoverStep {
    /// Scale.
    Act,
    /// Send this patch of the RayCluster; act once it was accepted and read back.
    Claim(Patch),
    /// Wait.
    Wait {
        /// Until then, in the clock of `now`.
        until: f64,
        /// Why.
        why: String,
    },
    /// Once no effect of ours is under way, send this patch of the RayCluster.
    Release(Patch),
    /// Nothing.
    Rest,
}

impl OwnershipRecord {
    /// What the object says.
    pub fn of(object: &RayObject<'_>) -> Self {
        let Some(text) = object.annotation(RECORD) else {
            return Self::Absent;
        };
        let unknown = || Self::Unknown(text.to_owned());
        if text == NOBODY {
            return Self::Nobody;
        }
        let Some((version, role)) = text.strip_prefix(TAKING).and_then(|of| of.split_once('/'))
        else {
            return ScalerRole::read(text).map_or_else(unknown, Self::Held);
        };
        let version = version.to_owned();
        ScalerRole::read(role).map_or_else(unknown, |role| Self::Taking { role, version })
    }
}

impl ScalerRole {
    fn read(text: &str) -> Option<Self> {
        match text.strip_prefix(SIDECAR) {
            Some(uid) => Some(Self::Sidecar {
                head_uid: uid.to_owned(),
            }),
            None => (text == CENTRAL).then_some(Self::Central),
        }
    }

    fn recorded(&self) -> String {
        match self {
            Self::Central => CENTRAL.to_owned(),
            Self::Sidecar { head_uid } => format!("{SIDECAR}{head_uid}"),
        }
    }
}

impl Handover {
    /// What `role` does about `cluster`, as just read. `now` is in seconds of any clock that only
    /// goes forward.
    pub fn turn(
        &mut self,
        cluster: &Value,
        standing: &Eligibility,
        role: &ScalerRole,
        now: f64,
    ) -> HandoverStep {
        let Some(root) = cluster.as_object() else {
            return HandoverStep::Rest;
        };
        let object = RayObject::of_kind(Kind::RayCluster, root);
        let record = OwnershipRecord::of(&object);
        let seen = self.seen(&record, role, now);
        let held = self.held(&record, role, now);
        let write = |text: &str| annotate(cluster, RECORD, text);
        if !is_of_mode(object.reconcile_mode(), role) {
            return match held {
                Some(since) if !object.is_deleting() => release(since, now, write(NOBODY)),
                _ => HandoverStep::Rest,
            };
        }
        if *standing != Eligibility::Ours {
            return HandoverStep::Rest;
        }
        let own = role.recorded();
        let claim = match (&record, seen) {
            _ if held.is_some() => return HandoverStep::Act,
            (_, Some(seen)) if now < seen + GRACE_S => {
                return HandoverStep::Wait {
                    until: seen + GRACE_S,
                    why: format!(
                        "whoever may have scaled this cluster before has {GRACE_S} s to fall silent"
                    ),
                };
            }
            (OwnershipRecord::Nobody, _) | (_, Some(_)) => write(&own),
            (OwnershipRecord::Absent, None) if is_new(cluster) => write(&own),
            _ => {
                let version = object
                    .metadata()
                    .and_then(|of| text_at(of, "resourceVersion"));
                version.and_then(|version| write(&format!("{TAKING}{version}/{own}")))
            }
        };
        claim.map_or(HandoverStep::Rest, HandoverStep::Claim)
    }

    /// Since when the record has named us, if it does.
    fn held(&mut self, record: &OwnershipRecord, role: &ScalerRole, now: f64) -> Option<f64> {
        self.held_since = match record {
            OwnershipRecord::Held(by) if by == role => Some(self.held_since.unwrap_or(now)),
            _ => None,
        };
        self.held_since
    }

    /// When the entry by which we are taking over was first seen, if there is one.
    fn seen(&mut self, record: &OwnershipRecord, role: &ScalerRole, now: f64) -> Option<f64> {
        let version = match record {
            OwnershipRecord::Taking { role: by, version } if by == role => version,
            _ => {
                self.taking = None;
                return None;
            }
        };
        let known = self.taking.take().filter(|(known, _)| known == version);
        let entry = known.unwrap_or_else(|| (version.clone(), now));
        let since = entry.1;
        self.taking = Some(entry);
        Some(since)
    }
}

/// It never had a head, so nobody ever talked to its Ray and nothing can be under way.
fn is_new(cluster: &Value) -> bool {
    let head = cluster.pointer("/status/head/podIP");
    head.and_then(Value::as_str).is_none_or(str::is_empty)
}

fn release(held_since: f64, now: f64, patch: Option<Patch>) -> HandoverStep {
    let until = held_since + PERMIT_S;
    if now < until {
        let why = format!("effects of a process that was killed have {PERMIT_S} s to end");
        return HandoverStep::Wait { until, why };
    }
    patch.map_or(HandoverStep::Rest, HandoverStep::Release)
}

#[cfg(test)]
mod interleavings;
