//! RF236: accelerators of a group that Ray's autoscaler does not count.

use crate::rules::prelude::*;
use crate::rules::shared::has_claims;

pub(crate) static RULE: Rule = Rule {
    id: RuleId(236),
    name: "uncounted-devices",
    mode: OwnMode::ByCase(
        "Audit for resource claims, which may be of other devices than GPUs; else Warn",
    ),
    summary: "Neuron devices, slices or shares of GPUs, or resource claims without what tells the autoscaler of them",
    page: include_str!("uncounted_devices.md"),
    why: "Ray's autoscaler does not know of them, so work that asks for them never adds a worker of \
          this group.",
    cel: Cel::NotCovered("It needs the names of the limits, in which CEL has no order."),
    check,
};

fn check(subject: &Subject<'_>, findings: &mut Vec<Finding>) {
    let by_ray = subject.object.reconcile_mode() == ReconcileMode::Ray;
    let cluster = subject.autoscaled().into_iter();
    for group in cluster.flat_map(|cluster| &cluster.workers) {
        let Some(container) = group.ray_container else {
            continue;
        };
        // Ray's autoscaler derives CPU, GPU, TPU and memory, and takes all else from the author
        // (`_get_ray_resources_from_group_spec`).
        let limits = container.limits.unwrap_or_default().iter();
        let devices: Vec<(DeviceKind, &str, i128)> = limits
            .filter_map(|(resource, _)| {
                let kind = DeviceKind::of(resource)?;
                let count = container.limit(resource)?.ceil_units();
                Some((kind, resource, count))
            })
            .filter(|(_, _, count)| *count > 0)
            .collect();
        // KubeRay tells Ray of these when it starts a node, which only Rayfit then counts.
        let untold = devices.iter().filter(|(kind, ..)| {
            by_ray || !matches!(kind, DeviceKind::NeuronCore | DeviceKind::Slice)
        });
        let (neuron, gpus): (Vec<_>, Vec<_>) = untold
            .copied()
            .partition(|(kind, ..)| matches!(kind, DeviceKind::NeuronCore | DeviceKind::Neuron));
        let has_map = group.resources.is_some();
        let finding = |resource: &str, count: i128, of: &str, fix: String| {
            let limits = group.ray_container_path().key("resources").key("limits");
            let problem = format!("{count}, of which Ray's autoscaler counts no {of}");
            RULE.finding(limits.key(resource.to_owned()), problem, fix)
                .in_mode(Mode::Warn)
                .valued(count.to_string())
        };
        if let Some((kind, resource, count)) = neuron.first()
            && !names_neuron_cores(group)
        {
            let fix = write_cores(*kind, *count, has_map);
            findings.push(finding(resource, *count, "neuron_cores", fix));
        }
        if counts_gpus(group, &container) {
            continue;
        }
        let write_gpus = |count: i128| {
            if has_map {
                format!("Write GPU: \"{count}\" in the group's resources.")
            } else {
                format!("Write num-gpus: \"{count}\" in rayStartParams.")
            }
        };
        if let Some((_, resource, count)) = gpus.first() {
            findings.push(finding(resource, *count, "GPUs", write_gpus(*count)));
        } else if devices.is_empty()
            && has_claims(&container)
            && !has_map
            && group.start_param("resources").is_none()
        {
            // The claims may be for the resources of other kinds that an author names.
            let path = group.ray_container_path().key("resources").key("claims");
            let fix = format!(
                "{} That is for one GPU; devices of other kinds need a resource of their own.",
                write_gpus(1)
            );
            let problem = "are devices that Ray's autoscaler does not count";
            findings.push(RULE.finding(path, problem, fix).in_mode(Mode::Audit));
        }
    }
}

/// The remedy for Neuron devices of that number, in a group with a map of resources or without.
fn write_cores(kind: DeviceKind, count: i128, has_map: bool) -> String {
    let (cores, note) = match kind {
        DeviceKind::NeuronCore => (count, ""),
        _ => (
            count.saturating_mul(2),
            ", for chips with two cores each (Inferentia2, Trainium1)",
        ),
    };
    if has_map {
        format!("Write neuron_cores: \"{cores}\" in the group's resources{note}.")
    } else {
        format!(r#"Write resources: "'{{\"neuron_cores\": {cores}}}'" in rayStartParams{note}."#)
    }
}

/// A kind of device that Ray's autoscaler does not count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DeviceKind {
    NeuronCore,
    /// A chip, with two cores or more.
    Neuron,
    /// A slice of a GPU by a name that KubeRay knows.
    Slice,
    /// A share or a partition of a GPU.
    Share,
}

impl DeviceKind {
    fn of(resource: &str) -> Option<Self> {
        match resource {
            "aws.amazon.com/neuroncore" => return Some(Self::NeuronCore),
            "aws.amazon.com/neuron" | "aws.amazon.com/neurondevice" => return Some(Self::Neuron),
            "gpu.intel.com/i915" | "gpu.intel.com/xe" => return Some(Self::Share),
            _ => {}
        }
        let name = resource.strip_prefix("nvidia.com/")?;
        // KubeRay's expression ends there (`IsGPUResourceKey`); other names are not told to Ray.
        if name.starts_with("mig-") && name.ends_with("gb") {
            Some(Self::Slice)
        } else {
            (name.starts_with("mig-") || name.starts_with("gpu.")).then_some(Self::Share)
        }
    }
}

/// Names the cores of Neuron devices in `resources`, of the group or of its start parameters.
fn names_neuron_cores(group: &Group<'_>) -> bool {
    // RF205 reports a text that cannot be read.
    let params = group.start_param("resources").and_then(Json::as_str);
    let resources = group.resources;
    params.is_some_and(|text| text.contains("neuron_cores"))
        || resources.is_some_and(|map| map.contains_key("neuron_cores"))
}

/// Has GPUs that Ray's autoscaler counts.
fn counts_gpus(group: &Group<'_>, container: &Container<'_>) -> bool {
    let is_whole = |resource: &str| {
        let count = container.limit(resource);
        resource.ends_with("gpu") && count.is_some_and(|count| !count.is_zero())
    };
    let mut limits = container.limits.unwrap_or_default().iter();
    group.start_param("num-gpus").is_some()
        || group.resources.is_some_and(|map| map.contains_key("GPU"))
        || limits.any(|(resource, _)| is_whole(resource))
}
