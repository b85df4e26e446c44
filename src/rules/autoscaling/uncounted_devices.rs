//! RF236: accelerators of a group that Ray's autoscaler does not count.

use crate::finding::Finding;
use crate::policy::Mode;
use crate::ray::{Container, Group, ReconcileMode, list_at, object_at};
use crate::rule_id::RuleId;
use crate::rule_page::RulePage;
use crate::rules::{Cel, Findings, OwnMode, Rule, Subject};

/// RF236
pub static RULE: Rule = Rule {
    id: RuleId(236),
    name: "uncounted-devices",
    mode: OwnMode::ByCase(
        "Audit for resource claims, which may be of other devices than GPUs; else Warn",
    ),
    summary: "Neuron devices, slices or shares of GPUs, or resource claims without what tells the autoscaler of them",
    page: RulePage(include_str!("uncounted_devices.md")),
    why: "Ray's autoscaler does not know of them, so work that asks for them never adds a worker of \
          this group.",
    since: "0.1.0",
    cel: CEL,
    check,
};

const CEL: Cel = Cel::NotCovered("It needs the names of the limits, in which CEL has no order.");

fn check(subject: &Subject<'_>, findings: &mut Findings) {
    let Some(cluster) = subject.autoscaled() else {
        return;
    };
    let by_ray = subject.reconcile_mode() == ReconcileMode::Ray;
    for group in &cluster.workers {
        let Some(container) = group.ray_container() else {
            continue;
        };
        let devices = present(&container);
        let is_untold = |device: &&Device<'_>| by_ray || !device.kind.is_told_by_kuberay();
        let mut untold = devices.iter().filter(is_untold);
        let neuron = untold.clone().find(|device| device.kind.is_neuron());
        if let Some(device) = neuron.filter(|_| !names_neuron_cores(group)) {
            findings.add(neuron_cores(group, device));
        }
        if counts_gpus(group, &container) {
            continue;
        }
        if let Some(device) = untold.find(|device| !device.kind.is_neuron()) {
            findings.add(gpus(group, device));
        } else if devices.is_empty() && has_claims(&container) && !has_custom(group) {
            findings.add(claims(group));
        }
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

    fn is_neuron(self) -> bool {
        matches!(self, Self::NeuronCore | Self::Neuron)
    }

    fn is_told_by_kuberay(self) -> bool {
        matches!(self, Self::NeuronCore | Self::Slice)
    }
}

/// A limit of devices.
struct Device<'a> {
    kind: DeviceKind,
    resource: &'a str,
    count: i128,
}

fn present<'a>(container: &Container<'a>) -> Vec<Device<'a>> {
    let limits = container.limits().into_iter().flatten();
    limits
        .filter_map(|(resource, _)| {
            Some(Device {
                kind: DeviceKind::of(resource)?,
                resource,
                count: container.limit(resource)?.ceil_units(),
            })
        })
        .filter(|device| device.count > 0)
        .collect()
}

fn names_neuron_cores(group: &Group<'_>) -> bool {
    // RF205 reports a text that cannot be read.
    let params = group
        .start_param("resources")
        .and_then(|value| value.as_str());
    params.is_some_and(|text| text.contains("neuron_cores"))
        || group
            .resources()
            .is_some_and(|map| map.contains_key("neuron_cores"))
}

fn counts_gpus(group: &Group<'_>, container: &Container<'_>) -> bool {
    let whole = |resource: &String| {
        resource.ends_with("gpu")
            && container
                .limit(resource)
                .is_some_and(|count| !count.is_zero())
    };
    group.start_param("num-gpus").is_some()
        || group.resources().is_some_and(|map| map.contains_key("GPU"))
        || container
            .limits()
            .is_some_and(|limits| limits.keys().any(whole))
}

fn has_claims(container: &Container<'_>) -> bool {
    object_at(container.spec, "resources").is_some_and(|map| !list_at(map, "claims").is_empty())
}

/// Whether the author names resources of other kinds, which may be those of the claims.
fn has_custom(group: &Group<'_>) -> bool {
    group.resources().is_some() || group.start_param("resources").is_some()
}

fn neuron_cores(group: &Group<'_>, device: &Device<'_>) -> Finding {
    let (cores, note) = match device.kind {
        DeviceKind::NeuronCore => (device.count, ""),
        _ => (
            device.count.saturating_mul(2),
            ", for chips with two cores each (Inferentia2, Trainium1)",
        ),
    };
    let fix = if group.resources().is_some() {
        format!("Write neuron_cores: \"{cores}\" in the group's resources{note}.")
    } else {
        format!(r#"Write resources: "'{{\"neuron_cores\": {cores}}}'" in rayStartParams{note}."#)
    };
    of_limit(group, device, "neuron_cores", fix)
}

fn gpus(group: &Group<'_>, device: &Device<'_>) -> Finding {
    of_limit(group, device, "GPUs", write_gpus(group, device.count))
}

fn of_limit(group: &Group<'_>, device: &Device<'_>, of: &str, fix: String) -> Finding {
    let limits = group.ray_container_path().key("resources").key("limits");
    let problem = format!("{}, of which Ray's autoscaler counts no {of}", device.count);
    RULE.finding(limits.key(device.resource.to_owned()), problem, fix)
        .in_mode(Mode::Warn)
        .valued(device.count.to_string())
}

fn claims(group: &Group<'_>) -> Finding {
    let path = group.ray_container_path().key("resources").key("claims");
    let fix = write_gpus(group, 1);
    RULE.finding(
        path,
        "are devices that Ray's autoscaler does not count",
        format!("{fix} That is for one GPU; devices of other kinds need a resource of their own."),
    )
    .in_mode(Mode::Audit)
}

fn write_gpus(group: &Group<'_>, count: i128) -> String {
    if group.resources().is_some() {
        format!("Write GPU: \"{count}\" in the group's resources.")
    } else {
        format!("Write num-gpus: \"{count}\" in rayStartParams.")
    }
}
