//! What simulations led to, as docs/outcome/results.json keeps it: for each set and setting the figures of each
//! decider, with a number for each seed.

use rayfit_core::plan::Strategy;
use rayfit_core::simulate::result::SimulationResult;
use serde::{Deserialize, Serialize};

/// The idle timeout with which there are figures of the decider without delay, and without each slice.
pub const LIMIT_IDLE_S: u32 = 60;

/// The figures of all sets.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Results {
    /// From which commit they are, as `scripts/commit.sh` says it.
    pub commit: String,
    /// The seeds, in the order of the numbers of each figure.
    pub seeds: Vec<u64>,
    /// The sets, in the order of the page.
    pub sets: Vec<SetFigures>,
}

/// The figures of a set.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SetFigures {
    /// Its name.
    pub name: String,
    /// How many jobs its workload has.
    pub jobs: usize,
    /// The CPU-hours that they ask for.
    pub work: f64,
    /// The figures of each setting.
    pub settings: Vec<Setting>,
}

/// What each decider led to in one setting.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Setting {
    /// From a pod's node to its Ray node, in seconds.
    pub pod_start: u32,
    /// `idleTimeoutSeconds`.
    pub idle: u32,
    /// Strategy `ray`.
    pub ray: Figures,
    /// Strategy `rayfit`.
    pub rayfit: Figures,
    /// The decider without delay, with the idle timeout of [`LIMIT_IDLE_S`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<Figures>,
}

/// What one decider led to, with a number for each seed.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Figures {
    /// The mean wait, in seconds.
    pub wait: Vec<f64>,
    /// What 99 of 100 jobs waited at most, in seconds.
    pub p99: Vec<f64>,
    /// CPU-hours of worker pods.
    pub cpu_hours: Vec<f64>,
    /// GPU-hours of worker pods.
    #[serde(default, skip_serializing_if = "are_zero")]
    pub gpu_hours: Vec<f64>,
    /// Worker pods that were made.
    pub pods: Vec<f64>,
    /// Resizes that were carried out.
    #[serde(default, skip_serializing_if = "are_zero")]
    pub resizes: Vec<f64>,
    /// Jobs that ran when their pod went, were lost, or never ran.
    #[serde(default, skip_serializing_if = "are_zero")]
    pub harmed: Vec<f64>,
}

fn are_zero(values: &[f64]) -> bool {
    values.iter().all(|value| *value == 0.0)
}

impl Setting {
    /// A setting without figures.
    pub fn new(pod_start: u32, idle: u32) -> Self {
        Self {
            pod_start,
            idle,
            ray: Figures::default(),
            rayfit: Figures::default(),
            limit: None,
        }
    }

    /// The figures of a strategy.
    pub fn of(&self, strategy: Strategy) -> &Figures {
        match strategy {
            Strategy::Ray => &self.ray,
            Strategy::Rayfit => &self.rayfit,
        }
    }
}

impl Figures {
    /// Adds those of one more seed, to the thousandth.
    #[allow(clippy::cast_precision_loss, reason = "counts")]
    pub fn add(&mut self, result: &SimulationResult) {
        let rounded = |value: f64| (value * 1000.0).round() / 1000.0;
        let harmed = result.harmed + (result.jobs.lost + result.jobs.unfinished) as u64;
        for (figures, value) in [
            (&mut self.wait, result.wait.mean),
            (&mut self.p99, result.wait.p99),
            (&mut self.cpu_hours, result.cpu_hours.paid),
            (&mut self.gpu_hours, result.gpu_hours.paid),
            (&mut self.pods, result.pods as f64),
            (&mut self.resizes, result.resizes as f64),
            (&mut self.harmed, harmed as f64),
        ] {
            figures.push(rounded(value));
        }
    }

    /// Without what is zero throughout, as it is when it is read again.
    pub fn kept(mut self) -> Self {
        for figures in [&mut self.gpu_hours, &mut self.resizes, &mut self.harmed] {
            if are_zero(figures) {
                figures.clear();
            }
        }
        self
    }
}

/// The mean over all seeds; 0 where there are no figures.
#[allow(clippy::cast_precision_loss, reason = "a mean")]
pub fn mean(values: &[f64]) -> f64 {
    // Not `sum`, which is -0 of nothing.
    values.iter().fold(0.0, |sum, value| sum + value) / values.len().max(1) as f64
}

impl Results {
    /// As JSON, with a line for each setting.
    pub fn json(&self) -> String {
        let line = |setting: &Setting| serde_json::to_string(setting).unwrap();
        let set = |set: &SetFigures| {
            let settings: Vec<String> = set.settings.iter().map(line).collect();
            format!(
                "{{\"name\":{:?},\"jobs\":{},\"work\":{},\"settings\":[\n{}\n]}}",
                set.name,
                set.jobs,
                set.work,
                settings.join(",\n")
            )
        };
        let sets: Vec<String> = self.sets.iter().map(set).collect();
        format!(
            "{{\"commit\":{:?},\"seeds\":{:?},\"sets\":[\n{}\n]}}\n",
            self.commit,
            self.seeds,
            sets.join(",\n")
        )
    }

    /// The figures of a set.
    pub fn set(&self, name: &str) -> Option<&SetFigures> {
        self.sets.iter().find(|set| set.name == name)
    }
}

impl SetFigures {
    /// The figures of a setting.
    pub fn setting(&self, pod_start: u32, idle: u32) -> Option<&Setting> {
        let is = |setting: &&Setting| setting.pod_start == pod_start && setting.idle == idle;
        self.settings.iter().find(is)
    }
}
