//! Facts: the resources of nodes, the limits of namespaces, and the pods of Ray clusters.

use std::collections::BTreeMap;
use std::sync::Arc;

use arc_swap::ArcSwap;
use kube::core::NotUsed;
use rayfit_core::facts::pods::CLUSTER;
use rayfit_core::facts::{LimitRange, Node, Nodes, RayPod, ResourceQuota};
use rayfit_core::json::Fields;
use rayfit_core::policy::EffectivePolicy;
use serde_json::{Map, Value};

use super::change::change;
use super::follow::follow;
use super::kinds::{ChangedPart, FactFields, GATHERED, value};
use crate::apiserver::{Informers, Selection};

/// The parts of a LimitRange or ResourceQuota that are read.
type BoundsPart = ChangedPart<Map<String, Value>, NotUsed>;

/// Keeps the facts up to date.
pub(super) async fn keep(informers: &Informers, policy: &ArcSwap<EffectivePolicy>) {
    tokio::join!(
        follow(
            informers,
            Selection::all("nodes", "/api/v1/nodes"),
            GATHERED,
            |object: ChangedPart<FactFields, FactFields>| Some(Node::read(
                (&value(&object)).into()
            )),
            |nodes| {
                // Built before the change and shared by it: the change runs again where another
                // kind has changed at the same moment.
                let nodes = Arc::new(Nodes::new(nodes.objects()));
                change(policy, |next| next.facts.nodes = nodes.clone());
            },
        ),
        follow(
            informers,
            Selection::all("LimitRanges", "/api/v1/limitranges"),
            GATHERED,
            |object: BoundsPart| of_namespace(&object, LimitRange::read),
            |ranges| {
                let ranges = Arc::new(grouped(ranges.objects()));
                change(policy, |next| next.facts.limit_ranges = ranges.clone());
            },
        ),
        follow(
            informers,
            Selection::all("ResourceQuotas", "/api/v1/resourcequotas"),
            GATHERED,
            |object: BoundsPart| of_namespace(&object, ResourceQuota::read),
            |quotas| {
                let quotas = Arc::new(grouped(quotas.objects()));
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
            |object: ChangedPart<FactFields, FactFields>| RayPod::read((&value(&object)).into()),
            |pods| {
                let pods = Arc::new(pods.objects().into_iter().collect());
                change(policy, |next| next.facts.pods = Arc::clone(&pods));
            },
        ),
    );
}

fn of_namespace<T>(object: &BoundsPart, read: impl Fn(Fields<'_>) -> T) -> Option<(String, T)> {
    let namespace = object.metadata.namespace.clone()?;
    Some((namespace, read((&value(object)).into())))
}

fn grouped<T>(items: Vec<(String, T)>) -> BTreeMap<String, Vec<T>> {
    let mut groups: BTreeMap<String, Vec<T>> = BTreeMap::new();
    for (namespace, item) in items {
        groups.entry(namespace).or_default().push(item);
    }
    groups
}
