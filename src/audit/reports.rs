//! The reports: one OpenReports report for each object with findings, where that API is installed.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use kube::api::{Api, ApiResource, DeleteParams, DynamicObject, ListParams, Patch, PatchParams};
use kube::core::GroupVersionKind;
use kube::{Client, Error};
use rayfit_core::object_audit::open_report::{MANAGED_BY, name, report};
use serde_json::{Value, json};

use super::board::Board;

/// The namespace and name of a report.
type ReportPlace = (String, String);

/// The annotation by which a later holder of the Lease recognises that a report is up to date.
const FINGERPRINT: &str = "rayfit.dev/fingerprint";

/// The number of reports in a page of a list.
const PAGE: u32 = 200;

/// The reports that were written, as fingerprints by namespace and name; `None` until they have been listed.
pub(super) type Written = Option<BTreeMap<ReportPlace, String>>;

/// Writes reports that have changed, and deletes those of objects that have no findings any more.
///
/// Returns `false` if something could not be read or written, so that it has to be tried again.
pub(super) async fn write(client: &Client, board: &Board, written: &mut Written) -> bool {
    if written.is_none() {
        match stored(client).await {
            Ok(stored) => *written = stored,
            Err(error) => {
                tracing::warn!(%error, "audit: cannot list reports, so none is written; trying again");
                return false;
            }
        }
    }
    // The API is not installed. If it is later, the next sweep writes the reports.
    let Some(stored_prints) = written else {
        return true;
    };
    let mut is_done = true;
    let mut current: BTreeSet<ReportPlace> = BTreeSet::new();
    // Reports are built one at a time, because all together would take too much memory.
    for judged in board.all() {
        let namespace = judged.object.namespace.clone().unwrap_or_default();
        let place = (namespace, name(&judged));
        // A hash of the findings and of the version of Rayfit that writes them. It may differ in the next
        // release of Rust: then each report is written once more.
        let mut hasher = DefaultHasher::new();
        env!("CARGO_PKG_VERSION").hash(&mut hasher);
        judged.hash(&mut hasher);
        let print = format!("{:016x}", hasher.finish());
        if stored_prints.get(&place) == Some(&print) {
            current.insert(place);
        } else if let Some(mut report) = report(&judged) {
            report["metadata"]["annotations"] = json!({ FINGERPRINT: print });
            if apply(client, &place, &report).await {
                stored_prints.insert(place.clone(), print);
            } else {
                is_done = false;
            }
            current.insert(place);
        }
    }
    let obsolete = stored_prints
        .keys()
        .filter(|place| !current.contains(*place));
    for place in obsolete.cloned().collect::<Vec<_>>() {
        let (namespace, name) = &place;
        let api: Api<DynamicObject> = Api::namespaced_with(client.clone(), namespace, &resource());
        match api.delete(name, &DeleteParams::default()).await {
            Err(error) if !matches!(&error, Error::Api(status) if status.code == 404) => {
                tracing::warn!(%error, namespace, name, "audit: cannot delete a report");
                is_done = false;
            }
            _ => {
                stored_prints.remove(&place);
            }
        }
    }
    is_done
}

fn resource() -> ApiResource {
    ApiResource::from_gvk_with_plural(
        &GroupVersionKind::gvk("openreports.io", "v1alpha1", "Report"),
        "reports",
    )
}

/// The reports that this or an earlier holder of the Lease wrote. `None` where the API is not
/// installed.
async fn stored(client: &Client) -> Result<Option<BTreeMap<ReportPlace, String>>, Error> {
    let api: Api<DynamicObject> = Api::all_with(client.clone(), &resource());
    let mut page = ListParams::default()
        .labels(&format!("{MANAGED_BY}=rayfit"))
        .limit(PAGE);
    let mut stored = BTreeMap::new();
    loop {
        let listed = match api.list_metadata(&page).await {
            Ok(listed) => listed,
            Err(Error::Api(status)) if status.code == 404 => return Ok(None),
            Err(error) => return Err(error),
        };
        for report in listed.items {
            let annotations = report.metadata.annotations.unwrap_or_default();
            let print = annotations.get(FINGERPRINT).cloned().unwrap_or_default();
            if let (Some(namespace), Some(name)) = (report.metadata.namespace, report.metadata.name)
            {
                stored.insert((namespace, name), print);
            }
        }
        page.continue_token = listed.metadata.continue_.filter(|token| !token.is_empty());
        if page.continue_token.is_none() {
            return Ok(Some(stored));
        }
    }
}

async fn apply(client: &Client, (namespace, name): &ReportPlace, report: &Value) -> bool {
    let api: Api<DynamicObject> = Api::namespaced_with(client.clone(), namespace, &resource());
    let applied = api
        .patch(
            name,
            // A field that somebody else has edited would make the API server answer 409 each time.
            &PatchParams::apply("rayfit").force(),
            &Patch::Apply(report),
        )
        .await;
    if let Err(error) = &applied {
        tracing::warn!(%error, namespace, name, "audit: cannot write a report");
    }
    applied.is_ok()
}
