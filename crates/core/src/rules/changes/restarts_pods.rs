//! RF306: an update that replaces all pods of a running cluster.

use super::live_change::LiveChange;
use crate::rules::prelude::*;

pub(crate) static RULE: Rule = Rule {
    id: RuleId(306),
    name: "restarts-pods",
    mode: OwnMode::Always(Mode::Warn),
    summary: "The update replaces all pods of a running cluster (`upgradeStrategy: Recreate`)",
    page: include_str!("restarts_pods.md"),
    why: "KubeRay deletes all pods of the cluster at once, the head included, and creates new \
          ones, so running work is lost.",
    cel: Cel::NotCovered(
        "It needs a comparison of pod templates part by part, in which equal quantities may be written \
     differently.",
    ),
    check,
};

/// Fields that are not compared with the rest of an object: those that KubeRay's hash leaves out,
/// and the objects inside that are compared by themselves.
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

fn check(subject: &Subject<'_>, findings: &mut Vec<Finding>) {
    let Some(LiveChange { old, new }) = LiveChange::of(subject) else {
        return;
    };
    // With this strategy alone KubeRay compares the hash that it wrote on the head pod (from 1.6 on,
    // `shouldRecreatePodsForUpgrade`).
    if new.upgrade_strategy() != Some("Recreate") {
        return;
    }
    for place in differences(old, new) {
        let finding = RULE.finding(
            place.path,
            format!("{}, and upgradeStrategy is Recreate", place.what),
            "Apply it when the cluster may restart; or set upgradeStrategy: {type: None} in the same \
             update, so that only pods that are created later get it.",
        );
        // Defaults may have completed the template of a group that this update lists in `ray.io/ippr`.
        let is_newly_listed = |name: &&str| {
            let old_limits = subject.old.map(|old| old.ippr.resize_limits(name));
            subject.object.ippr.resize_limits(name).is_some() && old_limits == Some(None)
        };
        findings.push(match place.group.filter(is_newly_listed) {
            Some(name) => finding.because(format!(
                "Listing {name} in ray.io/ippr makes Rayfit complete its template, and KubeRay \
                 then deletes all pods of the cluster at once, the head included, so running work \
                 is lost."
            )),
            None => finding,
        });
    }
}

/// A place that differs. Values are not kept: pod templates hold secrets, and messages end up in
/// logs.
pub(super) struct TemplatePlace<'a> {
    path: FieldPath,
    /// The difference, as a clause.
    what: &'static str,
    /// The group, for a place in one.
    group: Option<&'a str>,
}

/// The places in which KubeRay's hashes of both differ.
pub(super) fn differences<'a>(old: &Cluster<'a>, new: &Cluster<'a>) -> Vec<TemplatePlace<'a>> {
    let mut places = Vec::new();
    let specs = (Some(old.spec), Some(new.spec));
    compare(specs, OF_SPEC, &new.path(), &mut places);
    if let (Some(old), Some(new)) = (&old.head, &new.head) {
        compare_groups(old, new, OF_HEAD, &mut places);
    }
    let workers = || old.workers.iter().zip(&new.workers);
    if old.workers.len() == new.workers.len() && workers().all(|(old, new)| old.name == new.name) {
        for (old, new) in workers() {
            compare_groups(old, new, OF_GROUP, &mut places);
        }
    } else {
        places.push(TemplatePlace {
            path: new.path().key("workerGroupSpecs"),
            what: "has groups added, removed or in another order",
            group: None,
        });
    }
    places
}

fn compare_groups<'a>(
    old: &Group<'a>,
    new: &Group<'a>,
    muted: &[&str],
    places: &mut Vec<TemplatePlace<'a>>,
) {
    let first = places.len();
    let path = new.path();
    compare((Some(old.spec), Some(new.spec)), muted, &path, places);
    let template = |group: &Group<'a>| group.spec.object("template");
    let path = path.key("template");
    let templates = (template(old), template(new));
    compare(templates, OF_TEMPLATE, &path, places);
    let path = new.pod_spec_path();
    compare((old.pod_spec, new.pod_spec), OF_POD_SPEC, &path, places);
    for place in &mut places[first..] {
        place.group = new.name;
    }
}

/// Adds one place for each key that differs, as deep as a single place holds the difference.
fn compare<'a>(
    (old, new): (Option<Fields<'a>>, Option<Fields<'a>>),
    muted: &[&str],
    path: &FieldPath,
    places: &mut Vec<TemplatePlace<'a>>,
) {
    for (key, old, new) in entries(old, new) {
        if !muted.contains(&key) && !is_same(old, new, false) {
            places.push(narrow(old, new, false, path.clone().key(key.to_owned())));
        }
    }
}

/// The keys of both objects with their values; null counts as absent.
fn entries<'a>(
    old: Option<Fields<'a>>,
    new: Option<Fields<'a>>,
) -> impl Iterator<Item = (&'a str, Option<Json<'a>>, Option<Json<'a>>)> {
    let value = |of: Option<Fields<'a>>, key: &str| of?.get(key).filter(|value| !value.is_null());
    let present = new.unwrap_or_default().keys();
    let removed = old.unwrap_or_default().keys();
    let removed = removed.filter(move |key| new.is_none_or(|new| !new.contains_key(key)));
    present
        .chain(removed)
        .map(move |key| (key, value(old, key), value(new, key)))
}

/// Both hash alike: absent is like null and like an empty list, and amounts count, not how they
/// are written.
fn is_same(old: Option<Json<'_>>, new: Option<Json<'_>>, amounts: bool) -> bool {
    match (old, new) {
        (None, None) => true,
        (None, Some(value)) | (Some(value), None) => value.as_array().is_some_and(Items::is_empty),
        (Some(Json::Object(old)), Some(Json::Object(new))) => entries(Some(old), Some(new))
            .all(|(key, old, new)| is_same(old, new, amounts || AMOUNTS.contains(&key))),
        (Some(Json::Array(old)), Some(Json::Array(new))) => {
            let mut pairs = old.iter().zip(new.iter());
            old.len() == new.len() && pairs.all(|(old, new)| is_same(Some(old), Some(new), amounts))
        }
        (Some(old), Some(new)) => {
            let amount = |value| Quantity::from_json(value).ok();
            old == new || amounts && amount(old).is_some() && amount(old) == amount(new)
        }
    }
}

/// The keys in a container's `resources` below which values are amounts.
const AMOUNTS: [&str; 2] = ["limits", "requests"];

/// The deepest place that holds the whole difference.
fn narrow<'a>(
    old: Option<Json<'a>>,
    new: Option<Json<'a>>,
    amounts: bool,
    path: FieldPath,
) -> TemplatePlace<'a> {
    // The only part of both values that differs, if it is only one.
    let deeper = match (old, new) {
        (Some(Json::Object(old)), Some(Json::Object(new))) => {
            let mut parts =
                entries(Some(old), Some(new)).filter(|(_, old, new)| !is_same(*old, *new, amounts));
            let only = parts.next().filter(|_| parts.next().is_none());
            only.map(|(key, old, new)| {
                let path = path.clone().key(key.to_owned());
                (old, new, amounts || AMOUNTS.contains(&key), path)
            })
        }
        (Some(Json::Array(old)), Some(Json::Array(new))) if old.len() == new.len() => {
            let mut parts = old.iter().zip(new.iter()).enumerate();
            let differs =
                |(_, (old, new)): &(usize, (_, _))| !is_same(Some(*old), Some(*new), amounts);
            let only = parts
                .find(differs)
                .filter(|_| !parts.any(|part| differs(&part)));
            only.map(|(index, (old, new))| {
                (Some(old), Some(new), amounts, path.clone().index(index))
            })
        }
        _ => None,
    };
    if let Some((old, new, amounts, path)) = deeper {
        return narrow(old, new, amounts, path);
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
