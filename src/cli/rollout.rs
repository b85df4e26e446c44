//! `rayfit rollout`: which objects would be denied if rules were enforced now.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use k8s_openapi::jiff::Timestamp;
use kube::Client;
use serde_json::{Value, json};

use super::Outcome;
use super::live::{self, block_on, list};
use super::shared::documents;
use super::shared::policies::PolicyArgs;
use super::shared::settings::SettingsArgs;
use crate::facts::Facts;
use crate::object_audit::{Judged, examine, page, table};
use crate::objects;
use crate::policy::Policies;
use crate::ray::{Kind, RayObject};

/// Report for each rule which stored objects would be denied if it were enforced now
///
/// Checks the stored Ray objects of a Kubernetes cluster as if they were created now, under its
/// RayPolicies. The counts are those that the background audit writes into the status of the policies.
/// With files, as kubectl prints them, it checks the objects in them under the policies of --policy.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    rayfit rollout\n  \
    rayfit rollout -o html > rollout.html\n  \
    rayfit rollout --policy next.yaml             # what a changed policy would mean\n  \
    kubectl get rayclusters -A -o json | rayfit rollout -\n\n\
    Exit codes: 0 no object is or would be denied, 1 some object is or would be, 2 something \
    could not be read.")]
pub(super) struct RolloutCommand {
    /// Files, or - for standard input; without any, the objects of the live cluster
    #[arg(value_name = "FILE|-")]
    inputs: Vec<PathBuf>,

    /// Output format
    #[arg(short, long, value_enum, default_value_t, value_name = "FORMAT")]
    output: Format,

    /// File with facts about the Kubernetes cluster, for rules that need them (with files)
    #[arg(long, value_name = "FILE", requires = "inputs")]
    facts: Option<PathBuf>,

    #[command(flatten)]
    cluster: live::ClusterArgs,

    #[command(flatten)]
    policies: PolicyArgs,

    #[command(flatten)]
    settings: SettingsArgs,
}

#[derive(Debug, Clone, Copy, Default, clap::ValueEnum)]
enum Format {
    /// A table
    #[default]
    Text,
    /// Everything, for programs
    Json,
    /// One page, to read and to send
    Html,
}

impl RolloutCommand {
    pub(super) fn run(self) -> anyhow::Result<Outcome> {
        let now = self.policies.now();
        let given = self.policies.policies()?;
        let (values, facts, policies) = if self.inputs.is_empty() {
            let stored = block_on(async { Stored::of(&self.cluster.client().await?).await })?;
            let policies = if given.is_empty() {
                stored.policies
            } else {
                given
            };
            (stored.objects, stored.facts, policies)
        } else {
            let facts = self.facts.as_deref().map(documents::facts).transpose()?;
            (written(&self.inputs)?, facts.unwrap_or_default(), given)
        };
        let settings = self.settings.settings();
        let mut judged: Vec<Judged> = values
            .iter()
            .filter_map(RayObject::parse)
            // Nobody has to mend what goes away; the background audit leaves it out too.
            .filter(|object| !object.is_deleting())
            .map(|object| examine(&object, &facts, &policies, &settings, now))
            .collect();
        // Lists of the API server and files have orders of their own; two reports of the same
        // objects should not differ.
        judged.sort_by(|left, right| left.object.cmp(&right.object));
        let text = match self.output {
            Format::Text => table::text(&judged),
            Format::Json => table::json(&judged),
            Format::Html => page::html(&judged, &title(now)),
        };
        anstream::stdout().write_all(text.as_bytes())?;
        Ok(if table::denies_anybody(&judged) {
            Outcome::Denied
        } else {
            Outcome::Clean
        })
    }
}

fn title(now: Timestamp) -> String {
    format!(
        "Rayfit: who would be denied, {}",
        now.strftime("%Y-%m-%d %H:%M UTC")
    )
}

/// The objects of files.
fn written(inputs: &[PathBuf]) -> anyhow::Result<Vec<Value>> {
    let mut values = Vec::new();
    for path in inputs {
        for document in documents::documents(Path::new(path))? {
            let items = objects::items(&document.value);
            values.extend(items.into_iter().map(|item| item.object.into_owned()));
        }
    }
    Ok(values)
}

/// The objects that are stored in a cluster.
struct Stored {
    objects: Vec<Value>,
    facts: Facts,
    policies: Policies,
}

impl Stored {
    /// Reads the cluster. Facts without read permission are unknown; Ray objects must be readable.
    async fn of(client: &Client) -> anyhow::Result<Self> {
        let mut objects = Vec::new();
        for kind in Kind::ALL {
            objects.extend(list(client, ("ray.io", "v1", kind.name()), kind.plural()).await?);
        }
        let policies = live::policies(client).await?;
        let mut facts = serde_json::Map::new();
        if let Ok(version) = client.apiserver_version().await {
            facts.insert("kubernetesVersion".to_owned(), json!(version.git_version));
        }
        for (key, kind, plural) in [
            ("nodes", "Node", "nodes"),
            ("namespaces", "Namespace", "namespaces"),
            ("limitRanges", "LimitRange", "limitranges"),
            ("resourceQuotas", "ResourceQuota", "resourcequotas"),
        ] {
            match list(client, ("", "v1", kind), plural).await {
                Ok(items) => drop(facts.insert(key.to_owned(), json!(items))),
                Err(error) => tracing::debug!(%error, "unknown"),
            }
        }
        Ok(Self {
            objects,
            facts: serde_json::from_value(Value::Object(facts))?,
            policies,
        })
    }
}
