//! Whether a cluster is ours to scale, by what was last seen of it.

use std::sync::Arc;

use serde_json::Value;

use crate::controller::observe::{Key, Observed};
use crate::reconcile::{Eligibility, ScalerRole, standing};
use crate::snapshot::OwnPods;

/// Tells Rayfit's images from others.
pub type IsOurs = Arc<dyn Fn(&str) -> bool + Send + Sync>;

/// Judges one cluster.
#[derive(Clone)]
pub struct EligibilityCheck {
    /// The cluster.
    pub key: Key,
    /// As what we scale.
    pub role: ScalerRole,
    /// Rayfit's images.
    pub is_ours: IsOurs,
    /// What was seen.
    pub observed: Observed,
}

impl EligibilityCheck {
    /// Whether `cluster` is ours to scale, given the pods that were seen of it.
    pub fn standing(&self, cluster: &Value, pods: &OwnPods) -> Eligibility {
        standing(cluster, pods, &self.role, |image| (self.is_ours)(image))
    }

    /// Takes in a RayCluster that was read or patched: it may be newer than what the watch told.
    pub fn learn(&self, cluster: &Value) {
        self.observed.learn(cluster);
    }
}

/// Images of Rayfit: the one that admission puts into clusters, whatever its tag, and any whose
/// last part is `rayfit`.
pub fn images(configured: &str) -> IsOurs {
    let ours = repository(configured).to_owned();
    Arc::new(move |image| {
        let repository = repository(image);
        repository == ours || repository.rsplit('/').next() == Some("rayfit")
    })
}

/// An image without its digest and tag.
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
    fn images_of_rayfit_are_told_from_others() {
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
