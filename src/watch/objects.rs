//! The existing Ray objects: their names and labels, to tell whether a policy matches none of them.

use std::sync::Arc;

use arc_swap::ArcSwap;
use kube::api::ObjectMeta;

use super::change::change;
use super::follow::follow;
use super::kinds::{self, ChangedPart, Nothing};
use crate::apiserver::Informers;
use crate::facts::StoredObject;
use crate::policy::EffectivePolicy;
use crate::ray::Kind;

/// Keeps the names and labels up to date. The API server sends only the objects' metadata.
pub(super) async fn keep(informers: &Informers, policy: &ArcSwap<EffectivePolicy>) {
    let [a, b, c, d] = Kind::ALL.map(|kind| keep_kind(informers, policy, kind));
    tokio::join!(a, b, c, d);
}

async fn keep_kind(informers: &Informers, policy: &ArcSwap<EffectivePolicy>, kind: Kind) {
    follow(
        informers,
        kinds::ray_names(kind),
        |object: ChangedPart<Nothing, Nothing>| stored(object.metadata).map(Arc::new),
        |objects| {
            let objects: Vec<_> = objects.objects().cloned().collect();
            change(policy, |next| {
                Arc::make_mut(&mut next.facts.objects).insert(kind, objects.clone().into());
            });
        },
    )
    .await;
}

fn stored(metadata: ObjectMeta) -> Option<StoredObject> {
    let labels = metadata.labels.unwrap_or_default().into_iter();
    Some(StoredObject {
        namespace: metadata.namespace?.into(),
        name: metadata.name?.into(),
        labels: labels
            .map(|(key, value)| (key.into(), value.into()))
            .collect(),
    })
}
