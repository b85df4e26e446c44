//! Facts: the resources of nodes, the limits of namespaces, and the pods of Ray clusters.

use std::collections::BTreeMap;
use std::sync::Arc;

use arc_swap::ArcSwap;
use rayfit_core::facts::pods::CLUSTER;
use rayfit_core::facts::{LimitRange, Node, Nodes, RayPod, ResourceQuota};
use rayfit_core::policy::EffectivePolicy;
use rayfit_core::ray::Fields;
use serde::Serialize;

use super::change::change;
use super::follow::{Known, follow};
use super::kinds::{ChangedPart, FactFields, GATHERED, Nothing, fields};
use crate::apiserver::{Informers, Selection};

/// Keeps the facts up to date.
pub(super) async fn keep(informers: &Informers, policy: &ArcSwap<EffectivePolicy>) {
    tokio::join!(
        follow(
            informers,
            Selection::all("nodes", "/api/v1/nodes"),
            GATHERED,
            |object: ChangedPart<FactFields, FactFields>| Some(Node::read(&fields(&object))),
            |nodes| {
                // Built before the change and shared by it: the change runs again where another
                // kind has changed at the same moment.
                let nodes = Arc::new(Nodes::new(all(&nodes)));
                change(policy, |next| next.facts.nodes = nodes.clone());
            },
        ),
        follow(
            informers,
            Selection::all("LimitRanges", "/api/v1/limitranges"),
            GATHERED,
            |object: ChangedPart<Fields, Nothing>| of_namespace(&object, LimitRange::read),
            |ranges| {
                let ranges = Arc::new(grouped(all(&ranges)));
                change(policy, |next| next.facts.limit_ranges = ranges.clone());
            },
        ),
        follow(
            informers,
            Selection::all("ResourceQuotas", "/api/v1/resourcequotas"),
            GATHERED,
            |object: ChangedPart<Fields, Nothing>| of_namespace(&object, ResourceQuota::read),
            |quotas| {
                let quotas = Arc::new(grouped(all(&quotas)));
                change(policy, |next| next.facts.resource_quotas = quotas.clone());
            },
        ),
        follow(
            informers,
            Selection {
                labels: Some(CLUSTER.to_owned()),
                ..Selection::all("pods of Ray clusters", "/api/v1/pods")
            },
            GATHERED,
            |object: ChangedPart<FactFields, FactFields>| RayPod::read(&fields(&object)),
            |pods| {
                let pods = Arc::new(all(&pods).into_iter().collect());
                change(policy, |next| next.facts.pods = Arc::clone(&pods));
            },
        ),
    );
}

/// The known objects; none where they are unknown.
fn all<T: Clone>(objects: &Known<'_, T>) -> Vec<T> {
    objects.objects().cloned().collect()
}

fn of_namespace<P: Serialize, U: Serialize, T>(
    object: &ChangedPart<P, U>,
    read: impl Fn(&Fields) -> T,
) -> Option<(String, T)> {
    Some((object.metadata.namespace.clone()?, read(&fields(object))))
}

fn grouped<T>(items: Vec<(String, T)>) -> BTreeMap<String, Vec<T>> {
    let mut groups: BTreeMap<String, Vec<T>> = BTreeMap::new();
    for (namespace, item) in items {
        groups.entry(namespace).or_default().push(item);
    }
    groups
}
