//! Whose turn it is: two scalers never write at the same time.
//!
//! The mode says who should scale; the annotation [`RECORD`] on the same RayCluster says who
//! does. The rules:
//!
//! 1. Who is to scale and is not in the record puts itself there, by a patch that tests the
//!    object's `resourceVersion`. At once, if the record says `nobody` (it was handed over) or
//!    already names it; otherwise after it has seen for [`GRACE_S`] that the turn is its own.
//! 2. Effects on pods and Ray nodes are sent only on the strength of a read of the RayCluster
//!    (a GET, or an accepted patch of ours) that began less than [`PERMIT_S`] ago and showed both
//!    the mode and the record as one's own; they must be over by then. Patches of the RayCluster
//!    need no such read, because they test its version.
//! 3. Who is in the record and is not to scale any more lets its effects end, then writes
//!    `nobody`.
//!
//! So the one before is silent [`PERMIT_S`] after the mode changed at the latest, even if it is
//! cut off and cannot say so, and the next begins later than that. No clocks are compared.

use json_patch::Patch;
use serde_json::Value;

use super::standing::{Role, Standing};

/// The annotation that names the scaler: `central`, `sidecar/<uid of the head pod>` or `nobody`.
pub const RECORD: &str = "rayfit.dev/scaled-by";

/// For how long a read of the RayCluster permits effects, in seconds, from the moment it was
/// asked for to the end of the last effect.
pub const PERMIT_S: f64 = 5.0;

/// For how long a scaler that was not handed the cluster waits, in seconds.
pub const GRACE_S: f64 = 6.0;

/// Who scales, as the object says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Record {
    /// Nothing is said.
    Absent,
    /// It was handed over.
    Nobody,
    /// Somebody.
    Held(Role),
    /// Something that is none of these.
    Unknown(String),
}

/// What one remembers to know whose turn it is. A new one is always safe.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Tenure {
    /// Since when the turn has been ours without a break, in seconds since 1970 (or of any clock
    /// that only goes forward).
    ours_since: Option<f64>,
}

/// What to do.
#[derive(Debug, Clone, PartialEq)]
pub enum Turn {
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

impl Tenure {
    /// What `role` does about `cluster`, as just read.
    pub fn turn(&mut self, cluster: &Value, standing: &Standing, role: &Role, now: f64) -> Turn {
        let _ = (cluster, standing, role, now, self.ours_since);
        Turn::Rest
    }
}
