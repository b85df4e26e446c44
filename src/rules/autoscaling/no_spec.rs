//! RF230: an object without a spec.

use serde_json::Value;

use crate::path::FieldPath;
use crate::policy::Mode;
use crate::rule_id::RuleId;
use crate::rules::{Cel, Check, Each, Findings, OwnMode, Rule, Subject};

/// RF230
pub static RULE: Rule = Rule {
    id: RuleId(230),
    name: "no-spec",
    mode: OwnMode::Always(Mode::Enforce),
    summary: "The object has no `spec`",
    what: "Reports a RayCluster, RayJob, RayService or RayCronJob without `spec`, or with null there.",
    why: "It describes no cluster, and programs that list Ray objects of all namespaces may fail \
          on it.",
    bad: "
kind: RayCluster
metadata: {name: empty}
",
    good: "
kind: RayCluster
metadata: {name: empty}
spec:
  headGroupSpec:
    template: {spec: {containers: [{name: ray-head, image: 'rayproject/ray:2.60.0'}]}}
",
    without: "The definitions of Ray's resources require fields inside of `spec`, but not `spec` \
              itself, so that the API server stores such an object (KubeRay, CRDs of `ray.io/v1`); \
              KubeRay then reports it as invalid and makes nothing of it (KubeRay, \
              `ValidateRayClusterSpec`). A client that requires the field refuses the whole list \
              that contains it.",
    since: "0.1.0",
    cel: CEL,
    check,
};

const CEL: Cel = Cel::Covered(&[Check {
    each: Each::Object,
    mode: Mode::Enforce,
    faults: r"has(s.object.spec) ? [] : ['spec is absent']",
    fix: "Add a spec, or delete the object.",
}]);

fn check(subject: &Subject<'_>, findings: &mut Findings) {
    let problem = match subject.object.root.get("spec") {
        None => "is absent",
        Some(Value::Null) => "is null",
        Some(_) => return,
    };
    let fix = format!(
        "Add the spec of the {}, or delete the object.",
        subject.kind().name()
    );
    findings.add(RULE.finding(FieldPath::of(&["spec"]), problem, fix));
}
