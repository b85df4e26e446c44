//! The scaler of a live cluster, which decides what is known of the cluster there.

use crate::ray::{RayObject, ReconcileMode};

/// The scaler of a live cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LiveScaler {
    /// The central replicas; in mode `ray`, they would if they were asked to.
    Central,
    /// The container in the head pod, by the cluster's mode.
    Sidecar,
}

impl LiveScaler {
    /// The scaler of a cluster, by its mode.
    pub(crate) fn of(object: &RayObject<'_>) -> Self {
        match object.reconcile_mode() {
            ReconcileMode::Sidecar => Self::Sidecar,
            ReconcileMode::Central | ReconcileMode::Ray => Self::Central,
        }
    }

    /// Whether it reads RayPolicies, Kubernetes nodes and Events. The account of a head pod may read the
    /// RayCluster and pods only.
    pub(crate) fn sees_all(self) -> bool {
        self == Self::Central
    }

    /// The limitation of the scaler's knowledge, in words for people, if there is one.
    pub(crate) fn unseen(self) -> Option<&'static str> {
        let unseen = match self {
            Self::Central => return None,
            Self::Sidecar => {
                "the head's container scales it, by the annotation rayfit.dev/settings, because it may \
                 read neither RayPolicies nor Kubernetes nodes"
            }
        };
        Some(unseen)
    }
}
