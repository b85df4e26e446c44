//! RF202: names of worker groups that collide or that no pod can carry.

use std::collections::HashSet;

use crate::ray::group::HEAD_NAME;
use crate::ray::label;
use crate::rules::prelude::*;

pub(crate) static RULE: Rule = Rule {
    id: RuleId(202),
    name: "group-name",
    mode: OwnMode::Always(Mode::Enforce),
    summary: "Worker groups of the same name, called `headgroup`, or named so that no pod can be \
              created",
    page: include_str!("group_name.md"),
    why: "Ray and KubeRay identify groups by name only, so they treat the two as one group.",
    cel: Cel::Covered(&[
        Check {
            each: Each::Worker,
            faults: r#"g.name == 'headgroup' ? ['.groupName is the name of the head group']
: g.name.size() > 63 || !g.name.matches('^([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?$') ? ['.groupName cannot be the value of a label']
: (s.kept < g.name.size() ? g.name.substring(0, s.kept) : g.name).matches(r'_|\.\.|\.-|-\.') ? ['.groupName cannot be part of a name of a pod'] : []"#,
            fix: "Use letters, digits and dashes, at most 63.",
        },
        Check {
            each: Each::Object,
            faults: r#"[s.groups.filter(g, !g.head).map(g, g.name)].map(names, names.filter(n, names.indexOf(n) != names.lastIndexOf(n))
  .map(n, s.path + '.workerGroupSpecs: more than one group is called "' + n + '"').join('\n'))"#,
            fix: "Give each worker group a unique name.",
        },
    ]),
    check,
};

/// KubeRay cuts `<cluster>-<group>` to this length in names of pods.
const POD_NAME_PREFIX: usize = 50;

/// The dash and the random end by which KubeRay makes the name of a cluster from its owner's.
const RANDOM_END: usize = 6;

/// The number of random characters that the API server appends to `generateName`, and the bytes of that which
/// it takes. (Kubernetes, `apiserver/pkg/storage/names/generate.go`.)
const GENERATED: usize = 5;
const LONGEST_PREFIX: usize = 58;

fn check(subject: &Subject<'_>, findings: &mut Vec<Finding>) {
    // KubeRay puts the name into the label `ray.io/group`, by which it counts pods, and into their names (`labelPod`,
    // `PodName`); Ray keeps groups in a map by name.
    let mut names = HashSet::new();
    for group in subject.workers() {
        let Some(name) = group.name else {
            continue;
        };
        let shown = || shown_text(name);
        let mut report = |problem: String, fix: String, why: &str| {
            let finding = RULE.finding(group.path().key("groupName"), problem, fix);
            findings.push(finding.because(why).valued(shown()));
        };
        let rename = || format!("Rename the group, for example to {}.", mended(name));
        if name == HEAD_NAME {
            report(
                "\"headgroup\" is the name of the head group".to_owned(),
                "Give the worker group another name, like workers.".to_owned(),
                RULE.why,
            );
        } else if !label::is_value(name) {
            report(
                format!(
                    "{} cannot be the value of a Kubernetes label (at most 63 letters, \
                     digits, dashes, dots, a letter or digit at both ends)",
                    shown()
                ),
                rename(),
                "KubeRay labels the group's pods with it, so the API server refuses all of them.",
            );
        } else if !fits_pod_names(subject.object, name) {
            report(
                format!(
                    "{} cannot be part of a pod's name (letters, digits, dashes, and dots \
                     between letters or digits)",
                    shown()
                ),
                rename(),
                "KubeRay names the group's pods after it, so the API server refuses all of them.",
            );
        }
        if !names.insert(name) {
            report(
                format!("{} is the name of an earlier group", shown()),
                "Give each worker group a unique name.".to_owned(),
                RULE.why,
            );
        }
    }
}

/// The part of `name` that gets into names of pods may stand there.
fn fits_pod_names(object: &RayObject<'_>, name: &str) -> bool {
    let generated = object
        .generate_name()
        .map(|prefix| prefix.len().min(LONGEST_PREFIX) + GENERATED);
    // A name that is not known counts as the shortest, beside which most of the group's name is
    // kept.
    let cluster = object.name().map(str::len).or(generated).unwrap_or(1);
    let random = if object.kind == Kind::RayCluster {
        0
    } else {
        RANDOM_END
    };
    let length = POD_NAME_PREFIX.saturating_sub(cluster + random + 1);
    let cut = name.get(..length).unwrap_or(name);
    // KubeRay makes the names of pods lower-case, so capitals do no harm.
    !cut.contains('_') && !["..", ".-", "-."].iter().any(|pair| cut.contains(pair))
}

/// The nearest name that is right everywhere.
fn mended(name: &str) -> String {
    let dashed: String = name
        .to_lowercase()
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c } else { '-' })
        .take(label::MAX_VALUE)
        .collect();
    match dashed.trim_matches('-') {
        "" => "workers".to_owned(),
        trimmed => trimmed.to_owned(),
    }
}
