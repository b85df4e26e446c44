//! The one function that checks an object: for the webhook, the background audit and `check`.
//!
//! In: an object, what was stored of it, settings and facts. Out: a verdict. Invariant: equal
//! arguments give equal verdicts, whoever asks.

pub mod verdict;

use std::collections::{HashMap, HashSet};

pub use verdict::{Verdict, fold};

use crate::facts::Facts;
use crate::finding::{FaultIdentity, Finding};
use crate::policy::{Mode, Settings};
use crate::ray::RayObject;
use crate::rules::{self, Subject};

/// Checks `object` as it would be stored; `old` is the stored object if this is an update.
///
/// An update that ends an object is allowed at once. Findings that the old object already had lead to warnings at most, and so does too much of
/// something where the old object had as much or more. Objects that KubeRay's operator creates from
/// a checked parent, and updates by which it removes its finalizer, are only audited.
pub fn judge(
    object: &RayObject<'_>,
    old: Option<&RayObject<'_>>,
    user: Option<&str>,
    facts: &Facts,
    settings: &Settings,
) -> Verdict {
    // An object that is being deleted is checked until then, because KubeRay acts on its spec as
    // long as it has a finalizer.
    if old.is_some_and(|old| object.ends(old)) {
        return Verdict::default();
    }
    let find = |object, old| {
        rules::run(&Subject {
            object,
            old,
            facts,
            settings,
            user,
        })
    };
    let findings = find(object, old);
    let old_findings = match old {
        // The stored object is checked by itself: whatever a rule finds in a change is new.
        Some(old) if !findings.is_empty() => find(old, None),
        _ => Vec::new(),
    };
    let faults: HashSet<FaultIdentity<'_>> = old_findings.iter().map(Finding::fault).collect();
    // Too much of something is known by its rule, its place and the thing that there is too much of.
    let excess = |finding: &Finding| {
        let (of, amount) = finding.amount?;
        Some(((finding.rule, finding.path.to_string(), of), amount))
    };
    let amounts: HashMap<_, _> = old_findings.iter().filter_map(excess).collect();
    let inherited = |finding: &Finding| {
        faults.contains(&finding.fault())
            || excess(finding).is_some_and(|(of, amount)| {
                amounts
                    .get(&of)
                    .is_some_and(|old_amount| amount <= *old_amount)
            })
    };
    // A denial would block the operator where no user sees the message.
    let ceiling = match old {
        Some(old) if old.is_deleting() && user.is_some_and(|user| settings.is_operator(user)) => {
            Mode::Audit
        }
        _ => ceiling(object, user, settings),
    };
    fold(findings, settings, ceiling, inherited)
}

/// The strictest mode for findings in an object. Without a user name (offline), what has a UID was stored by an API
/// server, and KubeRay made it if a Ray object controls it; a manifest can name any owner.
pub fn ceiling(object: &RayObject<'_>, user: Option<&str>, settings: &Settings) -> Mode {
    let by_operator =
        user.map_or_else(|| object.uid().is_some(), |user| settings.is_operator(user));
    if by_operator && object.ray_owner().is_some() {
        Mode::Audit
    } else {
        Mode::Enforce
    }
}
