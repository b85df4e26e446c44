//! What can be allowed from the raw text, without reading objects into trees.
//!
//! Ray's autoscaler, KubeRay's operator and finalizers update objects all the time; of an object
//! that is being deleted, or whose judged parts are the same bytes, there is nothing to say.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::review::Review;
use crate::ray::{Kind, ippr, reconcile};

/// Why a request is allowed without being judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Skip {
    /// Not a Ray object, a subresource, or neither created nor updated.
    NotOurs,
    /// The stored object is being deleted: what is left of it is finalizers.
    Deleting,
    /// Nothing that is judged or defaulted has changed.
    Unchanged,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Parts<'a> {
    #[serde(borrow)]
    metadata: MetadataParts<'a>,
    #[serde(borrow)]
    spec: Option<&'a RawValue>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct MetadataParts<'a> {
    #[serde(borrow)]
    name: Cow<'a, str>,
    #[serde(borrow)]
    labels: Option<&'a RawValue>,
    #[serde(borrow)]
    annotations: Option<&'a RawValue>,
    #[serde(borrow)]
    deletion_timestamp: Option<&'a RawValue>,
}

/// The kind to judge, or why the request is allowed without.
pub fn kind_to_judge(review: &Review<'_>) -> Result<Kind, Skip> {
    let ours = review.kind.group == "ray.io"
        && review.sub_resource.is_empty()
        && matches!(&*review.operation, "CREATE" | "UPDATE");
    Kind::from_name(&review.kind.kind)
        .filter(|_| ours)
        .ok_or(Skip::NotOurs)
}

/// Why an update needs no judging, if that can be told from the raw text. `None` is no answer:
/// the same value written in another way (order, white space) is left to the judge.
pub fn skip_update(object: &RawValue, old: &RawValue) -> Option<Skip> {
    let old: Parts<'_> = serde_json::from_str(old.get()).ok()?;
    if old.metadata.deletion_timestamp.is_some() {
        return Some(Skip::Deleting);
    }
    let new: Parts<'_> = serde_json::from_str(object.get()).ok()?;
    is_unchanged(&new, &old).then_some(Skip::Unchanged)
}

fn is_unchanged(new: &Parts<'_>, old: &Parts<'_>) -> bool {
    let (meta, before) = (&new.metadata, &old.metadata);
    same(new.spec, old.spec)
        && meta.name == before.name
        && same(meta.labels, before.labels)
        && same_annotations(meta.annotations, before.annotations)
}

fn same(new: Option<&RawValue>, old: Option<&RawValue>) -> bool {
    new.map(RawValue::get) == old.map(RawValue::get)
}

/// The annotations that rules look at are as they were.
fn same_annotations(new: Option<&RawValue>, old: Option<&RawValue>) -> bool {
    same(new, old)
        || match (judged(new), judged(old)) {
            (Some(new), Some(old)) => new == old,
            _ => false,
        }
}

/// The annotations that rules look at; `None` if they cannot be read.
fn judged(annotations: Option<&RawValue>) -> Option<BTreeMap<String, String>> {
    let Some(annotations) = annotations else {
        return Some(BTreeMap::new());
    };
    let mut all: BTreeMap<String, String> = serde_json::from_str(annotations.get()).ok()?;
    all.retain(|name, _| name == ippr::ANNOTATION || name.starts_with(reconcile::PREFIX));
    Some(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn skip(object: &str, old: &str) -> Option<Skip> {
        let raw = |text: &str| RawValue::from_string(text.to_owned()).unwrap();
        skip_update(&raw(object), &raw(old))
    }

    const OBJECT: &str =
        r#"{"metadata":{"name":"a","labels":{"x":"1"},"annotations":{"y":"2"}},"spec":{"a":1}}"#;

    #[test]
    fn an_object_that_is_being_deleted_is_skipped_whatever_it_holds() {
        let old = r#"{"metadata":{"deletionTimestamp":"2026-01-01T00:00:00Z"}}"#;
        assert_eq!(skip("[]", old), Some(Skip::Deleting));
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
        assert_eq!(skip(&changed, OBJECT), Some(Skip::Unchanged));
    }

    #[test]
    fn what_is_judged_may_not_change() {
        for (from, to) in [
            (r#""a":1"#, r#""a":2"#),
            (r#""x":"1""#, r#""x":"2""#),
            (r#""name":"a""#, r#""name":"b""#),
            (r#""y":"2""#, r#""ray.io/ippr":"{}""#),
            (r#""y":"2""#, r#""rayfit.dev/reconcile":"central""#),
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
