//! RF115: a resize limit that no node can hold.

use crate::facts::Node;
use crate::facts::scheduling::Demands;
use crate::finding::Finding;
use crate::policy::Mode;
use crate::quantity::Quantity;
use crate::ray::ippr::GroupResizeLimits;
use crate::ray::pod_size::BesideRay;
use crate::ray::{Cluster, Group, Resource};
use crate::rule_id::RuleId;
use crate::rule_page::RulePage;
use crate::rules::{Cel, Findings, OwnMode, Rule, Subject};
use crate::text::shown_text;

/// RF115
pub static RULE: Rule = Rule {
    id: RuleId(115),
    name: "ippr-limit-above-nodes",
    mode: OwnMode::Always(Mode::Warn),
    summary: "a resize limit in `ray.io/ippr` that no node can hold",
    page: RulePage(include_str!("limit_above_nodes.md")),
    why: "Growing to the resize limits can never succeed: the pod stays small, and from \
          Kubernetes 1.36 on the refusal stops Ray from scaling the cluster.",
    since: "0.1.0",
    cel: CEL,
    check,
};

const CEL: Cel = Cel::NotCovered("A CEL expression cannot read nodes.");

/// How many comparisons of nodes with what pods ask of them an object is worth: half a second of them. Its author
/// chooses how long affinity and tolerations are, in a cluster with thousands of nodes, and others wait meanwhile.
const COMPARISONS: usize = 1_000_000;

fn check(subject: &Subject<'_>, findings: &mut Findings) {
    let Some(cluster) = subject
        .autoscaled()
        .filter(|_| !subject.facts.nodes.is_empty())
    else {
        return;
    };
    let mut left = COMPARISONS;
    for (group, resize_limits) in subject.resized_groups() {
        let Some(demands) = group.pod_spec().map(Demands::of) else {
            continue;
        };
        let comparisons = demands
            .comparisons()
            .saturating_mul(subject.facts.nodes.len());
        if let Some(rest) = left.checked_sub(comparisons) {
            left = rest;
            check_group(subject, (cluster, group, resize_limits), &demands, findings);
        }
    }
}

fn check_group(
    subject: &Subject<'_>,
    (cluster, group, resize_limits): (&Cluster<'_>, &Group<'_>, &GroupResizeLimits),
    demands: &Demands<'_>,
    findings: &mut Findings,
) {
    let nodes = &subject.facts.nodes;
    let may = |node: &Node| demands.admit(node);
    let cpu = Need::of(cluster, group, resize_limits, Resource::Cpu);
    let memory = Need::of(cluster, group, resize_limits, Resource::Memory);
    let amount = |need: &Option<Need>| need.as_ref().map(|need| need.requested).unwrap_or_default();
    if nodes.any_holds(amount(&cpu), amount(&memory), may) {
        return;
    }
    let largest = |resource| nodes.largest(resource, may);
    // No known node admits the pods, as with a node pool that is scaled to zero. Nothing is then
    // known of the nodes that a cluster autoscaler would add.
    let Some((most_cpu, most_memory)) = largest(Resource::Cpu).zip(largest(Resource::Memory))
    else {
        return;
    };
    let alone: Vec<Finding> = [(cpu, most_cpu), (memory, most_memory)]
        .into_iter()
        .filter_map(|(need, node)| need?.finding(resize_limits, node))
        .collect();
    if alone.is_empty() {
        findings.add(not_together(resize_limits, most_cpu, most_memory));
    }
    for finding in alone {
        findings.add(finding);
    }
}

/// What a pod asks of a node for one resource at its resize limit.
struct Need {
    resource: Resource,
    limit: Quantity,
    /// By how much the resize limit is above what is requested for it; negative if below.
    slack: Quantity,
    requested: Quantity,
}

impl Need {
    fn of(
        cluster: &Cluster<'_>,
        group: &Group<'_>,
        resize_limits: &GroupResizeLimits,
        resource: Resource,
    ) -> Option<Self> {
        let limit = resize_limits.amount(resource)?;
        let beside = BesideRay::of(cluster, group, resource).requests;
        let slack = group.ray_container()?.gap(resource).checked_sub(beside)?;
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

fn not_together(resize_limits: &GroupResizeLimits, most_cpu: &Node, most_memory: &Node) -> Finding {
    let size = |node: &Node| {
        format!(
            "{} ({}, {})",
            shown_text(&node.name),
            Resource::Cpu.say(node.cpu),
            Resource::Memory.say(node.memory)
        )
    };
    RULE.finding(
        resize_limits.path(),
        format!(
            "both resize limits together fit on no node: the largest are {} and {}",
            size(most_cpu),
            size(most_memory)
        ),
        "Lower one of the resize limits, or let the group run on nodes that have both.",
    )
    .because(
        "A resize asks for both resize limits at once, and Kubernetes grants both or none, so the \
         pod stays small.",
    )
}
