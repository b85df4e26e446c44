//! A client of a cluster's GCS, with the credentials that it wants to see.

use k8s_openapi::api::core::v1::Secret;
use kube::Client;
use kube::api::{Api, ResourceExt as _};

use super::head::Head;
use super::observe::Key;
use super::words;
use crate::gcs::{self, Endpoint, Limits, Material, Tls, TokenSource};

/// Where credentials come from.
#[derive(Clone)]
pub enum Credentials {
    /// The cluster's Secrets, read one by one when a cluster that needs them is connected to.
    Secrets(Client),
    /// The environment of the head pod, as the Ray containers have it; the GCS is beside us.
    Environment(fn(&str) -> Option<String>),
}

/// Why there is no client.
#[derive(Debug, thiserror::Error)]
pub enum CredentialsError {
    /// A Secret cannot be read.
    #[error(
        "Secret {name}, which its GCS's clients need, cannot be read: {reason}; is Rayfit installed with --ray-auth?"
    )]
    Secret {
        /// Which one.
        name: String,
        /// Why.
        reason: String,
    },
    /// A Secret lacks something.
    #[error("Secret {name} has no {key}")]
    Key {
        /// Which one.
        name: String,
        /// What.
        key: String,
    },
    /// The environment is incomplete.
    #[error(transparent)]
    Environment(#[from] gcs::EnvironmentError),
}

impl Credentials {
    /// A client of the GCS of `head`.
    pub async fn client(&self, key: &Key, head: &Head) -> Result<gcs::Client, CredentialsError> {
        let endpoint = match self {
            Self::Environment(variable) => {
                let beside = gcs::Address::new("127.0.0.1", head.address.port());
                gcs::from_environment(beside, variable)?
            }
            Self::Secrets(client) => {
                let secrets = Secrets {
                    api: Api::namespaced(client.clone(), &key.namespace),
                };
                secrets.endpoint(head).await?
            }
        };
        Ok(gcs::Client::new(endpoint, Limits::default()))
    }
}

struct Secrets {
    api: Api<Secret>,
}

impl Secrets {
    async fn endpoint(&self, head: &Head) -> Result<Endpoint, CredentialsError> {
        let mut endpoint = Endpoint::plain(head.address.clone());
        if let Some((name, key)) = &head.token {
            let secret = self.read(name).await?;
            endpoint.token = Some(TokenSource(part(&secret, key)?));
        }
        if let Some(name) = &head.tls {
            let secret = self.read(name).await?;
            endpoint.tls = Some(Tls {
                certificate: part(&secret, "tls.crt")?,
                key: part(&secret, "tls.key")?,
                authority: part(&secret, "ca.crt")?,
                server_name: None,
            });
        }
        Ok(endpoint)
    }

    async fn read(&self, name: &str) -> Result<Secret, CredentialsError> {
        self.api
            .get(name)
            .await
            .map_err(|error| CredentialsError::Secret {
                name: name.to_owned(),
                reason: words::text(&error),
            })
    }
}

fn part(secret: &Secret, key: &str) -> Result<Material, CredentialsError> {
    let content = secret.data.as_ref().and_then(|data| data.get(key));
    let content = content.ok_or_else(|| CredentialsError::Key {
        name: secret.name_any(),
        key: key.to_owned(),
    })?;
    Ok(Material::from(content.0.clone()))
}
