//! Slices of Google TPUs on GKE, and the resource that marks their first host.
//!
//! (Ray, `autoscaler/_private/kuberay/utils.py`, `tpu_node_selectors_to_type`.)

use super::amounts::ResourceError;
use crate::ray::Group;
use crate::ray::start_params::python_int;

/// The node selector of a slice's topology.
pub const TOPOLOGY: &str = "cloud.google.com/gke-tpu-topology";

/// The resource of a slice's first host, such as `TPU-v4-16-head`, from the node selectors of the
/// group's pods. `None` if one of the two selectors is missing, or names a TPU that Ray does not
/// know.
pub fn head_resource(group: &Group<'_>) -> Result<Option<String>, ResourceError> {
    let (topology, accelerator) = selectors(group);
    match generation(accelerator) {
        Some((name, per_chip)) if !topology.is_empty() => chips(topology)
            .and_then(|chips| chips.checked_mul(per_chip))
            .map(|cores| Some(format!("TPU-{name}-{cores}-head")))
            .ok_or_else(|| ResourceError::Topology(topology.to_owned())),
        _ => Ok(None),
    }
}

/// A slice that the group's pods ask for: how many chips it has, and how many chips the largest host
/// of its kind has. `None` under the conditions of [`head_resource`], and for a bad topology.
pub fn slice(group: &Group<'_>) -> Option<(i64, i64)> {
    let (topology, accelerator) = selectors(group);
    let largest_host = match generation(accelerator)?.0 {
        "v5litepod" | "v6e" => 8,
        _ => 4,
    };
    Some((chips(topology)?, largest_host))
}

fn selectors<'a>(group: &Group<'a>) -> (&'a str, &'a str) {
    let selectors = group.pod_spec.unwrap_or_default().below("nodeSelector");
    let selector = |name| selectors.text(name).unwrap_or("");
    (
        selector(TOPOLOGY),
        selector("cloud.google.com/gke-tpu-accelerator"),
    )
}

fn chips(topology: &str) -> Option<i64> {
    topology
        .trim()
        .to_lowercase()
        .split('x')
        .try_fold(1_i64, |chips, side| chips.checked_mul(python_int(side)?))
}

/// Ray's name of a GKE TPU type, and its cores per chip.
fn generation(accelerator: &str) -> Option<(&'static str, i64)> {
    Some(match accelerator {
        "tpu-v4-podslice" => ("v4", 2),
        "tpu-v5-lite-device" | "tpu-v5-lite-podslice" => ("v5litepod", 1),
        "tpu-v5p-slice" => ("v5p", 2),
        "tpu-v6e-slice" => ("v6e", 1),
        "tpu7x" => ("v7x", 2),
        _ => return None,
    })
}
