//! The roles in which a process scales, and the record of who scales a cluster.

use crate::ray::label::is_dns_label;
use crate::ray::reconcile::RECORD;
use crate::ray::{RayObject, ReconcileMode};

/// The word in the record for a cluster that nobody scales.
pub const NOBODY: &str = "nobody";
pub(super) const TAKING: &str = "taking/";
const CENTRAL: &str = "central/";
const SIDECAR: &str = "sidecar/";

/// The role in which this process scales.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum ScalerRole {
    /// As the central controller, outside the clusters, for many of them.
    Central {
        /// The installation that the controller belongs to, by the namespace of its Lease. Of its
        /// replicas one leads; another installation knows nothing of that.
        installation: String,
    },
    /// As the sidecar in the head pod, for this cluster only.
    Sidecar {
        /// The uid of the head pod that the sidecar runs in.
        head_uid: String,
    },
}

/// The hand-over record: which autoscaler owns the cluster, as the RayCluster says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HandoverRecord {
    /// There is no record.
    Absent,
    /// The last owner has handed the cluster over.
    Nobody,
    /// An autoscaler owns the cluster.
    Held(ScalerRole),
    /// An autoscaler is about to take the cluster over.
    Taking {
        /// The autoscaler that takes over.
        role: ScalerRole,
        /// The object's version when the entry was written, so that no two entries are the same.
        version: String,
    },
    /// A text that is none of these.
    Unknown(String),
}

impl HandoverRecord {
    /// Reads the record of a RayCluster.
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
    /// The central controller of the installation in this namespace.
    pub fn central(installation: &str) -> Self {
        Self::Central {
            installation: installation.to_owned(),
        }
    }

    /// Returns whether the mode annotation, taken alone, names this role.
    pub(super) fn is_of_mode(&self, mode: ReconcileMode) -> bool {
        match self {
            Self::Central { .. } => mode == ReconcileMode::Central,
            Self::Sidecar { .. } => mode == ReconcileMode::Sidecar,
        }
    }

    fn read(text: &str) -> Option<Self> {
        if let Some(uid) = text.strip_prefix(SIDECAR) {
            return Some(Self::Sidecar {
                head_uid: uid.to_owned(),
            });
        }
        let installation = text.strip_prefix(CENTRAL)?;
        is_dns_label(installation).then(|| Self::central(installation))
    }

    /// The role as the record has it.
    pub fn recorded(&self) -> String {
        match self {
            Self::Central { installation } => format!("{CENTRAL}{installation}"),
            Self::Sidecar { head_uid } => format!("{SIDECAR}{head_uid}"),
        }
    }
}
