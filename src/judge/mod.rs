//! The one function that judges an object: in the webhook, in the background audit, in `check`.

pub mod verdict;

use std::collections::HashSet;

pub use verdict::{Verdict, fold};

use crate::facts::Facts;
use crate::finding::{FaultIdentity, Finding};
use crate::policy::{Mode, Settings};
use crate::ray::RayObject;
use crate::rules::{self, Subject};

/// Judges `object` as it would be stored; `old` is what is stored now if this is an update.
///
/// An update that ends an object, or that leaves its judged parts as they were, is allowed at once.
/// An object that is being deleted is judged like any other until then: KubeRay acts on its spec as
/// long as a finalizer holds it. Findings that the old object already had warn at most. What
/// KubeRay's operator makes from a judged parent, or writes to take its finalizer off, is only
/// audited: denying it would stall what nobody watches.
pub fn judge(
    object: &RayObject<'_>,
    old: Option<&RayObject<'_>>,
    user: Option<&str>,
    facts: &Facts,
    settings: &Settings,
) -> Verdict {
    if old.is_some_and(|old| object.ends(old) || is_unchanged(object, old)) {
        return Verdict::default();
    }
    let findings = rules::run(&Subject {
        object,
        old,
        facts,
        settings,
        user,
    });
    let before = match old {
        Some(old) if !findings.is_empty() => rules::run(&Subject {
            object: old,
            old: None,
            facts,
            settings,
            user,
        }),
        _ => Vec::new(),
    };
    let faults: HashSet<FaultIdentity<'_>> = before.iter().map(Finding::fault).collect();
    let inherited = |finding: &Finding| faults.contains(&finding.fault());
    let ceiling = match old {
        Some(old) if old.is_deleting() && user == Some(&settings.operator_user) => Mode::Audit,
        _ => ceiling(object, user, settings),
    };
    fold(findings, settings, ceiling, inherited)
}

/// Everything that rules look at is as it was.
fn is_unchanged(object: &RayObject<'_>, old: &RayObject<'_>) -> bool {
    object.root.get("spec") == old.root.get("spec")
        && object.name() == old.name()
        && labels(object) == labels(old)
        && object.annotations().eq(old.annotations())
}

fn labels<'a>(object: &RayObject<'a>) -> Option<&'a serde_json::Value> {
    object.metadata()?.get("labels")
}

/// How far findings in an object may go. Without a user (offline) the owner reference decides.
pub fn ceiling(object: &RayObject<'_>, user: Option<&str>, settings: &Settings) -> Mode {
    let by_operator = user.is_none_or(|user| user == settings.operator_user);
    if by_operator && object.ray_owner().is_some() {
        Mode::Audit
    } else {
        Mode::Enforce
    }
}
