//! The existing Ray objects: their names and labels, to tell whether a policy matches none of them.

use std::sync::Arc;

use arc_swap::ArcSwap;
use kube::api::ObjectMeta;
use kube::core::NotUsed;
use rayfit_core::facts::StoredObject;
use rayfit_core::policy::EffectivePolicy;
use rayfit_core::ray::Kind;

use super::change::change;
use super::follow::follow;
use super::kinds::{ChangedPart, SOON, ray_objects};
use crate::apiserver::{Informers, Selection};

/// Keeps the names and labels up to date. The API server sends only the objects' metadata.
pub(super) async fn keep(informers: &Informers, policy: &ArcSwap<EffectivePolicy>) {
    let keep_kind = |kind| {
        let names = Selection {
            metadata_only: true,
            ..ray_objects(kind)
        };
        follow(
            informers,
            names,
            SOON,
            |object: ChangedPart<NotUsed, NotUsed>| stored(object.metadata).map(Arc::new),
            move |objects| {
                let objects = objects.objects();
                change(policy, |next| {
                    Arc::make_mut(&mut next.facts.objects).insert(kind, objects.clone().into());
                });
            },
        )
    };
    let [a, b, c, d] = Kind::ALL.map(keep_kind);
    tokio::join!(a, b, c, d);
}

/// The most bytes of labels that are kept of an object. One with more counts as having none.
// It could fill the memory, and labels only decide whether a new policy is said to match nothing.
const MOST_LABELS: usize = 4 << 10;

fn stored(metadata: ObjectMeta) -> Option<StoredObject> {
    let labels = metadata.labels.unwrap_or_default();
    let size: usize = labels
        .iter()
        .map(|(key, value)| key.len() + value.len())
        .sum();
    let labels = labels.into_iter().filter(|_| size <= MOST_LABELS);
    let labels = labels.map(|(key, value)| (key.into(), value.into()));
    Some(StoredObject {
        namespace: metadata.namespace?.into(),
        name: metadata.name?.into(),
        labels: labels.collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_that_would_fill_the_memory_are_not_kept() {
        let kept = |count: usize| {
            let labels = (0..count).map(|number| (format!("ray.io/{number:093}"), String::new()));
            let metadata = ObjectMeta {
                namespace: Some("a".to_owned()),
                name: Some("b".to_owned()),
                labels: Some(labels.collect()),
                ..ObjectMeta::default()
            };
            stored(metadata).unwrap().labels.len()
        };
        assert_eq!([kept(40), kept(12_000)], [40, 0]);
    }
}
