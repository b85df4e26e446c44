//! Raylets whose size differs from the size of their pods, or from what their template gives.

use crate::hash::HashMap;
use crate::plan::growth::pod_size;
use crate::plan::growth::resize::ResizeProgress;
use crate::plan::growth::size::counted;
use crate::plan::nodes::group::ClusterConfig;
use crate::plan::outcome::amounts::amount_text;
use crate::plan::outcome::problem::{COUNTED_UP_TO_TOTAL, Problem, ProblemPlace, ProblemReason};
use crate::plan::packing::state::DecisionState;
use crate::plan::situation::Situation;
use crate::snapshot::gcs::NodeState;
use crate::snapshot::group_spec::GroupSpec;
use crate::snapshot::pod::Pod;

/// The most cores by which a raylet's CPU may differ from its pod's CPU: Ray keeps four decimals.
const RAYLET_STEP: f64 = 1e-4;

/// Has raylets told the pod's size if the raylet has another size, or if a resize is complete.
/// From then on the node counts at the pod's size, and its pod may grow again. A node whose resize
/// is taken back counts at the pod's present size at once, and its raylet gets that size when Kubernetes
/// has agreed.
pub(crate) fn mend(state: &mut DecisionState) {
    let names = (state.cpu, state.memory);
    for node in state.nodes.iter_mut() {
        let runs = node.ray_id().is_some();
        let raylet = node.raylet_size();
        let Some(resize) = &mut node.resize else {
            continue;
        };
        let current = resize.current;
        // A raylet that starts rounds the CPU up to whole cores and finds its memory by itself, so that
        // these amounts may differ from the pod's.
        let at_first_size = current == resize.base;
        let differs = raylet.is_some_and(|(cpu, memory)| {
            let is_apart = |cores: f64| (cpu - cores).abs() > RAYLET_STEP;
            let is_cpu_apart =
                is_apart(current.cpu) && (!at_first_size || is_apart(current.cpu.ceil()));
            let counts_memory = resize.noted.is_some() || !at_first_size;
            is_cpu_apart || counts_memory && (memory - counted(current.memory)).abs() > 1.0
        });
        let is_quiet =
            resize.note.resizing_at.is_none() && resize.progress == ResizeProgress::Finished;
        resize.noted_sync = runs && (resize.is_to_sync() || is_quiet && differs);
        if resize.noted_sync {
            resize.note.resizing_at = None;
        }
        let is_taken_back = resize.is_to_send() && resize.desired == current;
        if resize.noted_sync || runs && is_taken_back {
            node.set_size(names, current);
        }
    }
}

/// Counts new nodes of a group with what the raylet reports in the youngest pod that was made as the template is
/// now, and returns where that is something else: images and scripts start Ray with amounts that no template
/// shows. Pods of another size are of an older template and show nothing, unless those of their group grow.
pub(crate) fn believe(config: &mut ClusterConfig, situation: &Situation<'_>) -> Vec<Problem> {
    let youngest = youngest_pods(config, situation);
    let mut problems = Vec::new();
    for group in config.groups.iter_mut().filter(|group| !group.is_head()) {
        let Some((pod, ray)) = youngest.get(group.name.as_str()) else {
            continue;
        };
        for (resource, amount) in group.resources.iter_mut().flatten() {
            let grows = group.resize_limits.is_some() && ["CPU", "memory"].contains(&&**resource);
            let reported = ray.total_resources.get(resource).copied().unwrap_or(0.0);
            let is_apart = (reported - *amount).abs() > RAYLET_STEP * amount.max(1.0);
            // Only the first host of a slice of TPUs has the resource of its head.
            if !is_apart || grows || resource.ends_with("-head") {
                continue;
            }
            // More does no harm: without a limit a raylet has the memory of its machine.
            if reported < *amount {
                let [given, has] = [*amount, reported].map(|amount| amount_text(resource, amount));
                problems.push(Problem {
                    at: ProblemPlace::Group(group.name.clone()),
                    reason: ProblemReason::OtherAmount {
                        resource: resource.clone(),
                        amounts: format!("{given}, but the raylet of pod {pod} reports {has}"),
                    },
                    effect: COUNTED_UP_TO_TOTAL.into(),
                });
            }
            *amount = reported;
        }
    }
    problems
}

/// By group, the youngest pod that shows what new ones of it will have, with its raylet.
fn youngest_pods<'a>(
    config: &ClusterConfig,
    situation: &Situation<'a>,
) -> HashMap<&'a str, (&'a str, &'a NodeState)> {
    // The size with which a group makes pods now.
    let is_as_made = |pod: &Pod<'_>, group: &GroupSpec| match group.base {
        Some(base) => pod
            .containers()
            .first()
            .is_some_and(|ray| pod_size::size(ray.resources) == Ok(base)),
        None => pod.requests() == group.pod_requests,
    };
    let mut youngest = HashMap::default();
    for pod in situation.own_pods {
        let (Some(group), Some(ray)) = (config.group(pod.group), situation.live.get(pod.name))
        else {
            continue;
        };
        // A pod that has grown shows what its group has besides CPU and memory, if no other pod does.
        let rank = (
            is_as_made(pod, group),
            &pod.object.metadata.creation_timestamp,
            pod.name,
        );
        let counts = rank.0 || group.resize_limits.is_some();
        // A raylet that reports no memory is still being registered.
        if counts && ray.total_resources.get("memory") > Some(&0.0) {
            let newest = youngest.entry(pod.group).or_insert((rank, *ray));
            if newest.0 < rank {
                *newest = (rank, *ray);
            }
        }
    }
    let youngest = youngest.into_iter();
    youngest
        .map(|(group, ((.., pod), ray))| (group, (pod, ray)))
        .collect()
}
