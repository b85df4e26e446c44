//! RF231: a TPU topology that Ray cannot read.

use crate::policy::Mode;
use crate::ray::node_resources::{NodeResources, ResourceError};
use crate::rule_id::RuleId;
use crate::rules::{Cel, Check, Each, Findings, OwnMode, Rule, Subject};
use crate::text::shown_text;

/// RF231
pub static RULE: Rule = Rule {
    id: RuleId(231),
    name: "tpu-topology",
    mode: OwnMode::Always(Mode::Enforce),
    summary: "A TPU topology in the node selector that is not numbers joined by `x`",
    what: "Checks the node selector `cloud.google.com/gke-tpu-topology` of every group, the head \
           included, of a cluster with autoscaling on, where the group has TPUs and the selector \
           `cloud.google.com/gke-tpu-accelerator` names a TPU that Ray knows.",
    why: "Ray's autoscaler fails on it at its start, and scales no group of the cluster.",
    bad: "
spec:
  enableInTreeAutoscaling: true
  workerGroupSpecs:
  - groupName: tpu
    template:
      spec:
        nodeSelector:
          cloud.google.com/gke-tpu-accelerator: tpu-v4-podslice
          cloud.google.com/gke-tpu-topology: 2x2x
        containers:
        - name: ray-worker
          resources: {limits: {cpu: 8, google.com/tpu: 4}}
",
    good: "
spec:
  enableInTreeAutoscaling: true
  workerGroupSpecs:
  - groupName: tpu
    template:
      spec:
        nodeSelector:
          cloud.google.com/gke-tpu-accelerator: tpu-v4-podslice
          cloud.google.com/gke-tpu-topology: 2x2x2
        containers:
        - name: ray-worker
          resources: {limits: {cpu: 8, google.com/tpu: 4}}
",
    without: "The autoscaler multiplies the numbers to name the resource of a slice's first host; \
              ValueError ends its start, or each of its rounds (Ray, \
              `autoscaler/_private/kuberay/utils.py`, `tpu_node_selectors_to_type`).",
    since: "0.1.0",
    cel: CEL,
    check,
};

const CEL: Cel = Cel::InPart(
    &[Check {
        each: Each::Group,
        mode: Mode::Enforce,
        faults: r#"[g.spec.?template.?spec.?nodeSelector.orValue({})].map(n,
  s.auto && g.resources.size() == 0 && !('resources' in g.params) && 'google.com/tpu' in g.limits && string(g.limits['google.com/tpu']).matches('^0*[1-9][0-9]{0,8}$')
  && n[?'cloud.google.com/gke-tpu-accelerator'].orValue('') in ['tpu-v4-podslice', 'tpu-v5-lite-device', 'tpu-v5-lite-podslice', 'tpu-v5p-slice', 'tpu-v6e-slice', 'tpu7x']
  && n[?'cloud.google.com/gke-tpu-topology'].orValue('') != '' && !n['cloud.google.com/gke-tpu-topology'].matches('^[0-9]+([xX][0-9]+)*$')
  ? '.template.spec.nodeSelector cloud.google.com/gke-tpu-topology "' + n['cloud.google.com/gke-tpu-topology'] + '" is not numbers joined by x' : '')"#,
        fix: "Write it like 2x2x2.",
    }],
    "Groups whose TPUs are in `rayStartParams` or in the group's `resources` are not checked.",
);

fn check(subject: &Subject<'_>, findings: &mut Findings) {
    // Other rules report the other errors that keep Ray from deriving resources.
    for group in subject.autoscaled_groups() {
        let Err(ResourceError::Topology(topology)) = NodeResources::of(group) else {
            continue;
        };
        let path = group
            .pod_spec_path()
            .key("nodeSelector")
            .key("cloud.google.com/gke-tpu-topology");
        let shown = shown_text(&topology.0);
        let problem = format!("{shown} is not numbers joined by x");
        let fix = "Write the topology of the slice, like 2x2x2.";
        findings.add(RULE.finding(path, problem, fix).valued(shown));
    }
}
