//! What admission fills in: a minimal JSON patch, computed on the JSON itself so that unknown
//! fields survive untouched.
//!
//! Two rules hold for every default. It touches nothing that is present (a key with null is
//! present). And on an update it is applied only where the update itself brings the reason, or
//! where the stored object had a value that the update lost, which is then carried over:
//! installing or upgrading Rayfit must never change, and so restart, a cluster that is there.
//! [`draft`] is where both are kept; each default is one file beside it.

pub mod autoscaler_version;
pub mod draft;
pub mod head_work;
pub mod ray_sidecar;
pub mod rayfit_sidecar;
pub mod reconcile_mode;
pub mod requests;
pub mod resize_policy;
pub mod scaling_speed;
pub mod worker_start;

use std::fmt;

use json_patch::Patch;
use serde_json::Value;

pub use draft::{Draft, Entry, Origin};

use crate::path::FieldPath;
use crate::policy::Settings;
use crate::ray::{Fields, RayObject};

/// The stable number of a default: never reused, never renumbered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DefaultId(pub u8);

impl fmt::Display for DefaultId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DF{:02}", self.0)
    }
}

/// A default: what it is, for people, and how it is applied.
#[derive(Debug)]
pub struct DefaultRule {
    /// The stable number.
    pub id: DefaultId,
    /// The stable short name, in kebab case.
    pub name: &'static str,
    /// One line for tables.
    pub summary: &'static str,
    /// What is filled in, and when.
    pub what: &'static str,
    /// What it is good for.
    pub why: &'static str,
    /// A manifest (YAML) that gets the default; only what matters is in it.
    pub before: &'static str,
    /// The same manifest as it is stored.
    pub after: &'static str,
    /// The first release that has it.
    pub since: &'static str,
    /// Drafts what it fills in.
    pub apply: fn(&mut Draft<'_>),
}

/// Every default, by number.
pub static DEFAULTS: &[&DefaultRule] = &[
    &requests::DEFAULT,
    &resize_policy::DEFAULT,
    &autoscaler_version::DEFAULT,
    &ray_sidecar::DEFAULT,
    &scaling_speed::DEFAULT,
    &rayfit_sidecar::DEFAULT,
    &reconcile_mode::DEFAULT,
    &head_work::DEFAULT,
    &worker_start::DEFAULT,
];

/// One value that was filled in.
#[derive(Debug, Clone, PartialEq)]
pub struct Applied {
    /// The default that did it.
    pub id: DefaultId,
    /// Where.
    pub path: FieldPath,
    /// What.
    pub value: Value,
    /// Why just this value.
    pub origin: Origin,
}

impl fmt::Display for Applied {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} = {}", self.id, self.path, self.value)?;
        match self.origin {
            Origin::Fresh => Ok(()),
            Origin::CarriedOver => f.write_str(" (as it was before this update)"),
        }
    }
}

/// What admission fills in for one object.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Defaulted {
    /// The patch; empty if there is nothing to fill in.
    pub operations: Patch,
    /// The same for people, one entry per value.
    pub applied: Vec<Applied>,
}

/// What admission fills in for `object`; `old` is what is stored now if this is an update.
pub fn patch(
    object: &RayObject<'_>,
    old: Option<&RayObject<'_>>,
    settings: &Settings,
) -> Defaulted {
    if object.is_deleting() || old.is_some_and(RayObject::is_deleting) {
        return Defaulted::default();
    }
    let mut first = Draft::new(object, old, settings);
    (reconcile_mode::DEFAULT.apply)(&mut first);
    let mode = first.finish();
    let rest = match with(object, &mode) {
        None => fill_in(object, old, settings),
        Some(root) => fill_in(&RayObject::of_kind(object.kind, &root), old, settings),
    };
    mode.followed_by(rest)
}

/// The object with a mode filled in, by which the other defaults go; `None` if it is as it was.
fn with(object: &RayObject<'_>, mode: &Defaulted) -> Option<Fields> {
    if mode.applied.is_empty() {
        return None;
    }
    let mut root = Value::Object(object.root.clone());
    json_patch::patch(&mut root, &mode.operations).ok()?;
    match root {
        Value::Object(root) => Some(root),
        _ => None,
    }
}

/// Every default but the mode.
fn fill_in(object: &RayObject<'_>, old: Option<&RayObject<'_>>, settings: &Settings) -> Defaulted {
    let mut draft = Draft::new(object, old, settings);
    for default in DEFAULTS {
        if default.id != reconcile_mode::DEFAULT.id {
            (default.apply)(&mut draft);
        }
    }
    draft.finish()
}

impl Defaulted {
    fn followed_by(mut self, other: Self) -> Self {
        self.operations.0.extend(other.operations.0);
        self.applied.extend(other.applied);
        self
    }
}
