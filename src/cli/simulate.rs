//! `rayfit simulate`: what a workload would have waited and cost.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use serde_json::{Value, json};

use super::documents::documents;
use super::policies::PolicyArgs;
use super::progress::Progress;
use super::table::Table;
use super::way::Way;
use super::{Outcome, source};
use crate::facts::Facts;
use crate::objects;
use crate::policy::settings::ReconcileSettings;
use crate::ray::{Kind, RayObject};
use crate::reconcile::ReconcilerSettings;
use crate::report::json::pretty;
use crate::simulate::pools;
use crate::simulate::report::page;
use crate::simulate::report::table::{LEGEND, StudyTable, headline};
use crate::simulate::settings::{NodePool, WorldSettings};
use crate::simulate::study::{MOST_SIMULATIONS, Study, StudyRow};
use crate::simulate::trace::{self, Trace};
use crate::simulate::vary::Variation;

/// The largest trace, in bytes.
const MAX_BYTES: usize = 512 << 20;

/// What a workload would have waited and cost on a RayCluster
///
/// Replays a trace in a simulated world: KubeRay's operator, Kubernetes nodes, kubelets and Ray, in
/// virtual time. The planner and the reconciler are those of the controller; strategy `ray` decides as
/// Ray's own autoscaler does, and as often. Nothing is asked of any cluster. Equal arguments give equal
/// results.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    rayfit simulate examples/trace.jsonl --cluster examples/good.yaml\n  \
    rayfit simulate trace.jsonl --cluster ray.yaml --vary idleTimeoutSeconds=10,60,300\n  \
    rayfit simulate trace.jsonl --cluster ray.yaml --nodes pools.yaml --strategy rayfit\n  \
    rayfit simulate trace.jsonl --cluster ray.yaml -o html > simulation.html\n  \
    rayfit simulate trace.jsonl --cluster ray.yaml -o json > simulation.json")]
pub(super) struct Simulate {
    /// The workload: a trace in JSON lines, or another form that `rayfit trace` reads; - for standard
    /// input
    #[arg(value_name = "TRACE|-")]
    trace: PathBuf,

    /// The RayCluster; the first one of the file
    #[arg(long, value_name = "FILE")]
    cluster: PathBuf,

    /// The Kubernetes nodes, as a list of pools in YAML [default: room for everything]
    #[arg(long, value_name = "FILE")]
    nodes: Option<PathBuf>,

    /// The strategies to compare
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = [Way::Rayfit, Way::Ray])]
    strategy: Vec<Way>,

    /// A field and the values to try: idleTimeoutSeconds, minReplicas, maxReplicas, podStartSeconds or
    /// nodeStartSeconds; can be repeated, and then every combination is tried
    #[arg(long, value_name = "FIELD=VALUE,...")]
    vary: Vec<Variation>,

    /// How long a pod takes from its node to its Ray node
    #[arg(long, value_name = "SECONDS", default_value_t = 7.0, value_parser = seconds)]
    pod_start: f64,

    /// The seed of everything random
    #[arg(long, default_value_t = 1)]
    seed: u64,

    /// How to print it
    #[arg(short, long, value_enum, default_value_t, value_name = "FORMAT")]
    output: Format,

    #[command(flatten)]
    policies: PolicyArgs,
}

#[derive(Debug, Clone, Copy, Default, clap::ValueEnum)]
enum Format {
    /// A table
    #[default]
    Text,
    /// Everything, for programs
    Json,
    /// One page with charts, to read and to send
    Html,
}

fn seconds(text: &str) -> Result<f64, String> {
    let value: Option<f64> = text.parse().ok();
    let value = value.filter(|value| (0.0..=86_400.0).contains(value));
    value.ok_or_else(|| "write seconds from 0 to 86400".to_owned())
}

impl Simulate {
    pub(super) fn run(self) -> anyhow::Result<Outcome> {
        let study = self.study()?;
        let count = study.simulations();
        if count > MOST_SIMULATIONS {
            bail!("these are {count} simulations: vary less, up to {MOST_SIMULATIONS}");
        }
        let mut progress = Progress::new("simulated");
        let rows = study.run(&mut |part| progress.share(part));
        drop(progress);
        let rows = rows.context(self.cluster.display().to_string())?;
        let text = match self.output {
            Format::Text => text(&study, &rows),
            Format::Json => pretty(&json!({
                "apiVersion": "rayfit.dev/v1alpha1", "kind": "Simulation",
                "trace": study.trace.name, "jobs": study.trace.jobs.len(), "rows": rows,
            })),
            Format::Html => page::html(&study, &rows),
        };
        anstream::stdout().write_all(text.as_bytes())?;
        Ok(Outcome::Clean)
    }

    fn study(&self) -> anyhow::Result<Study> {
        let cluster = cluster(&self.cluster)?;
        let mut world = WorldSettings {
            seed: self.seed,
            pools: self.pools()?,
            ..WorldSettings::default()
        };
        world.set_pod_start(self.pod_start);
        Ok(Study {
            reconciler: self.reconciler(&cluster)?,
            cluster,
            trace: self.trace()?,
            world,
            strategies: self.strategy.iter().map(|way| way.strategy()).collect(),
            variations: self.vary.clone(),
        })
    }

    fn trace(&self) -> anyhow::Result<Trace> {
        let source = source::single(&self.trace);
        let name = source.name();
        let text = source.read_up_to(MAX_BYTES).with_context(|| name.clone())?;
        let trace = trace::read(&text, &name).with_context(|| name.clone())?;
        if trace.jobs.is_empty() {
            bail!("{name}: there is no job in it");
        }
        Ok(trace)
    }

    fn pools(&self) -> anyhow::Result<Vec<NodePool>> {
        let Some(path) = &self.nodes else {
            return Ok(Vec::new());
        };
        let document = documents(path)?.into_iter().next();
        let document = document.with_context(|| format!("{}: it is empty", path.display()))?;
        pools::read(&document.value).with_context(|| path.display().to_string())
    }

    fn reconciler(&self, cluster: &Value) -> anyhow::Result<ReconcilerSettings> {
        let policies = self.policies.policies()?;
        let Some(object) = RayObject::parse(cluster) else {
            return Ok(ReconcilerSettings::default());
        };
        let base = ReconcileSettings::default();
        let folded = policies.reconcile_for(&base, &object, &Facts::default());
        Ok(ReconcilerSettings::of(&folded))
    }
}

/// The first RayCluster of a file.
fn cluster(path: &Path) -> anyhow::Result<Value> {
    for document in documents(path)? {
        for item in objects::items(&document.value) {
            let is = RayObject::parse(&item.object).is_some_and(|ray| ray.kind == Kind::RayCluster);
            if is {
                return Ok(item.object.into_owned());
            }
        }
    }
    bail!("{}: there is no RayCluster in it", path.display())
}

fn text(study: &Study, rows: &[StudyRow]) -> String {
    let StudyTable { titles, lines } = StudyTable::of(study, rows);
    let titles: Vec<&str> = titles.iter().map(String::as_str).collect();
    let mut table = Table::new(&titles);
    for line in lines {
        table.line(line);
    }
    let (name, headline) = (&study.trace.name, headline(study, rows));
    format!("{name}: {headline}\n\n{table}\n{}\n", LEGEND.join("\n"))
}
