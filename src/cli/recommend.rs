//! `rayfit recommend`: settings of a RayCluster that suit a workload better.

use std::path::PathBuf;

use anyhow::{Context as _, bail};
use rayfit_core::plan::Strategy;
use rayfit_core::ray::RayObject;
use rayfit_core::report::json::pretty;
use rayfit_core::simulate::price::Price;
use rayfit_core::simulate::recommend::bounds::{Bounds, SearchField};
use rayfit_core::simulate::recommend::recommendation::Recommendation;
use rayfit_core::simulate::recommend::search::{MOST_SIMULATIONS, Search};
use rayfit_core::simulate::recommend::space::Space;
use rayfit_core::simulate::report::recommendation::Report;
use rayfit_core::simulate::vary::{VariedField, only_rayfit};

use super::Outcome;
use super::live::{self, LiveArgs};
use super::record_trace::{self, RecordingArgs};
use super::shared::outcome;
use super::shared::progress::Progress;
use super::shared::workload::{self, WorldArgs};

/// Settings of a RayCluster with which a workload waits less or costs less
///
/// Searches by simulation: idle timeouts, numbers of replicas, sizes of pods, limits of growth in
/// place. Shows the choices that no other choice beats in waiting and in cost, with today's
/// settings among them, in which part of the workload each was worse than today, and the patch.
/// Applies nothing. Equal arguments give equal results. Of a live cluster the workload is recorded
/// first.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    rayfit recommend examples/trace.jsonl --cluster examples/good.yaml\n  \
    rayfit recommend trace.jsonl --cluster ray.yaml --max-wait 10         # the cheapest that waits no longer\n  \
    rayfit recommend trace.jsonl --cluster ray.yaml --max-cost 25         # the fastest that costs no more\n  \
    rayfit recommend trace.jsonl --cluster ray.yaml --within maxReplicas=1..20 --within podCpus=today\n  \
    rayfit recommend trace.jsonl --cluster ray.yaml --strategy rayfit --seeds 5   # how much is chance\n  \
    rayfit recommend trace.jsonl --cluster ray.yaml --choose 3 -o patch > patch.yaml\n  \
    rayfit recommend trace.jsonl --cluster ray.yaml --price cpu-hour=0.04,gib-hour=0.005,gpu-hour=2\n  \
    rayfit recommend ray/demo --for 2h                                    # a live cluster, recorded first")]
pub(super) struct RecommendCommand {
    /// The workload: a trace in JSON lines, or another form that `rayfit trace` reads; - for standard
    /// input; or a live cluster, to record it first
    #[arg(value_name = "TRACE|-|NAMESPACE/NAME")]
    trace: PathBuf,

    /// The RayCluster; the first one of the file [default for a live cluster: as it is]
    #[arg(long, value_name = "FILE")]
    cluster: Option<PathBuf>,

    /// The scaler of the cluster [default: by rayfit if its annotation rayfit.dev/reconcile says so,
    /// else by ray]
    #[arg(long, value_parser = workload::strategy())]
    strategy: Option<Strategy>,

    /// The bounds of a field: idleTimeoutSeconds, minReplicas, maxReplicas, podCpus or resizeCpus, with strategy
    /// rayfit also keepSmallSeconds, shrinkAfterSeconds or headroomCpus of the RayPolicy; or `today` to leave
    /// it as it is; can be repeated
    #[arg(long, value_name = "FIELD=LOW..HIGH")]
    within: Vec<Bounds>,

    /// The most simulations
    #[arg(long, value_name = "COUNT", default_value_t = 200, value_parser = simulations)]
    simulations: usize,

    /// With how many seeds each choice is simulated, from --seed on: figures are means over them. Each seed
    /// counts as a simulation
    #[arg(long, value_name = "COUNT", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=20))]
    seeds: u32,

    /// Take the cheapest choice whose mean wait is no longer
    #[arg(long, value_name = "SECONDS", value_parser = workload::seconds)]
    max_wait: Option<f64>,

    /// Take the choice with the least waiting that costs no more CPU-hours
    #[arg(long, value_name = "HOURS", value_parser = hours)]
    max_cost: Option<f64>,

    /// The CPU-hours that a GPU-hour counts for in the cost
    #[arg(long, value_name = "HOURS", default_value_t = 20.0, value_parser = hours)]
    gpu_weight: f64,

    /// The prices of hours of worker pods, of which what is not named costs nothing: the choices are shown in money as well
    #[arg(long, value_name = "cpu-hour=AMOUNT,gib-hour=AMOUNT,gpu-hour=AMOUNT")]
    price: Option<Price>,

    /// Take this choice, and print its patch [default: one that is better than today, or the knee]
    #[arg(long, value_name = "CHOICE")]
    choose: Option<usize>,

    /// The output format
    #[arg(short, long, value_enum, default_value_t, value_name = "FORMAT")]
    output: ChoiceFormat,

    #[command(flatten)]
    world: WorldArgs,

    #[command(flatten)]
    recording: RecordingArgs,

    #[command(flatten)]
    live: LiveArgs,
}

#[derive(Debug, Clone, Copy, Default, clap::ValueEnum)]
enum ChoiceFormat {
    /// A table, and a patch
    #[default]
    Text,
    /// Everything, for programs
    Json,
    /// The patch of the RayCluster alone, for kubectl patch --type json --patch-file
    Patch,
    /// The patch of the RayPolicy alone, for kubectl patch --type merge --patch-file
    PolicyPatch,
}

fn simulations(text: &str) -> Result<usize, String> {
    let count: Option<usize> = text.parse().ok();
    let count = count.filter(|count| (1..=MOST_SIMULATIONS).contains(count));
    count.ok_or_else(|| format!("write a whole number from 1 to {MOST_SIMULATIONS}"))
}

fn hours(text: &str) -> Result<f64, String> {
    let value: Option<f64> = text.parse().ok();
    let value = value.filter(|value| (0.0..=1e9).contains(value));
    value.ok_or_else(|| "write hours from 0 to 1e9".to_owned())
}

impl RecommendCommand {
    pub(super) fn run(self) -> anyhow::Result<Outcome> {
        let search = self.search()?;
        let mut progress = Progress::new("simulated");
        let searched = search.run(&mut |part| progress.share(part));
        // Its line is erased before anything else is written to the same terminal.
        drop(progress);
        let searched = searched.context("the RayCluster cannot be simulated")?;
        let recommendation = Recommendation::of(&searched, self.max_wait, self.max_cost);
        let report = Report {
            search: &search,
            searched: &searched,
            recommendation: &recommendation,
            price: self.price,
            is_wanted: self.max_wait.is_some() || self.max_cost.is_some(),
        };
        let text = match (self.output, self.chosen(&recommendation)?) {
            (ChoiceFormat::Json, _) => pretty(&report.json()),
            (ChoiceFormat::Patch, Some(chosen)) => {
                let patch = report.bare_patch(chosen);
                let policy = report.policy_patch(chosen);
                // An empty patch, or half of the change, is what was asked for and hardly what was meant.
                match (patch.trim() == "[]", policy.is_some()) {
                    (true, true) => outcome::warn(
                        "this choice changes the RayPolicy alone: print that with -o policy-patch",
                    ),
                    (true, false) => {
                        outcome::warn("this choice is what holds today: there is nothing to patch");
                    }
                    (false, true) => outcome::warn(
                        "this choice changes the RayPolicy too: print that patch with -o policy-patch",
                    ),
                    (false, false) => {}
                }
                patch
            }
            (ChoiceFormat::PolicyPatch, Some(chosen)) => {
                report.policy_patch(chosen).unwrap_or_else(|| {
                    outcome::warn("this choice changes nothing of the RayPolicy");
                    "{}\n".to_owned()
                })
            }
            (ChoiceFormat::Patch | ChoiceFormat::PolicyPatch, None) => {
                bail!("no choice is as wanted: look at all without -o patch")
            }
            (ChoiceFormat::Text, chosen) => {
                let (headline, table, legend) =
                    (report.headline(), report.table(), report.legend());
                let patch = chosen.map(|chosen| format!("\n{}", report.patch(chosen)));
                let patch = patch.unwrap_or_default();
                format!("{headline}\n\n{table}\n{legend}{patch}")
            }
        };
        outcome::print(&text)
    }

    fn search(&self) -> anyhow::Result<Search> {
        let key = live::named(&self.trace);
        let cluster = match (&self.cluster, &key) {
            (Some(file), _) => workload::cluster(file)?,
            (None, Some(key)) => self.live.cluster(key)?,
            (None, None) => bail!("name the file of the RayCluster: --cluster FILE"),
        };
        let trace = match &key {
            Some(key) => record_trace::record(key, &self.live, &self.recording)?,
            None => workload::trace(&self.trace)?,
        };
        let world = self.world.world(&cluster)?;
        let (mut reconciler, admission) = self.world.ruled(&cluster)?;
        let is_ours = RayObject::parse(&cluster).is_some_and(|ray| ray.reconcile_mode().is_ours());
        // Whoever has not chosen Rayfit for the cluster asks what to set while Ray's autoscaler scales it.
        reconciler.plan.strategy = match self.strategy {
            Some(strategy) => strategy,
            None if is_ours => reconciler.plan.strategy,
            None => Strategy::Ray,
        };
        let space = Space::of(&cluster, &trace, &world.pools, &self.within).with_policy(
            &reconciler,
            &trace,
            &self.within,
        );
        if space.parameters.is_empty() {
            bail!("there is nothing to search within these bounds: widen --within");
        }
        let policy_field = |one: &Bounds| match one.field {
            SearchField::Policy(field) => Some(VariedField::Policy(field)),
            _ => None,
        };
        // The search would leave such bounds aside without a word.
        if let Some(field) = self.within.iter().find_map(policy_field)
            && reconciler.plan.strategy == Strategy::Ray
        {
            bail!(only_rayfit(field));
        }
        Ok(Search {
            space,
            trace,
            world,
            reconciler,
            admission,
            simulations: self.simulations,
            seeds: self.seeds,
            gpu_weight: self.gpu_weight,
        })
    }

    /// The choice whose patch is printed, by its position in the front.
    fn chosen(&self, recommendation: &Recommendation) -> anyhow::Result<Option<usize>> {
        let Some(number) = self.choose else {
            return Ok(recommendation.taken);
        };
        let count = recommendation.trials.len();
        if !(1..=count).contains(&number) {
            bail!("there is no choice {number}: choose one from 1 to {count}");
        }
        Ok(Some(number - 1))
    }
}
