//! One OpenReports report for each object with findings, where that API is installed.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use kube::api::{Api, ApiResource, DeleteParams, DynamicObject, ListParams, Patch, PatchParams};
use kube::core::GroupVersionKind;
use kube::{Client, Error};
use serde_json::Value;

use super::board::Board;
use crate::census::open_report::{MANAGED_BY, report};

/// Where a report is: namespace and name.
type Place = (String, String);

/// Reports that were written, by place, as fingerprints.
#[derive(Debug, Default)]
pub(super) struct Written {
    known: Option<BTreeMap<Place, u64>>,
}

/// Writes reports that have changed and deletes those of objects that have no findings any more.
/// Whoever installs the API later gets reports with the next sweep.
pub(super) async fn write(client: &Client, board: &Board, written: &mut Written) {
    let known = match written.known.take() {
        Some(known) => known,
        None => match stored(client).await {
            Some(known) => known,
            None => return,
        },
    };
    let mut wanted: BTreeMap<Place, Value> = BTreeMap::new();
    board.each(|judged| {
        if let Some(report) = report(judged) {
            let place = |key: &str| {
                report["metadata"][key]
                    .as_str()
                    .unwrap_or_default()
                    .to_owned()
            };
            wanted.insert((place("namespace"), place("name")), report);
        }
    });
    let mut next = BTreeMap::new();
    for (place, report) in &wanted {
        let print = fingerprint(report);
        if known.get(place) == Some(&print) || apply(client, place, report).await {
            next.insert(place.clone(), print);
        }
    }
    let gone: BTreeSet<&Place> = known
        .keys()
        .filter(|place| !wanted.contains_key(*place))
        .collect();
    for place in gone {
        delete(client, place).await;
    }
    written.known = Some(next);
}

fn resource() -> ApiResource {
    ApiResource::from_gvk_with_plural(
        &GroupVersionKind::gvk("openreports.io", "v1alpha1", "Report"),
        "reports",
    )
}

/// Reports that an earlier holder of the Lease wrote: all of them are written once again. `None`
/// where the API is not installed.
async fn stored(client: &Client) -> Option<BTreeMap<Place, u64>> {
    let api: Api<DynamicObject> = Api::all_with(client.clone(), &resource());
    let ours = ListParams::default().labels(&format!("{MANAGED_BY}=rayfit"));
    match api.list_metadata(&ours).await {
        Ok(listed) => Some(
            listed
                .into_iter()
                .filter_map(|report| Some((report.metadata.namespace?, report.metadata.name?)))
                .map(|place| (place, 0))
                .collect(),
        ),
        Err(Error::Api(status)) if status.code == 404 => None,
        Err(error) => {
            tracing::debug!(%error, "audit: cannot list OpenReports");
            None
        }
    }
}

async fn apply(client: &Client, (namespace, name): &Place, report: &Value) -> bool {
    let api: Api<DynamicObject> = Api::namespaced_with(client.clone(), namespace, &resource());
    let applied = api
        .patch(
            name,
            &PatchParams::apply("rayfit").force(),
            &Patch::Apply(report),
        )
        .await;
    if let Err(error) = &applied {
        tracing::warn!(%error, namespace, name, "audit: cannot write a report");
    }
    applied.is_ok()
}

async fn delete(client: &Client, (namespace, name): &Place) {
    let api: Api<DynamicObject> = Api::namespaced_with(client.clone(), namespace, &resource());
    match api.delete(name, &DeleteParams::default()).await {
        Ok(_) => {}
        Err(Error::Api(status)) if status.code == 404 => {}
        Err(error) => tracing::warn!(%error, namespace, name, "audit: cannot delete a report"),
    }
}

fn fingerprint(report: &Value) -> u64 {
    let mut hasher = DefaultHasher::new();
    report.to_string().hash(&mut hasher);
    hasher.finish()
}
