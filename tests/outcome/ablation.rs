//! What each slice of the strategy is worth: figures without one slice after the other beside those with all, as a table
//! for docs/planner.md.

use std::fmt::Write as _;

use rayfit_core::plan::Slice;

use super::compare::{CPU_HOURS, HARMED, Metric, WAIT, geometric_mean};
use super::figures::Figures;
use super::measure::Settings;
use super::page::number;

/// What the table is between in docs/planner.md.
pub const PLACE: (&str, &str) = (
    "<!-- slices: make outcome ABLATION=1 -->\n",
    "<!-- /slices -->\n",
);

/// What is worth less than this everywhere saves nothing that is worth its code.
const LITTLE: f64 = 0.02;

/// The figures of one decider: of each set, in each setting.
pub type OfSets = Vec<Vec<Figures>>;

/// What came of leaving out each slice in turn.
#[derive(Debug, Clone)]
pub struct Ablation<'a> {
    /// From which commit it is.
    pub commit: &'a str,
    /// The names of the sets.
    pub sets: Vec<&'a str>,
    /// The settings, with one idle timeout.
    pub settings: &'a Settings,
    /// The figures with all slices.
    pub with_all: OfSets,
    /// The figures without each slice.
    pub without: Vec<(Slice, OfSets)>,
}

/// What a slice does to one metric, without it as a multiple of with it.
struct Worth {
    /// The geometric mean over all sets, by pod start.
    means: Vec<f64>,
    /// The ratio of any set that is farthest from 1, with the name of the set and the pod start.
    most: (f64, String),
}

impl Ablation<'_> {
    /// The table, and what it says.
    pub fn table(&self) -> String {
        let (idle, count) = (self.settings.idles[0], self.sets.len());
        let starts: Vec<String> = (self.settings.pod_starts.iter())
            .map(|start| format!("{start} s"))
            .collect();
        let mut out = format!(
            "Mean wait and CPU-hours without each slice as multiples of those with all of them, with an idle timeout of {idle} s, \
             of {} (`make outcome ABLATION=1`): geometric means over {count} sets of [outcome.md](outcome.md#running-it-again) by the \
             seconds in which pods start, and the ratio of any set that is farthest from 1. Above 1 is what a slice saves, below 1 \
             what it costs. The sets: {}.\n\n| without | what it is for |",
            self.commit,
            self.sets.join(", "),
        );
        for metric in [WAIT, CPU_HOURS] {
            let _ = write!(out, " {}: {} | most |", metric.name, starts.join(" | "));
        }
        let columns = 2 * (starts.len() + 1);
        let _ = writeln!(out, "\n|---|---|{}", "---:|".repeat(columns));
        let (mut little, mut harm) = (Vec::new(), Vec::new());
        for (slice, without) in &self.without {
            let (name, purpose) = slice.about();
            let _ = write!(out, "| {name} | {purpose} |");
            let worths = [WAIT, CPU_HOURS].map(|metric| self.worth(metric, without));
            for Worth { means, most } in &worths {
                let means: Vec<String> = means.iter().map(|mean| format!("{mean:.3}")).collect();
                let (ratio, place) = most;
                let _ = write!(out, " {} | {ratio:.2} ({place}) |", means.join(" | "));
            }
            out.push('\n');
            if worths
                .iter()
                .all(|worth| (worth.most.0 - 1.0).abs() < LITTLE)
            {
                little.push(name);
            }
            let harmed = |of: &OfSets| of.iter().flatten().map(|one| HARMED.mean(one)).sum::<f64>();
            let more = harmed(without) - harmed(&self.with_all);
            if more != 0.0 {
                harm.push(format!("{name} ({} more)", number(more)));
            }
        }
        let list = |names: &[String]| match names {
            [] => "none".to_owned(),
            names => names.join(", "),
        };
        let little: Vec<String> = little.into_iter().map(str::to_owned).collect();
        let _ = writeln!(
            out,
            "\nWorth less than {:.0} % in every set: {}. No object and no node fails in these sets, and nobody else takes room: such \
             slices are for what tests show. Jobs that are harmed or never run without a slice: {}.",
            LITTLE * 100.0,
            list(&little),
            list(&harm),
        );
        out
    }

    fn worth(&self, metric: Metric, without: &OfSets) -> Worth {
        let starts = &self.settings.pod_starts;
        let mut means = Vec::new();
        let mut most = (1.0, "every set".to_owned());
        for (number, start) in starts.iter().enumerate() {
            let pairs = self.with_all.iter().zip(without);
            let ratios = pairs.map(|(all, less)| {
                metric.divided(metric.mean(&less[number]), metric.mean(&all[number]))
            });
            let ratios: Vec<f64> = ratios.collect();
            means.push(geometric_mean(ratios.iter().copied()).unwrap_or(1.0));
            for (ratio, set) in ratios.into_iter().zip(&self.sets) {
                if ratio.ln().abs() > f64::ln(most.0).abs() {
                    most = (ratio, format!("{set}, {start} s"));
                }
            }
        }
        Worth { means, most }
    }
}
