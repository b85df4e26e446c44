//! Raylets whose size differs from the size of their pods, or from what their template gives.

use crate::hash::HashMap;
use crate::plan::demand::names::Name;
use crate::plan::growth::pod_size;
use crate::plan::growth::resize::{Resize, ResizeProgress};
use crate::plan::growth::size::counted;
use crate::plan::nodes::group::{ClusterConfig, GroupConfig};
use crate::plan::nodes::node::PlannedNode;
use crate::plan::outcome::problem::{Problem, ProblemEffect, ProblemPlace};
use crate::plan::outcome::problem_reason::ProblemReason;
use crate::plan::outcome::unmet::amount_text;
use crate::snapshot::gcs::LiveNodes;
use crate::snapshot::pod::Pod;

/// The most cores by which a raylet's CPU may differ from its pod's CPU: Ray keeps four decimals.
const RAYLET_STEP: f64 = 1e-4;

/// Has the raylet told the pod's size if the raylet has another size, or if a resize is complete.
/// From then on the node counts at the pod's size, and its pod may grow again. A node whose resize
/// is taken back counts at the pod's present size at once, and its raylet gets that size when Kubernetes
/// has agreed.
pub(crate) fn mend(node: &mut PlannedNode, cpu: Option<Name>, memory: Option<Name>) {
    let runs = node.ray_id().is_some();
    let size = node.raylet().map(|raylet| (raylet.cpu, raylet.memory));
    let Some(resize) = &mut node.resize else {
        return;
    };
    let syncs = runs && (resize.is_to_sync() || differs(size, resize));
    resize.noted_sync = syncs;
    if syncs {
        resize.resizing_at = None;
    }
    let current = resize.current;
    let settled = syncs || (runs && resize.is_taken_back());
    if let (true, Some(cpu), Some(memory)) = (settled, cpu, memory) {
        node.set_total(cpu, current.cpu);
        node.set_total(memory, counted(current.memory));
    }
}

/// Whether no resize is under way and the raylet's size differs from its pod's size.
fn differs(raylet_size: Option<(f64, f64)>, resize: &Resize) -> bool {
    let Some((cpu, memory)) = raylet_size else {
        return false;
    };
    let quiet = resize.resizing_at.is_none() && resize.progress == ResizeProgress::Finished;
    let (pod_cpu, pod_memory) = (resize.current.cpu, counted(resize.current.memory));
    // A raylet that starts rounds the CPU up to whole cores and finds its memory by itself, so that
    // these amounts may differ from the pod's.
    let at_first_size = resize.current == resize.base;
    let cpu_apart = (cpu - pod_cpu).abs() > RAYLET_STEP;
    let rounded_up = at_first_size && (cpu - pod_cpu.ceil()).abs() <= RAYLET_STEP;
    let memory_apart =
        (resize.noted.is_some() || !at_first_size) && (memory - pod_memory).abs() > 1.0;
    quiet && ((cpu_apart && !rounded_up) || memory_apart)
}

/// Counts new nodes of a group with what the raylet reports in the youngest pod that was made as the template is
/// now, and returns where that is something else: images and scripts start Ray with amounts that no template
/// shows. Pods of an older template, and pods that have another size by now, show nothing.
pub(crate) fn believe(
    config: &mut ClusterConfig,
    own: &[Pod<'_>],
    live: &LiveNodes<'_>,
) -> Vec<Problem> {
    let mut youngest = HashMap::default();
    for pod in own {
        let group = config.number(pod.group);
        let group = group.and_then(|group| config.groups.get(group));
        // A raylet that reports no memory is still being registered.
        if group.is_some_and(|group| is_as_made(pod, group))
            && let Some(ray) = live.get(pod.name)
            && ray.total_resources.get("memory") > Some(&0.0)
        {
            let found = (&pod.object.metadata.creation_timestamp, pod.name, *ray);
            let known = youngest.entry(pod.group).or_insert(found);
            if (known.0, known.1) < (found.0, found.1) {
                *known = found;
            }
        }
    }
    let mut problems = Vec::new();
    for group in config.groups.iter_mut().filter(|group| !group.is_head) {
        let Some((_, pod, ray)) = youngest.get(group.name.as_str()) else {
            continue;
        };
        for (resource, amount) in &mut group.resources {
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
                    effect: ProblemEffect::CountedUpToTotal,
                });
            }
            *amount = reported;
        }
    }
    problems
}

/// Whether a pod has the size with which its group makes pods now.
fn is_as_made(pod: &Pod<'_>, group: &GroupConfig) -> bool {
    let Some(base) = group.base else {
        return pod.requests() == group.pod_requests;
    };
    let ray = pod.containers().first().map(|ray| ray.resources);
    ray.is_some_and(|ray| pod_size::size(ray.requests, ray.limits) == Ok(base))
}
