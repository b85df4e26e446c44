//! Whether this process may scale a cluster, judged by what was last observed of it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::Value;

use crate::controller::observe::{Key, Observed};
use crate::reconcile::ownership::eligibility::eligibility_on;
use crate::reconcile::{Eligibility, ScalerRole};
use crate::snapshot::OwnPods;

pub use crate::reconcile::ownership::eligibility::Duty;

/// Tells Rayfit's images from others.
pub type IsOurs = Arc<dyn Fn(&str) -> bool + Send + Sync>;

/// Whether a sidecar has to stand in for the central replicas, as it finds out while it scales.
#[derive(Debug, Clone, Default)]
pub struct StandIn {
    stands_in: Arc<AtomicBool>,
}

impl StandIn {
    /// Sets it; returns whether that is a change.
    pub fn set(&self, duty: Duty) -> bool {
        let stands_in = duty == Duty::StandIn;
        self.stands_in.swap(stands_in, Ordering::AcqRel) != stands_in
    }

    /// Which modes let the process scale the cluster.
    pub fn duty(&self) -> Duty {
        if self.stands_in.load(Ordering::Acquire) {
            Duty::StandIn
        } else {
            Duty::OwnMode
        }
    }

    /// Whether it has changed since `known`, which is updated.
    pub fn has_changed(&self, known: &mut Duty) -> bool {
        let before = std::mem::replace(known, self.duty());
        before != *known
    }
}

/// The eligibility check of one cluster.
#[derive(Clone)]
pub struct EligibilityCheck {
    /// The cluster's namespace and name.
    pub key: Key,
    /// The role in which this process scales.
    pub role: ScalerRole,
    /// Whether this process stands in for others.
    pub stand_in: StandIn,
    /// Tells Rayfit's images from others.
    pub is_ours: IsOurs,
    /// The objects as they were last observed.
    pub observed: Observed,
}

impl EligibilityCheck {
    /// Whether this process may scale `cluster`, given the pods that were observed.
    pub fn eligibility(&self, cluster: &Value, pods: &OwnPods) -> Eligibility {
        let (duty, is_ours) = (self.stand_in.duty(), &self.is_ours);
        eligibility_on(duty, cluster, pods, &self.role, |image| is_ours(image))
    }

    /// Takes in a RayCluster that was read or patched, since it may be newer than the watch's.
    pub fn learn(&self, cluster: &Value) {
        self.observed.learn(cluster);
    }
}

/// Recognises Rayfit's images: the image that admission puts into clusters, whatever its tag, and
/// any image whose last path segment is `rayfit`.
pub fn images(configured: &str) -> IsOurs {
    let ours = repository(configured).to_owned();
    Arc::new(move |image| {
        let repository = repository(image);
        repository == ours || repository.rsplit('/').next() == Some("rayfit")
    })
}

/// The image without its tag and digest.
fn repository(image: &str) -> &str {
    let name = image.split('@').next().unwrap_or(image);
    match name.rsplit_once(':') {
        // A colon before a slash belongs to the registry's port.
        Some((repository, tag)) if !tag.contains('/') => repository,
        _ => name,
    }
}

#[cfg(test)]
mod tests {
    use crate::controller::eligibility::*;

    #[test]
    fn images_of_rayfit_are_recognised() {
        let is_ours = images("registry.example:5000/team/scaler:1.2");
        for ours in [
            "registry.example:5000/team/scaler:1.3",
            "registry.example:5000/team/scaler@sha256:00",
            "rayfit:dev",
            "ghcr.io/x/rayfit",
        ] {
            assert!(is_ours(ours), "{ours}");
        }
        for other in [
            "rayproject/ray:2.60.0",
            "registry.example:5000/team/ray",
            "a/rayfit-ray:1",
            "",
        ] {
            assert!(!is_ours(other), "{other}");
        }
    }
}
