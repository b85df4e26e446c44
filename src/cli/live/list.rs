//! Objects of a live cluster, page by page.

use kube::api::{Api, ApiResource, DynamicObject, ListParams};
use kube::core::GroupVersionKind;
use kube::{Client, Error};
use serde_json::Value;

use rayfit_core::policy::Policies;

use crate::watch::policies::compiled;

/// Objects per page.
const PAGE: u32 = 200;

/// All objects of a kind, or none where the API is not installed.
pub(crate) async fn list(
    client: &Client,
    (group, version, kind): (&str, &str, &str),
    plural: &str,
) -> Result<Vec<Value>, Error> {
    let kind = GroupVersionKind::gvk(group, version, kind);
    let resource = ApiResource::from_gvk_with_plural(&kind, plural);
    let api: Api<DynamicObject> = Api::all_with(client.clone(), &resource);
    let mut params = ListParams::default().limit(PAGE);
    let mut objects = Vec::new();
    loop {
        let listed = match api.list(&params).await {
            // Without RayPolicy's definition no policy is in force, which is no error.
            Err(Error::Api(status)) if status.code == 404 => return Ok(objects),
            listed => listed?,
        };
        // A continue token names one resource version, so that all pages show the same moment.
        let next = listed.metadata.continue_.clone().unwrap_or_default();
        for mut object in listed {
            // Items of a list have no `kind` and `apiVersion`.
            object.types = Some(kube::api::TypeMeta {
                api_version: resource.api_version.clone(),
                kind: resource.kind.clone(),
            });
            objects.push(serde_json::to_value(object).unwrap_or_default());
        }
        if next.is_empty() {
            return Ok(objects);
        }
        params = params.continue_token(&next);
    }
}

/// The RayPolicies in force. Problems in them were reported at admission and are ignored here.
pub(crate) async fn policies(client: &Client) -> Result<Policies, Error> {
    let kind = ("rayfit.dev", "v1alpha1", "RayPolicy");
    let written = list(client, kind, "raypolicies").await?;
    let policies = written.iter().filter_map(|written| compiled(written).0);
    Ok(Policies::new(policies.collect()))
}
