//! A workload and the world that it is simulated in, as flags that several commands share.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use rayfit_core::plan::Strategy;
use rayfit_core::policy::settings::ReconcileSettings;
use rayfit_core::policy::{Policies, Settings};
use rayfit_core::ray::{Kind, RayObject};
use rayfit_core::reconcile::RoundSettings;
use rayfit_core::simulate::pools;
use rayfit_core::simulate::settings::WorldSettings;
use rayfit_core::simulate::trace::{self, Trace};
use serde_json::Value;

use super::documents::{documents, facts, objects};
use super::policies::PolicyArgs;
use super::source;

/// The strategies, as they are named on the command line.
pub(in crate::cli) fn strategy() -> impl TypedValueParser<Value = Strategy> {
    let names = [
        PossibleValue::new("rayfit").help("Ray's packing with Rayfit's improvements"),
        PossibleValue::new("ray").help("Exactly as Ray 2.60.0's autoscaler v2"),
    ];
    PossibleValuesParser::new(names).map(|name| match name.as_str() {
        "ray" => Strategy::Ray,
        _ => Strategy::Rayfit,
    })
}

/// The largest trace, in bytes.
const MAX_BYTES: usize = 512 << 20;

/// Flags that describe the world.
#[derive(Debug, clap::Args)]
pub(in crate::cli) struct WorldArgs {
    /// The Kubernetes nodes, as a list of pools in YAML [default: room for everything]
    #[arg(long, value_name = "FILE")]
    nodes: Option<PathBuf>,

    /// The time that a pod takes from its node to its Ray node
    #[arg(long, value_name = "SECONDS", default_value_t = 7.0, value_parser = seconds)]
    pod_start: f64,

    /// The time that a worker process takes to start, where none of its node waits for work
    #[arg(long, value_name = "SECONDS", default_value_t = 0.0, value_parser = seconds)]
    worker_start: f64,

    /// The seed of everything random
    #[arg(long, default_value_t = 1)]
    seed: u64,

    #[command(flatten)]
    policies: PolicyArgs,

    /// Facts about the Kubernetes cluster, such as the labels of namespaces, by which policies select
    #[arg(long, value_name = "FILE", help_heading = "Policies")]
    facts: Option<PathBuf>,
}

/// Reads seconds of a flag.
pub(in crate::cli) fn seconds(text: &str) -> Result<f64, String> {
    let value: Option<f64> = text.parse().ok();
    let value = value.filter(|value| (0.0..=86_400.0).contains(value));
    value.ok_or_else(|| "write seconds from 0 to 86400".to_owned())
}

impl WorldArgs {
    /// The world around a RayCluster.
    pub(in crate::cli) fn world(&self, cluster: &Value) -> anyhow::Result<WorldSettings> {
        let pools = match &self.nodes {
            None => Vec::new(),
            Some(path) => {
                let document = documents(path)?.into_iter().next();
                let document =
                    document.with_context(|| format!("{}: it is empty", path.display()))?;
                let pools = pools::read(&document.value).map_err(anyhow::Error::msg);
                pools.with_context(|| path.display().to_string())?
            }
        };
        // Otherwise the jobs of such a group wait until the end, and the result does not say why.
        pools::check(&pools, cluster).map_err(anyhow::Error::msg)?;
        let mut world = WorldSettings {
            seed: self.seed,
            pools,
            worker_start_s: self.worker_start,
            ..WorldSettings::default()
        };
        world.set_pod_start(self.pod_start);
        Ok(world)
    }

    /// The settings of the policies for a RayCluster: those by which it is scaled, and those of admission.
    pub(in crate::cli) fn ruled(
        &self,
        cluster: &Value,
    ) -> anyhow::Result<(RoundSettings, Settings)> {
        let policies: Policies = self.policies.policies()?;
        let facts = facts(self.facts.as_deref())?;
        let Some(object) = RayObject::parse(cluster) else {
            bail!("this is not a RayCluster");
        };
        let base = ReconcileSettings::default();
        let folded = policies.reconcile_for(&base, &object, &facts);
        let (base, now) = (Settings::default(), self.policies.now());
        let admission = policies.settings_for(&base, &object, &facts, now);
        Ok((RoundSettings::of(&folded), admission.into_owned()))
    }
}

/// The trace in a file, of any form.
pub(in crate::cli) fn trace(path: &Path) -> anyhow::Result<Trace> {
    let source = source::single(path);
    let name = source.name();
    let text = source.read_up_to(MAX_BYTES).with_context(|| name.clone())?;
    // A text without a job is no trace, so that there is always something to simulate.
    trace::read(&text, &name).context(name)
}

/// The first RayCluster of a file.
pub(in crate::cli) fn cluster(path: &Path) -> anyhow::Result<Value> {
    let is_cluster = |object: &Value| {
        RayObject::parse(object).is_some_and(|object| object.kind == Kind::RayCluster)
    };
    let cluster = objects(path)?.into_iter().find(is_cluster);
    cluster.with_context(|| format!("{}: there is no RayCluster in it", path.display()))
}
