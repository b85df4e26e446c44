//! RF115: a resize limit that no node can hold.

use crate::facts::Node;
use crate::facts::scheduling::Demands;
use crate::ray::ippr::GroupResizeLimits;
use crate::ray::pod_size::BesideRay;
use crate::rules::prelude::*;

pub(crate) static RULE: Rule = Rule {
    id: RuleId(115),
    name: "ippr-limit-above-nodes",
    mode: OwnMode::Always(Mode::Warn),
    summary: "a resize limit in `ray.io/ippr` that no node can hold",
    page: include_str!("limit_above_nodes.md"),
    why: "Growing to the resize limits can never succeed: the pod stays small, and from \
          Kubernetes 1.36 on the refusal stops Ray from scaling the cluster.",
    cel: Cel::NotCovered("A CEL expression cannot read nodes."),
    check,
};

/// The most comparisons of nodes with the demands of pods for one object: half a second of them. Its author
/// chooses how long affinity and tolerations are, in a cluster with thousands of nodes, and others wait
/// meanwhile.
const COMPARISONS: usize = 1_000_000;

fn check(subject: &Subject<'_>, findings: &mut Vec<Finding>) {
    let nodes = &subject.facts.nodes;
    let Some(cluster) = subject.autoscaled().filter(|_| !nodes.all().is_empty()) else {
        return;
    };
    let mut budget = COMPARISONS;
    for (group, resize_limits) in subject.resized_groups() {
        let Some(demands) = group.pod_spec.map(Demands::of) else {
            continue;
        };
        let comparisons = demands.comparisons().saturating_mul(nodes.all().len());
        // Counted before any comparison is made. A group that would exceed the budget is left out, and smaller ones
        // behind it are not.
        let Some(rest) = budget.checked_sub(comparisons) else {
            continue;
        };
        budget = rest;
        let may = |node: &Node| demands.admit(node);
        let cpu = ResizeDemand::of(cluster, group, resize_limits, Resource::Cpu);
        let memory = ResizeDemand::of(cluster, group, resize_limits, Resource::Memory);
        let amount = |demand: &Option<ResizeDemand>| {
            demand
                .as_ref()
                .map(|demand| demand.requested)
                .unwrap_or_default()
        };
        if nodes.any_holds(amount(&cpu), amount(&memory), may) {
            continue;
        }
        let largest = |resource| nodes.largest(resource, may);
        // No known node admits the pods, as with a node pool that is scaled to zero. Nothing is then
        // known of the nodes that a cluster autoscaler would add.
        let Some((most_cpu, most_memory)) = largest(Resource::Cpu).zip(largest(Resource::Memory))
        else {
            continue;
        };
        // A limit that is too large by itself is the better thing to say: both together cannot fit then either.
        let alone = [(cpu, most_cpu), (memory, most_memory)].into_iter();
        let alone = alone.filter_map(|(demand, node)| demand?.finding(resize_limits, node));
        let count = findings.len();
        findings.extend(alone);
        if findings.len() > count {
            continue;
        }
        let size = |node: &Node| {
            format!(
                "{} ({}, {})",
                shown_text(&node.name),
                Resource::Cpu.say(node.cpu),
                Resource::Memory.say(node.memory)
            )
        };
        let finding = RULE.finding(
            resize_limits.path(),
            format!(
                "both resize limits together fit on no node: the largest are {} and {}",
                size(most_cpu),
                size(most_memory)
            ),
            "Lower one of the resize limits, or let the group run on nodes that have both.",
        );
        let why = "A resize asks for both resize limits at once, and Kubernetes grants both or none, so the pod stays \
                   small.";
        findings.push(finding.because(why));
    }
}

/// The demand of a pod on its node for one resource, at its resize limit.
struct ResizeDemand {
    resource: Resource,
    limit: Quantity,
    /// The amount by which the resize limit is above what is requested for it; negative if below.
    slack: Quantity,
    requested: Quantity,
}

impl ResizeDemand {
    fn of(
        cluster: &Cluster<'_>,
        group: &Group<'_>,
        resize_limits: &GroupResizeLimits,
        resource: Resource,
    ) -> Option<Self> {
        let limit = resize_limits.amount(resource)?;
        let beside = BesideRay::of(cluster, group, resource).requests;
        let slack = group.ray_container?.gap(resource).checked_sub(beside)?;
        Some(Self {
            resource,
            limit,
            slack,
            requested: limit.checked_sub(slack)?,
        })
    }

    /// The finding, if even the largest node is too small for it.
    fn finding(&self, resize_limits: &GroupResizeLimits, largest: &Node) -> Option<Finding> {
        let (resource, has) = (self.resource, largest.allocatable(self.resource));
        if has >= self.requested {
            return None;
        }
        let most = has.checked_add(self.slack)?;
        let fix = if most.is_negative() || most.is_zero() {
            "Let the group run on larger nodes, or take it out of the annotation.".to_owned()
        } else {
            let most = resource.show_at_most(most);
            format!("Write {most:?} or less, or let the group run on larger nodes.")
        };
        let limit = resource.say(self.limit);
        let problem = format!(
            "{limit} fits on no node: the pod would request {} in all, and the largest node that it \
             could run on, {}, has {} for pods",
            resource.say(self.requested),
            shown_text(&largest.name),
            resource.say(has),
        );
        let finding = RULE.finding(resize_limits.key_path(resource.limit_key()), problem, fix);
        Some(finding.valued(limit))
    }
}
