//! RF231: a TPU topology that Ray cannot read.

use crate::ray::node_resources::{NodeResources, ResourceError, tpu};
use crate::rules::prelude::*;

pub(crate) static RULE: Rule = Rule {
    id: RuleId(231),
    name: "tpu-topology",
    mode: OwnMode::ByCase(
        "Enforce for a topology that cannot be read, Warn for a wrong number of hosts",
    ),
    summary: "A TPU topology in the node selector that is not numbers joined by `x`, or not what `numOfHosts` gives",
    page: include_str!("tpu_topology.md"),
    why: "Ray's autoscaler fails on it at its start, and scales no group of the cluster.",
    cel: Cel::InPart(
        &[Check {
            each: Each::Group,
            faults: r#"[g.spec.?template.?spec.?nodeSelector.orValue({})].map(n,
  s.auto && g.resources.size() == 0 && !('resources' in g.params) && 'google.com/tpu' in g.limits && string(g.limits['google.com/tpu']).matches('^0*[1-9][0-9]{0,8}$')
  && n[?'cloud.google.com/gke-tpu-accelerator'].orValue('') in ['tpu-v4-podslice', 'tpu-v5-lite-device', 'tpu-v5-lite-podslice', 'tpu-v5p-slice', 'tpu-v6e-slice', 'tpu7x']
  && n[?'cloud.google.com/gke-tpu-topology'].orValue('') != '' && !n['cloud.google.com/gke-tpu-topology'].matches('^[0-9]+([xX][0-9]+)*$')
  ? '.template.spec.nodeSelector cloud.google.com/gke-tpu-topology "' + n['cloud.google.com/gke-tpu-topology'] + '" is not numbers joined by x' : '')"#,
            fix: "Write it like 2x2x2.",
        }],
        "Groups whose TPUs are in `rayStartParams` or in the group's `resources` are not checked, nor are \
     numbers of hosts.",
    ),
    check,
};

fn check(subject: &Subject<'_>, findings: &mut Vec<Finding>) {
    // Other rules report the other errors that keep Ray from deriving resources.
    let groups = subject.autoscaled_groups();
    for group in groups.filter(|group| tpu::head_resource(group).is_err()) {
        let Err(ResourceError::Topology(topology)) = NodeResources::of(group) else {
            continue;
        };
        // Ray multiplies the numbers to name the resource of a slice's first host (`tpu_node_selectors_to_type`).
        let path = group.pod_spec_path().key("nodeSelector").key(tpu::TOPOLOGY);
        let shown = shown_text(&topology);
        let problem = format!("{shown} is not numbers joined by x");
        let fix = "Write the topology of the slice, like 2x2x2.";
        findings.push(RULE.finding(path, problem, fix).valued(shown));
    }
    findings.extend(subject.workers().filter_map(wrong_hosts));
}

fn wrong_hosts(group: &Group<'_>) -> Option<Finding> {
    let (chips, largest_host) = tpu::slice(group)?;
    let per_pod = group.ray_container?.limit("google.com/tpu")?.ceil_units();
    let per_pod = i64::try_from(per_pod).ok().filter(|count| *count > 0)?;
    // A replica of another number of hosts than its slice waits for the others when it starts to compute.
    let hosts = group.integer("numOfHosts").unwrap_or(1);
    let expected = (chips / per_pod).max(1);
    let may_share = hosts == 1 && chips <= largest_host;
    if hosts < 1 || hosts == expected || may_share {
        return None;
    }
    let finding = RULE.finding(
        group.path().key("numOfHosts"),
        format!("{per_pod} TPUs on each of {hosts} are not the {chips} chips of the topology"),
        format!("Write numOfHosts: {expected}, or another topology."),
    );
    let why =
        "A slice with missing hosts never starts to compute, and hosts too many get no node in it.";
    let finding = finding.because(why).in_mode(Mode::Warn);
    Some(finding.valued(hosts.to_string()).mended_by(expected))
}
