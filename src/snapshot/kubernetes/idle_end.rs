//! The end of a cluster that nobody uses, by its object.

use serde_json::{Number, Value};

use crate::ray::{Fields, list_at, object_at, text_at};

/// The finalizer that is put on a RayCluster before it is deleted because nobody uses it, so that
/// KubeRay can clean up. (Ray, `cloud_provider.py`, `IDLE_TERMINATION_CLEANUP_FINALIZER`.)
pub const CLEANUP_FINALIZER: &str = "ray.io/idle-termination-cleanup-finalizer";

/// The end of a cluster when nobody uses it (`idleTerminationOptions`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdleEnd {
    /// `timeoutSeconds`
    pub timeout: Number,
    /// `policy`; `Suspend` if it is absent.
    pub policy: String,
    /// Whether it is suspended already (`idleSuspend`).
    pub is_suspended: bool,
}

/// Whether a RayCluster has [`CLEANUP_FINALIZER`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CleanupFinalizer {
    /// It has no list of finalizers.
    #[default]
    NoList,
    /// It has other finalizers.
    Absent,
    /// It has it.
    Present,
}

impl IdleEnd {
    /// Without `timeoutSeconds` a cluster does not end. (Ray, `cloud_provider.py`,
    /// `_refresh_idle_termination_config`.)
    pub(super) fn of(spec: &Fields) -> Option<Self> {
        let options = object_at(spec, "idleTerminationOptions")?;
        Some(Self {
            timeout: options.get("timeoutSeconds")?.as_number()?.clone(),
            policy: text_at(options, "policy").unwrap_or("Suspend").to_owned(),
            is_suspended: spec.get("idleSuspend").and_then(Value::as_bool) == Some(true),
        })
    }
}

impl CleanupFinalizer {
    pub(super) fn of(metadata: &Fields) -> Self {
        if !metadata.get("finalizers").is_some_and(Value::is_array) {
            return Self::NoList;
        }
        let mut finalizers = list_at(metadata, "finalizers").iter();
        if finalizers.any(|one| one.as_str() == Some(CLEANUP_FINALIZER)) {
            Self::Present
        } else {
            Self::Absent
        }
    }
}
