//! RF307: bounds of a RayService or RayJob whose RayCluster does not get them.

use serde_json::Value;

use super::restarts_pods;
use crate::policy::Mode;
use crate::ray::{Kind, RayObject};
use crate::rule_id::RuleId;
use crate::rule_page::RulePage;
use crate::rules::{Cel, Findings, OwnMode, Rule, Subject};
use crate::text::shown;

/// RF307
pub static RULE: Rule = Rule {
    id: RuleId(307),
    name: "edit-without-effect",
    mode: OwnMode::Always(Mode::Warn),
    summary: "`minReplicas` or `maxReplicas` change in a RayService or RayJob that has its RayCluster",
    page: RulePage(include_str!("edit_without_effect.md")),
    why: "KubeRay does not pass the change on to the RayCluster that runs, so nothing happens.",
    since: "0.1.0",
    cel: CEL,
    check,
};

const CEL: Cel = Cel::NotCovered(
    "It needs a comparison of the rest of the spec, in which equal quantities may be written \
     differently.",
);

fn check(subject: &Subject<'_>, findings: &mut Findings) {
    let (Some(old), Some(new)) = (subject.old, subject.cluster()) else {
        return;
    };
    let Some(before) = &old.cluster else {
        return;
    };
    let is_heard = match subject.kind() {
        Kind::RayService => !restarts_pods::is_same_to_kuberay(before, new),
        Kind::RayJob => false,
        Kind::RayCluster | Kind::RayCronJob => true,
    };
    if is_heard || is_suspended(old) {
        return;
    }
    for group in &new.workers {
        let stored = group.name.and_then(|name| before.group(name));
        let Some(stored) = stored.filter(|stored| !stored.is_head()) else {
            continue;
        };
        for key in ["minReplicas", "maxReplicas"] {
            let Some(value) = group
                .spec
                .get(key)
                .filter(|value| stored.spec.get(key) != Some(value))
            else {
                continue;
            };
            let name = subject.object.name().unwrap_or("NAME");
            findings.add(
                RULE.finding(
                    group.path().key(key),
                    format!(
                        "{} does not reach the RayCluster that is there",
                        shown(value)
                    ),
                    format!(
                        "Change it in the RayCluster too, which kubectl get rayclusters -l \
                         ray.io/originated-from-cr-name={name} shows."
                    ),
                )
                .valued(shown(value)),
            );
        }
    }
}

/// A suspended object has no RayCluster, and the next one gets everything.
fn is_suspended(object: &RayObject<'_>) -> bool {
    let suspend = object.spec().and_then(|spec| spec.get("suspend"));
    suspend.and_then(Value::as_bool) == Some(true)
}
