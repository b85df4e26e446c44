//! `rayfit simulate`: what a workload would have waited and cost.

use std::path::PathBuf;

use anyhow::{Context as _, bail};
use rayfit_core::plan::Strategy;
use rayfit_core::report::json::pretty;
use rayfit_core::simulate::price::Price;
use rayfit_core::simulate::report::page;
use rayfit_core::simulate::report::table::{headline, legend, table};
use rayfit_core::simulate::study::{MOST_SIMULATIONS, Study, StudyRow};
use rayfit_core::simulate::vary::Variation;
use serde_json::{Value, json};

use super::Outcome;
use super::shared::format::ReportFormat;
use super::shared::outcome;
use super::shared::progress::Progress;
use super::shared::workload::{self, WorldArgs};

/// Simulate how long a workload would have waited on a RayCluster, and its cost
///
/// Replays a trace in a simulated world: KubeRay's operator, Kubernetes nodes, kubelets and Ray, in
/// virtual time. The planner and the reconciler are those of the controller; strategy `ray` decides as
/// Ray's own autoscaler does, and as often. Nothing is asked of any cluster. Equal arguments give equal
/// results.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    rayfit simulate examples/trace.jsonl --cluster examples/good.yaml\n  \
    rayfit simulate trace.jsonl --cluster ray.yaml --vary idleTimeoutSeconds=10,60,300\n  \
    rayfit simulate trace.jsonl --cluster ray.yaml --strategy rayfit --vary keepSmallSeconds=0,120,900\n  \
    rayfit simulate trace.jsonl --cluster ray.yaml --nodes pools.yaml --strategy rayfit\n  \
    rayfit simulate trace.jsonl --cluster ray.yaml --price cpu-hour=0.04,gib-hour=0.005,gpu-hour=2\n  \
    rayfit simulate trace.jsonl --cluster ray.yaml -o html > simulation.html\n  \
    rayfit simulate trace.jsonl --cluster ray.yaml -o json > simulation.json")]
pub(super) struct SimulateCommand {
    /// The workload: a trace in JSON lines, or another form that `rayfit trace` reads; - for standard
    /// input
    #[arg(value_name = "TRACE|-")]
    trace: PathBuf,

    /// The RayCluster; the first one of the file
    #[arg(long, value_name = "FILE")]
    cluster: PathBuf,

    /// The strategies to compare
    #[arg(long, value_parser = workload::strategy(), value_delimiter = ',', default_values = ["rayfit", "ray"])]
    strategy: Vec<Strategy>,

    /// A field and the values to try: idleTimeoutSeconds, minReplicas, maxReplicas, the resize limits max-cpu
    /// and max-memory, keepSmallSeconds, shrinkAfterSeconds and headroomCpus of RayPolicies, podStartSeconds,
    /// nodeStartSeconds or imagePullSeconds; can be repeated, and then every combination is tried. `GROUP/maxReplicas` is that
    /// of one worker group
    #[arg(long, value_name = "[GROUP/]FIELD=VALUE,...")]
    vary: Vec<Variation>,

    /// The prices of hours of worker pods, of which what is not named costs nothing: the results are shown in money as well
    #[arg(long, value_name = "cpu-hour=AMOUNT,gib-hour=AMOUNT,gpu-hour=AMOUNT")]
    price: Option<Price>,

    /// The output format
    #[arg(short, long, value_enum, default_value_t, value_name = "FORMAT")]
    output: ReportFormat,

    #[command(flatten)]
    world: WorldArgs,
}

impl SimulateCommand {
    pub(super) fn run(self) -> anyhow::Result<Outcome> {
        let study = self.study()?;
        let count = study.simulations();
        // Values of several fields multiply, so that a slip in --vary could take days.
        if count > MOST_SIMULATIONS {
            bail!("these are {count} simulations: vary less, up to {MOST_SIMULATIONS}");
        }
        study.check().map_err(anyhow::Error::msg)?;
        let mut progress = Progress::new("simulated");
        let rows = study.run(&mut |part| progress.share(part));
        // Its line is erased before anything else is written to the same terminal.
        drop(progress);
        let rows = rows.context(self.cluster.display().to_string())?;
        let text = match self.output {
            ReportFormat::Text => {
                let (name, headline) = (&study.trace.name, headline(&study, &rows));
                let (table, legend) = (table(&study, &rows), legend(&study).join("\n"));
                format!("{name}: {headline}\n\n{table}\n{legend}\n")
            }
            ReportFormat::Json => pretty(&json!({
                "apiVersion": "rayfit.dev/v1alpha1", "kind": "Simulation",
                "trace": study.trace.name, "jobs": study.trace.jobs.len(), "rows": written(&study, &rows),
            })),
            ReportFormat::Html => page::html(&study, &rows),
        };
        outcome::print(&text)
    }

    fn study(&self) -> anyhow::Result<Study> {
        let cluster = workload::cluster(&self.cluster)?;
        Ok(Study {
            reconciler: self.world.ruled(&cluster)?.0,
            world: self.world.world(&cluster)?,
            cluster,
            trace: workload::trace(&self.trace)?,
            strategies: self.strategy.clone(),
            variations: self.vary.clone(),
            price: self.price,
        })
    }
}

/// The simulations for programs, each with how much more it took than the first one.
fn written(study: &Study, rows: &[StudyRow]) -> Vec<Value> {
    let to_first = |row: &StudyRow, first: &StudyRow| {
        let (result, first) = (&row.result, &first.result);
        json!({
            "meanWait": result.wait.mean - first.wait.mean,
            "cpuHours": result.cpu_hours.paid - first.cpu_hours.paid,
            "gibHours": result.gib_hours.paid - first.gib_hours.paid,
            "gpuHours": result.gpu_hours.paid - first.gpu_hours.paid,
            "nodeHours": result.node_hours - first.node_hours,
        })
    };
    let row = |row: &StudyRow| {
        let mut written = json!(row);
        written["toFirst"] = json!(rows.first().map(|first| to_first(row, first)));
        if let (Some(price), Some(first)) = (study.price, rows.first()) {
            let money = price.of(&row.result);
            written["price"] = json!(money);
            written["toFirst"]["price"] = json!(money - price.of(&first.result));
        }
        written
    };
    rows.iter().map(row).collect()
}
