//! `rayfit rollout`: which objects would be denied if rules were enforced now.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use kube::Client;
use rayfit_core::facts::Facts;
use rayfit_core::object_audit::progress::{EarlierReport, RolloutProgress};
use rayfit_core::object_audit::rollout::{RolloutObject, report, team};
use rayfit_core::object_audit::{AuditedObject, examine, page, table};
use rayfit_core::policy::Policies;
use rayfit_core::ray::{Kind, RayObject};
use rayfit_core::report::json::pretty;
use rayfit_core::simulate::price::Price;
use serde_json::{Value, json};

use super::Outcome;
use super::live::{self, block_on, list, worker_pods};
use super::shared::documents;
use super::shared::format::ReportFormat;
use super::shared::outcome;
use super::shared::policies::PolicyArgs;
use super::shared::settings::SettingsArgs;
use super::shared::source;
use crate::apiserver::error_chain::text;

/// The most bytes of an earlier report, which has every finding of a Kubernetes cluster.
const MOST_EARLIER: usize = 64 << 20;

/// Report for each rule which stored objects would be denied if it were enforced now
///
/// Checks the stored Ray objects of a Kubernetes cluster as if they were created now, under its
/// RayPolicies. The counts are those that the background audit writes into the status of the policies.
/// With files, as kubectl prints them, it checks the objects in them under the policies of --policy.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    rayfit rollout\n  \
    rayfit rollout -o html > rollout.html\n  \
    rayfit rollout --savings --price cpu-hour=0.04,gib-hour=0.005,gpu-hour=2\n  \
    rayfit rollout --policy next.yaml             # what a changed policy would mean\n  \
    kubectl get rayclusters -A -o json | rayfit rollout -\n  \
    rayfit rollout -o json > monday.json\n  \
    rayfit rollout --earlier monday.json --team-label owner -o html > rollout.html\n\n\
    Exit codes: 0 no object is or would be denied, 1 some object is or would be, 2 something \
    could not be read.")]
pub(super) struct RolloutCommand {
    /// Files, or - for standard input; without any, the objects of the live cluster
    #[arg(value_name = "FILE|-")]
    inputs: Vec<PathBuf>,

    /// Output format
    #[arg(short, long, value_enum, default_value_t, value_name = "FORMAT")]
    output: ReportFormat,

    /// File with facts about the Kubernetes cluster, for rules that need them (with files)
    #[arg(long, value_name = "FILE", requires = "inputs")]
    facts: Option<PathBuf>,

    /// Label or annotation of objects, or label of their namespaces, that names the team [default: a namespace is a team]
    #[arg(long, value_name = "KEY")]
    team_label: Option<String>,

    /// File that an earlier run with -o json has written, to show which findings are gone and which are new
    #[arg(long, value_name = "FILE")]
    earlier: Option<PathBuf>,

    /// Also ask the GCS of each RayCluster, through a forwarded port, what of its worker pods is in use, and show what could be saved
    #[arg(long, conflicts_with = "inputs")]
    savings: bool,

    /// The prices of hours of worker pods, of which what is not named costs nothing: what could be saved is shown in money as well
    #[arg(
        long,
        requires = "savings",
        value_name = "cpu-hour=AMOUNT,gib-hour=AMOUNT,gpu-hour=AMOUNT"
    )]
    price: Option<Price>,

    #[command(flatten)]
    cluster: live::ClusterArgs,

    #[command(flatten)]
    policies: PolicyArgs,

    #[command(flatten)]
    settings: SettingsArgs,
}

impl RolloutCommand {
    pub(super) fn run(self) -> anyhow::Result<Outcome> {
        let now = self.policies.now();
        let given = self.policies.policies()?;
        let (mut workers, price) = (None, self.price.unwrap_or_default());
        let (values, facts, policies) = if self.inputs.is_empty() {
            let (values, facts, stored) = block_on(async {
                let client = self.cluster.client().await?;
                let (values, facts, policies) = stored(&client).await?;
                if self.savings {
                    let is_cluster = |value: &&Value| value["kind"] == Kind::RayCluster.name();
                    let clusters: Vec<&Value> = values.iter().filter(is_cluster).collect();
                    workers = Some(live::ask_for_worker_pods(&client, &clusters, price).await?);
                }
                Ok((values, facts, policies))
            })?;
            // Policies of --policy are what is to be in force, so those of the cluster do not count beside
            // them.
            (values, facts, if given.is_empty() { stored } else { given })
        } else {
            let facts = documents::facts(self.facts.as_deref())?;
            let mut values = Vec::new();
            for path in &self.inputs {
                values.extend(documents::objects(path)?);
            }
            (values, facts, given)
        };
        let settings = self.settings.settings();
        let judge = |object: &RayObject<'_>| examine(object, &facts, &policies, &settings, now);
        let label = self.team_label.as_deref();
        let object = |value| RolloutObject::of(value, judge, |object| team(object, label, &facts));
        let mut objects: Vec<RolloutObject> = values.iter().filter_map(object).collect();
        // Lists of the API server and files have orders of their own; two reports of the same
        // objects should not differ.
        objects.sort_by(|left, right| left.audited.object.cmp(&right.audited.object));
        let judged = || objects.iter().map(|object| &object.audited);
        let earlier = self.earlier.as_deref().map(earlier).transpose()?;
        let progress = earlier.map(|earlier| RolloutProgress::since(earlier, judged()));
        let progress = progress.as_ref();
        let report = || {
            let mut report = report(&objects, now, progress);
            report["workerPods"] = json!(workers);
            report
        };
        let text = match self.output {
            ReportFormat::Text => {
                let line = progress.map_or_else(String::new, |progress| format!("{progress}\n"));
                let workers = workers.as_deref().map(worker_pods::text);
                table::text(judged()) + &line + &workers.unwrap_or_default()
            }
            ReportFormat::Json => pretty(&report()),
            ReportFormat::Html => {
                let time = now.strftime("%-d %B %Y, %H:%M UTC");
                let title = format!("Rayfit: who would be denied, {time}");
                page::html(report(), &title)
            }
        };
        anstream::stdout().write_all(text.as_bytes())?;
        let is_denied = |object: &AuditedObject| object.is_denied() || object.would_be_denied();
        Ok(if judged().any(is_denied) {
            Outcome::Denied
        } else {
            Outcome::Clean
        })
    }
}

fn earlier(path: &Path) -> anyhow::Result<EarlierReport> {
    let source = source::single(path);
    let text = source.read_up_to(MOST_EARLIER);
    let text = text.with_context(|| source.name())?;
    serde_json::from_str(&text).with_context(|| {
        let name = source.name();
        format!("{name}: this is no report of rayfit rollout -o json")
    })
}

/// The kinds of objects around the Ray objects: the key among the facts, the kind, and the judgements that the report
/// lacks without it.
#[rustfmt::skip]
const FACTS: [(&str, &str, &str); 4] = [
    ("nodes", "Node", "whether a Kubernetes node is large enough for resize limits (RF115)"),
    ("namespaces", "Namespace", "what RayPolicies say that go by the labels of namespaces"),
    ("limitRanges", "LimitRange", "what LimitRanges bound or set (RF117, limits of RayPolicies)"),
    ("resourceQuotas", "ResourceQuota", "what ResourceQuotas bound (RF117)"),
];

/// The Ray objects that are stored in a cluster, its facts and its RayPolicies. Ray objects must be readable; of facts
/// that are not, the user is told what the report does not say without them.
async fn stored(client: &Client) -> anyhow::Result<(Vec<Value>, Facts, Policies)> {
    let mut objects = Vec::new();
    for kind in Kind::ALL {
        objects.extend(list(client, ("ray.io", "v1", kind.name()), kind.plural()).await?);
    }
    let policies = live::policies(client).await?;
    let mut facts = serde_json::Map::new();
    match client.apiserver_version().await {
        Ok(version) => {
            facts.insert("kubernetesVersion".to_owned(), json!(version.git_version));
        }
        Err(error) => outcome::warn(format!(
            "the version of Kubernetes cannot be read ({}), so what depends on it was not checked",
            text(&error)
        )),
    }
    for (key, kind, judges) in FACTS {
        let plural = key.to_ascii_lowercase();
        match list(client, ("", "v1", kind), &plural).await {
            Ok(items) => drop(facts.insert(key.to_owned(), json!(items))),
            // Facts are optional: without one, the report lacks the judgements that need it, and says so.
            Err(error) => outcome::warn(limitation(&plural, judges, &error)),
        }
    }
    Ok((
        objects,
        serde_json::from_value(Value::Object(facts))?,
        policies,
    ))
}

/// The judgements that the report lacks because these objects could not be listed, and the remedy.
fn limitation(plural: &str, judges: &str, error: &kube::Error) -> String {
    let remedy = match error {
        kube::Error::Api(status) if status.code == 403 => {
            format!("you need the permission to list {plural} in the whole cluster")
        }
        _ => "try again".to_owned(),
    };
    let error = text(error);
    format!("{plural} cannot be listed ({error}), so this report does not say {judges}: {remedy}")
}

#[cfg(test)]
mod tests {
    use kube::core::Status;

    use super::*;

    #[test]
    fn the_report_says_what_it_leaves_out_and_which_permission_is_missing() {
        let message = "nodes is forbidden: User \"ada\" cannot list resource \"nodes\"";
        let status = Status::failure(message, "Forbidden").with_code(403);
        let text = limitation("nodes", FACTS[0].2, &kube::Error::Api(Box::new(status)));
        for part in [message, "RF115", "permission to list nodes"] {
            assert!(text.contains(part), "{text}");
        }
    }
}
