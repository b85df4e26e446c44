//! RF306: an update that replaces all pods of a running cluster.

use serde_json::Value;

use crate::path::FieldPath;
use crate::policy::Mode;
use crate::quantity::Quantity;
use crate::ray::{Cluster, Fields, Group, object_at};
use crate::rule_id::RuleId;
use crate::rule_page::RulePage;
use crate::rules::{Cel, Findings, OwnMode, Rule, Subject};

use super::live_change::LiveChange;

/// RF306
pub static RULE: Rule = Rule {
    id: RuleId(306),
    name: "restarts-pods",
    mode: OwnMode::Always(Mode::Warn),
    summary: "The update replaces all pods of a running cluster (`upgradeStrategy: Recreate`)",
    page: RulePage(include_str!("restarts_pods.md")),
    why: "KubeRay deletes all pods of the cluster at once, the head included, and creates new \
          ones, so running work is lost.",
    since: "0.1.0",
    cel: CEL,
    check,
};

const CEL: Cel = Cel::NotCovered(
    "It needs a comparison of pod templates part by part, in which equal quantities may be written \
     differently.",
);

/// What is not compared with the rest of an object: the fields that KubeRay's hash leaves out, and
/// the objects inside that are compared by themselves.
const OF_SPEC: &[&str] = &["upgradeStrategy", "headGroupSpec", "workerGroupSpecs"];
const OF_GROUP: &[&str] = &[
    "replicas",
    "minReplicas",
    "maxReplicas",
    "scaleStrategy",
    "template",
];
const OF_HEAD: &[&str] = &["template"];
const OF_TEMPLATE: &[&str] = &["spec"];
const OF_POD_SPEC: &[&str] = &["tolerations", "schedulingGates"];

fn check(subject: &Subject<'_>, findings: &mut Findings) {
    let Some(LiveChange { old, new }) = LiveChange::of(subject) else {
        return;
    };
    if new.upgrade_strategy() != Some("Recreate") {
        return;
    }
    for place in differences(old, new) {
        report(subject, place, findings);
    }
}

/// Whether KubeRay's hashes of both are equal.
pub(super) fn is_same_to_kuberay(old: &Cluster<'_>, new: &Cluster<'_>) -> bool {
    differences(old, new).is_empty()
}

fn differences<'a>(old: &Cluster<'a>, new: &Cluster<'a>) -> Vec<TemplatePlace<'a>> {
    let mut places = Vec::new();
    compare(
        Some(old.spec),
        Some(new.spec),
        OF_SPEC,
        &new.path(),
        &mut places,
    );
    if let (Some(before), Some(after)) = (&old.head, &new.head) {
        compare_groups(before, after, OF_HEAD, &mut places);
    }
    compare_workers(old, new, &mut places);
    places
}

/// A place that differs. Values are not kept: pod templates hold secrets, and messages end up in
/// logs.
struct TemplatePlace<'a> {
    path: FieldPath,
    /// How it differs, a clause.
    what: &'static str,
    /// The group, for a place in one.
    group: Option<&'a str>,
}

fn compare_workers<'a>(old: &Cluster<'a>, new: &Cluster<'a>, places: &mut Vec<TemplatePlace<'a>>) {
    let same_groups = old.workers.len() == new.workers.len()
        && old
            .workers
            .iter()
            .zip(&new.workers)
            .all(|(o, n)| o.name == n.name);
    if same_groups {
        for (before, after) in old.workers.iter().zip(&new.workers) {
            compare_groups(before, after, OF_GROUP, places);
        }
    } else {
        places.push(TemplatePlace {
            path: new.path().key("workerGroupSpecs"),
            what: "has groups added, removed or in another order",
            group: None,
        });
    }
}

fn compare_groups<'a>(
    old: &Group<'a>,
    new: &Group<'a>,
    muted: &[&str],
    places: &mut Vec<TemplatePlace<'a>>,
) {
    let first = places.len();
    let path = new.path();
    compare(Some(old.spec), Some(new.spec), muted, &path, places);
    let template = |group: &Group<'a>| object_at(group.spec, "template");
    let path = path.key("template");
    compare(template(old), template(new), OF_TEMPLATE, &path, places);
    let path = new.pod_spec_path();
    compare(old.pod_spec(), new.pod_spec(), OF_POD_SPEC, &path, places);
    for place in &mut places[first..] {
        place.group = new.name;
    }
}

/// Adds one place for each key that differs, as deep as a single place holds the difference.
fn compare<'a>(
    old: Option<&'a Fields>,
    new: Option<&'a Fields>,
    muted: &[&str],
    path: &FieldPath,
    places: &mut Vec<TemplatePlace<'a>>,
) {
    for (key, old, new) in entries(old, new) {
        if !muted.contains(&key.as_str()) && !is_same(old, new, false) {
            places.push(narrow(old, new, path.clone().key(key.clone())));
        }
    }
}

/// The keys of both objects with their values; null counts as absent.
fn entries<'a>(
    old: Option<&'a Fields>,
    new: Option<&'a Fields>,
) -> impl Iterator<Item = (&'a String, Option<&'a Value>, Option<&'a Value>)> {
    let value = |of: Option<&'a Fields>, key: &str| of?.get(key).filter(|value| !value.is_null());
    let kept = new.into_iter().flat_map(Fields::keys);
    let gone = old
        .into_iter()
        .flat_map(Fields::keys)
        .filter(move |key| new.is_none_or(|new| !new.contains_key(*key)));
    kept.chain(gone)
        .map(move |key| (key, value(old, key), value(new, key)))
}

/// Both hash alike: absent is like null and like an empty list, and amounts count, not how they
/// are written.
fn is_same(old: Option<&Value>, new: Option<&Value>, amounts: bool) -> bool {
    match (old, new) {
        (None, None) => true,
        (None, Some(value)) | (Some(value), None) => value.as_array().is_some_and(Vec::is_empty),
        (Some(Value::Object(old)), Some(Value::Object(new))) => entries(Some(old), Some(new))
            .all(|(key, old, new)| is_same(old, new, amounts || holds_amounts(key))),
        (Some(Value::Array(old)), Some(Value::Array(new))) => {
            old.len() == new.len()
                && old
                    .iter()
                    .zip(new)
                    .all(|(old, new)| is_same(Some(old), Some(new), amounts))
        }
        (Some(old), Some(new)) => {
            old == new
                || amounts
                    && matches!(
                        (Quantity::from_json(old), Quantity::from_json(new)),
                        (Ok(old), Ok(new)) if old == new
                    )
        }
    }
}

/// The values below that key are amounts, in a container's `resources`.
fn holds_amounts(key: &str) -> bool {
    matches!(key, "limits" | "requests")
}

/// The deepest place that holds the whole difference.
fn narrow<'a>(
    mut old: Option<&'a Value>,
    mut new: Option<&'a Value>,
    mut path: FieldPath,
) -> TemplatePlace<'a> {
    let mut amounts = false;
    while let Some((step, deeper_old, deeper_new)) = only_difference(old, new, amounts) {
        (old, new) = (deeper_old, deeper_new);
        path = match step {
            RestartStep::Key(key) => {
                amounts |= holds_amounts(key);
                path.key(key.to_owned())
            }
            RestartStep::Index(index) => path.index(index),
        };
    }
    TemplatePlace {
        path,
        what: match (old, new) {
            (None, _) => "is new",
            (_, None) => "is gone",
            _ => "changes",
        },
        group: None,
    }
}

enum RestartStep<'a> {
    Key(&'a str),
    Index(usize),
}

type Difference<'a> = (RestartStep<'a>, Option<&'a Value>, Option<&'a Value>);

/// The only part of both values that differs, if it is only one.
fn only_difference<'a>(
    old: Option<&'a Value>,
    new: Option<&'a Value>,
    amounts: bool,
) -> Option<Difference<'a>> {
    match (old?, new?) {
        (Value::Object(old), Value::Object(new)) => single(
            entries(Some(old), Some(new))
                .filter(|(_, old, new)| !is_same(*old, *new, amounts))
                .map(|(key, old, new)| (RestartStep::Key(key), old, new)),
        ),
        (Value::Array(old), Value::Array(new)) if old.len() == new.len() => single(
            old.iter()
                .zip(new)
                .enumerate()
                .filter(|(_, (old, new))| !is_same(Some(old), Some(new), amounts))
                .map(|(index, (old, new))| (RestartStep::Index(index), Some(old), Some(new))),
        ),
        _ => None,
    }
}

fn single<T>(mut items: impl Iterator<Item = T>) -> Option<T> {
    let first = items.next()?;
    items.next().is_none().then_some(first)
}

fn report(subject: &Subject<'_>, place: TemplatePlace<'_>, findings: &mut Findings) {
    let brought = place.group.filter(|name| is_newly_listed(subject, name));
    let finding = RULE.finding(
        place.path,
        format!("{}, and upgradeStrategy is Recreate", place.what),
        "Apply it when the cluster may restart; or set upgradeStrategy: {type: None} in the same \
         update, so that only pods that are created later get it.",
    );
    findings.add(match brought {
        Some(name) => finding.because(format!(
            "Listing {name} in ray.io/ippr makes Rayfit complete its template, and KubeRay then \
             deletes all pods of the cluster at once, the head included, so running work is lost."
        )),
        None => finding,
    });
}

/// This update lists the group in `ray.io/ippr`, so defaults may have completed its template.
fn is_newly_listed(subject: &Subject<'_>, name: &str) -> bool {
    subject.object.ippr.resize_limits(name).is_some()
        && subject
            .old
            .is_some_and(|old| old.ippr.resize_limits(name).is_none())
}
