//! Reads and changes the cluster: one request for each read or step.

use std::collections::BTreeMap;

use k8s_openapi::api::admissionregistration::v1::{
    MutatingWebhookConfiguration, ValidatingWebhookConfiguration,
};
use k8s_openapi::api::core::v1::Secret;
use kube::api::{ApiResource, DynamicObject, Patch, PatchParams, PostParams};
use kube::{Api, Client};
use rayfit_core::manifests::names::{MUTATING, VALIDATING, cluster_name};
use rayfit_core::text::Misread;
use serde_json::Value;
use thiserror::Error;

use super::contents::{Anchor, Contents};
use super::issue::IssueError;
use super::next::{CaBundle, View};
use super::{CertificateOptions, bundle, secret};

/// The reason why a step could not be taken.
#[derive(Debug, Error)]
pub(super) enum CertificateError {
    /// The Secret does not exist, and this process may not create it.
    #[error(
        "the Secret {namespace}/{name} does not exist: apply Rayfit's manifests again, they hold \
         it (rayfit manifests --self-managed | kubectl apply -f -)"
    )]
    NoSecret { namespace: String, name: String },
    /// Another replica changed the object first.
    #[error("{0} has changed in the meantime")]
    Conflict(&'static str),
    /// The API server refused the request or did not answer.
    #[error(
        "cannot {doing}: {source}; check whether the API server can be reached and whether the \
         roles of Rayfit's manifests are applied"
    )]
    Request {
        doing: &'static str,
        source: kube::Error,
    },
    /// No certificate could be made.
    #[error(transparent)]
    Issue(#[from] IssueError),
    /// The certificate in the Secret cannot be served.
    #[error(transparent)]
    Pair(#[from] Misread),
}

/// The objects that one look at the cluster has read.
pub(super) struct SeenCluster {
    pub(super) view: View,
    secret: Secret,
    configurations: BTreeMap<String, Value>,
}

/// The objects of the cluster that are read and changed.
pub(super) struct ClusterClient {
    pub(super) configurations: [(String, Api<DynamicObject>); 2],
    pub(super) secrets: Api<Secret>,
    pub(super) options: CertificateOptions,
}

impl ClusterClient {
    pub(super) fn new(client: &Client, options: CertificateOptions) -> Self {
        let namespace = &options.namespace;
        let named = |name, resource: ApiResource| {
            let api: Api<DynamicObject> = Api::all_with(client.clone(), &resource);
            (cluster_name(name, namespace), api)
        };
        let mutating = ApiResource::erase::<MutatingWebhookConfiguration>(&());
        let validating = ApiResource::erase::<ValidatingWebhookConfiguration>(&());
        Self {
            configurations: [named(MUTATING, mutating), named(VALIDATING, validating)],
            secrets: Api::namespaced(client.clone(), namespace),
            options,
        }
    }

    /// Reads everything, in the order that [`View`] requires.
    pub(super) async fn look(&self) -> Result<SeenCluster, CertificateError> {
        let mut configurations = BTreeMap::new();
        let mut bundles: BTreeMap<String, CaBundle> = BTreeMap::new();
        for (name, api) in &self.configurations {
            let answer = api.get_opt(name).await;
            let answer = answer.map_err(failed("read a webhook configuration"))?;
            let object = serde_json::to_value(answer).unwrap_or_default();
            if let Some(bundle) = bundle::read(&object) {
                bundles.insert(name.clone(), bundle);
                configurations.insert(name.clone(), object);
            }
        }
        let secret = self.secrets.get_opt(&self.options.secret).await;
        let secret = secret.map_err(failed("read the Secret"))?;
        let secret = secret.ok_or_else(|| CertificateError::NoSecret {
            namespace: self.options.namespace.clone(),
            name: self.options.secret.clone(),
        })?;
        let data = secret.data.as_ref();
        let contents = secret::decode(data.unwrap_or(&secret::Data::new()), &self.options.hosts());
        Ok(SeenCluster {
            view: View { bundles, contents },
            secret,
            configurations,
        })
    }

    /// Writes the Secret, if it has not changed since it was read.
    pub(super) async fn store(
        &self,
        cluster: &SeenCluster,
        contents: &Contents,
    ) -> Result<(), CertificateError> {
        let mut secret = cluster.secret.clone();
        secret.data = Some(secret::encode(contents, secret.data.unwrap_or_default()));
        let written = self
            .secrets
            // A replacement carries the version that was read, so that the API server answers 409
            // after any other write; a merge patch would not.
            .replace(&self.options.secret, &PostParams::default(), &secret)
            .await;
        written.map(|_| ()).map_err(failed("write the Secret"))
    }

    /// Writes `anchors` into a webhook configuration, if it has not changed since it was read.
    pub(super) async fn publish(
        &self,
        cluster: &SeenCluster,
        configuration: &str,
        anchors: &[Anchor],
    ) -> Result<(), CertificateError> {
        let object = cluster.configurations.get(configuration);
        let api = self
            .configurations
            .iter()
            .find(|(name, _)| *name == configuration);
        let (Some(object), Some((name, api))) = (object, api) else {
            return Ok(());
        };
        let patch = serde_json::from_value(bundle::patch(object, anchors)).unwrap_or_default();
        let patched = api
            .patch(name, &PatchParams::default(), &Patch::Json::<()>(patch))
            .await;
        patched
            .map(|_| ())
            .map_err(failed("write a webhook configuration"))
    }
}

fn failed(doing: &'static str) -> impl FnOnce(kube::Error) -> CertificateError {
    move |source| match &source {
        kube::Error::Api(status) if status.code == 409 => CertificateError::Conflict(doing),
        _ => CertificateError::Request { doing, source },
    }
}
