//! Eligibility of this process to scale a cluster, judged by what was last observed of it.

use std::sync::Arc;

use rayfit_core::reconcile::{Ineligible, ScalerRole, eligibility};
use rayfit_core::snapshot::OwnPods;
use serde_json::Value;

use crate::controller::observe::Observed;

/// The eligibility check, which is the same for all clusters that a process scales.
#[derive(Clone)]
pub struct EligibilityCheck {
    /// The role in which this process scales.
    pub role: ScalerRole,
    /// Rayfit's image, as admission puts it into clusters.
    pub image: Arc<str>,
    /// The objects as they were last observed.
    pub observed: Observed,
}

impl EligibilityCheck {
    /// Decides whether this process may scale `cluster`, given the pods that were observed.
    pub fn eligibility(&self, cluster: &Value, pods: &OwnPods) -> Result<(), Ineligible> {
        let is_ours = |image: &str| is_ours(&self.image, image);
        eligibility(cluster, pods, &self.role, is_ours)
    }
}

/// Recognises Rayfit's images: the configured one, whatever its tag, and any image whose last path segment is `rayfit`.
fn is_ours(configured: &str, image: &str) -> bool {
    let image = repository(image);
    image == repository(configured) || image.rsplit('/').next() == Some("rayfit")
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
        let is_ours = |image| is_ours("registry.example:5000/team/scaler:1.2", image);
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
