//! Requests that can be allowed from the raw text, without parsing objects into trees.
//!
//! Ray's autoscaler, KubeRay's operator and finalizers update objects all the time. An update that
//! leaves the same bytes in the checked parts, or that ends an object, cannot have findings.

use std::collections::BTreeMap;

use rayfit_core::ray::object::is_judged;
use serde_json::value::RawValue;

use super::review::{ObjectParts, Webhook};
use crate::telemetry::reviews::ReviewOutcome;

/// The outcome of an update that needs no check, or no defaults, if the raw text shows that: the stored object is
/// being deleted, or nothing has changed that is checked or defaulted. API servers write equal values in equal
/// words: the same value in others (order, white space) is checked.
pub fn skip_update(webhook: Webhook, object: &RawValue, old: &RawValue) -> Option<ReviewOutcome> {
    let old: ObjectParts<'_> = serde_json::from_str(old.get()).ok()?;
    // The stored object alone shows it: API servers refuse an update that changes the time of
    // deletion.
    let deleting = old.metadata.deletion_timestamp.is_some();
    if deleting && webhook == Webhook::Mutate {
        return Some(ReviewOutcome::Deleting);
    }
    let new: ObjectParts<'_> = serde_json::from_str(object.get()).ok()?;
    // The update that removes the last finalizer ends the object, so nothing else in it takes effect.
    if deleting && new.metadata.finalizers.as_ref().is_none_or(Vec::is_empty) {
        return Some(ReviewOutcome::Deleting);
    }
    let (meta, stored) = (&new.metadata, &old.metadata);
    let same = |new: Option<&RawValue>, old: Option<&RawValue>| {
        new.map(RawValue::get) == old.map(RawValue::get)
    };
    let is_unchanged = same(new.spec, old.spec)
        && meta.name == stored.name
        // RayPolicies select by labels, so other rules may hold now.
        && same(meta.labels, stored.labels)
        && (same(meta.annotations, stored.annotations)
            || judged(meta.annotations)? == judged(stored.annotations)?);
    is_unchanged.then_some(ReviewOutcome::Unchanged)
}

/// The annotations that rules read; `None` if they cannot be parsed.
fn judged(annotations: Option<&RawValue>) -> Option<BTreeMap<String, String>> {
    let Some(annotations) = annotations else {
        return Some(BTreeMap::new());
    };
    let mut all: BTreeMap<String, String> = serde_json::from_str(annotations.get()).ok()?;
    all.retain(|name, _| is_judged(name));
    Some(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn skip(object: &str, old: &str) -> Option<ReviewOutcome> {
        let raw = |text: &str| RawValue::from_string(text.to_owned()).unwrap();
        skip_update(Webhook::Validate, &raw(object), &raw(old))
    }

    const OBJECT: &str =
        r#"{"metadata":{"name":"a","labels":{"x":"1"},"annotations":{"y":"2"}},"spec":{"a":1}}"#;

    #[test]
    fn an_update_that_ends_an_object_is_skipped_whatever_it_holds() {
        let old = r#"{"metadata":{"deletionTimestamp":"2026-01-01T00:00:00Z"}}"#;
        let held = r#"{"metadata":{"finalizers":["a"]},"spec":1}"#;
        for ended in [
            r#"{"spec":1}"#,
            r#"{"metadata":{"finalizers":[]},"spec":1}"#,
        ] {
            assert_eq!(skip(ended, old), Some(ReviewOutcome::Deleting));
        }
        assert_eq!(skip(held, old), None);
        let raw = |text: &str| RawValue::from_string(text.to_owned()).unwrap();
        let defaulted = skip_update(Webhook::Mutate, &raw(held), &raw(old));
        assert_eq!(defaulted, Some(ReviewOutcome::Deleting));
        assert_eq!(
            skip(
                r#"{"spec":1}"#,
                r#"{"metadata":{"deletionTimestamp":null}}"#
            ),
            None
        );
        // Only the stored object is trusted in this: anyone can write the field.
        assert_eq!(skip(old, r#"{"spec":2}"#), None);
    }

    #[test]
    fn other_annotations_status_and_managers_may_change() {
        let changed = OBJECT
            .replace(r#""y":"2""#, r#""y":"3""#)
            .replace(r#""spec""#, r#""status":{"state":"ready"},"spec""#);
        assert_eq!(skip(&changed, OBJECT), Some(ReviewOutcome::Unchanged));
    }

    #[test]
    fn what_is_judged_may_not_change() {
        for (from, to) in [
            (r#""a":1"#, r#""a":2"#),
            (r#""x":"1""#, r#""x":"2""#),
            (r#""name":"a""#, r#""name":"b""#),
            (r#""y":"2""#, r#""ray.io/ippr":"{}""#),
            (r#""y":"2""#, r#""rayfit.dev/reconcile":"central""#),
            (r#""y":"2""#, r#""kueue.x-k8s.io/elastic-job":"true""#),
            (r#""y":"2""#, r#""y":2"#),
            (r#","spec":{"a":1}"#, ""),
            (r#""spec":{"a":1}"#, r#""spec":{"a":1},"spec":{"a":1}"#),
        ] {
            let changed = OBJECT.replace(from, to);
            assert_ne!(changed, OBJECT);
            assert_eq!(skip(&changed, OBJECT), None, "{changed}");
            assert_eq!(skip(OBJECT, &changed), None, "{changed}");
        }
    }
}
