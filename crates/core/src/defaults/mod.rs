//! Defaults that admission fills in: a minimal JSON patch, computed on the JSON itself so that
//! unknown fields survive untouched.
//!
//! Two rules hold for every default. It touches nothing that is present (a key with null is
//! present). And on an update it is applied only where the update itself brings the reason, or
//! where the stored object had a value that the update lost, which is then carried over:
//! installing or upgrading Rayfit must never change, and so restart, a cluster that is there.
//! [`draft`] is where both are kept; each default is one file beside it.

mod applied;
pub mod autoscaler_version;
pub mod draft;
pub mod graceful_end;
pub mod head_work;
pub mod ray_sidecar;
pub mod rayfit_sidecar;
pub mod reconcile_mode;
pub mod requests;
pub mod resize_policy;
pub mod restart_policy;
mod rule;
pub mod scaling_speed;
pub mod worker_start;

use serde_json::Value;

pub use applied::{AppliedValue, DefaultId, DefaultPatch, Origin};
pub use draft::DefaultsDraft;
pub use rule::DefaultRule;

use crate::policy::Settings;
use crate::ray::RayObject;

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
    &graceful_end::DEFAULT,
    &restart_policy::DEFAULT,
];

/// The defaults for `object`; `old` is the stored object if this is an update.
pub fn patch(
    object: &RayObject<'_>,
    old: Option<&RayObject<'_>>,
    settings: &Settings,
) -> DefaultPatch {
    // Nothing may keep an object that is being deleted from losing its finalizers.
    if object.is_deleting() || old.is_some_and(RayObject::is_deleting) {
        return DefaultPatch::default();
    }
    let mut draft = DefaultsDraft::new(object, old, settings);
    (reconcile_mode::DEFAULT.apply)(&mut draft);
    let mut patch = draft.patch;
    // The other defaults go by the object with its mode.
    let mut root =
        (!patch.applied.is_empty()).then(|| Value::Object(object.root.to_map().into_owned()));
    let root = root.as_mut().and_then(|root| {
        json_patch::patch(root, &patch.operations).ok()?;
        root.as_object()
    });
    let with_mode = root.map(|root| RayObject::of_kind(object.kind, root));
    let mut draft = DefaultsDraft::new(with_mode.as_ref().unwrap_or(object), old, settings);
    for default in DEFAULTS {
        if default.id != reconcile_mode::DEFAULT.id {
            (default.apply)(&mut draft);
        }
    }
    let DefaultPatch {
        operations,
        applied,
    } = draft.patch;
    patch.operations.0.extend(operations.0);
    patch.applied.extend(applied);
    patch
}
