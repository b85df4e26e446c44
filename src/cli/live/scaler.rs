//! Who scales a live cluster, because that decides what is known of it where it is scaled.

use crate::ray::reconcile::{RECORD, STANDBY};
use crate::ray::{RayObject, ReconcileMode};

/// Who scales a live cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LiveScaler {
    /// The central replicas; in mode `ray`, they would if they were asked to.
    Central,
    /// The container in the head pod, by the cluster's mode.
    Sidecar,
    /// The container in the head pod, in place of the central replicas.
    StandIn,
}

impl LiveScaler {
    /// Who scales a cluster, by its mode and the hand-over record.
    pub(crate) fn of(object: &RayObject<'_>) -> Self {
        let record = object.annotation(RECORD).unwrap_or_default();
        let stands_by = object.annotation(STANDBY).is_some();
        match object.reconcile_mode() {
            ReconcileMode::Sidecar => Self::Sidecar,
            ReconcileMode::Central if stands_by && record.starts_with("sidecar/") => Self::StandIn,
            ReconcileMode::Central | ReconcileMode::Ray => Self::Central,
        }
    }

    /// Whether it reads RayPolicies, Kubernetes nodes and Events. The account of a head pod may read the
    /// RayCluster and pods only.
    pub(crate) fn sees_all(self) -> bool {
        self == Self::Central
    }

    /// What is not known where the cluster is scaled, in words for people, if anything is.
    pub(crate) fn unseen(self) -> Option<&'static str> {
        let unseen = match self {
            Self::Central => return None,
            Self::Sidecar => {
                "the head's container scales it, by the annotation rayfit.dev/settings, because it may \
                 read neither RayPolicies nor Kubernetes nodes"
            }
            Self::StandIn => {
                "the head's container stands in, by the annotation rayfit.dev/settings, because it may \
                 read neither RayPolicies nor Kubernetes nodes"
            }
        };
        Some(unseen)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::ray::Kind;

    #[test]
    fn a_sidecar_scales_by_the_mode_or_stands_in() {
        let of = |annotations: Value| {
            let cluster = json!({"metadata": {"annotations": annotations}});
            let fields = cluster.as_object().unwrap();
            LiveScaler::of(&RayObject::of_kind(Kind::RayCluster, fields))
        };
        let central = |record: &str, standby: &str| {
            of(
                json!({"rayfit.dev/reconcile": "central", "rayfit.dev/scaled-by": record, standby: "ns"}),
            )
        };
        assert_eq!(of(json!({})), LiveScaler::Central);
        assert_eq!(
            of(json!({"rayfit.dev/reconcile": "sidecar"})),
            LiveScaler::Sidecar
        );
        let standby = "rayfit.dev/standby";
        assert_eq!(central("sidecar/1-2", standby), LiveScaler::StandIn);
        assert_eq!(central("central", standby), LiveScaler::Central);
        assert_eq!(central("sidecar/1-2", "none"), LiveScaler::Central);
        assert!(LiveScaler::StandIn.unseen().is_some() && !LiveScaler::StandIn.sees_all());
    }
}
