//! The result of a search for better settings, as people and programs read it.

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::table::{duration, jobs, strategy_name, to_first};
use crate::plan::Strategy;
use crate::simulate::recommend::patch::{Change, written};
use crate::simulate::recommend::recommendation::{Recommendation, Risk};
use crate::simulate::recommend::search::{Search, Searched};
use crate::simulate::recommend::trial::Trial;
use crate::yaml;

/// The most choices that are shown to people; programs get all.
const MOST_SHOWN: usize = 12;

/// A search, what it has found, and what follows from it.
#[derive(Debug, Clone, Copy)]
pub struct Report<'a> {
    /// The space that was searched.
    pub search: &'a Search,
    /// The trials.
    pub searched: &'a Searched,
    /// The recommended choice.
    pub recommendation: &'a Recommendation,
    /// Whether users have said what they want of it.
    pub is_wanted: bool,
}

impl Report<'_> {
    /// The workload and the cluster, in a line.
    pub fn headline(&self) -> String {
        let (search, today) = (self.search, &self.searched.today().result);
        let jobs = jobs(&search.trace);
        format!(
            "{} on {}, scaled by {}: {jobs}, {:.2} CPU-hours of work, {} if nothing ever waited{}",
            search.trace.name,
            self.place(),
            strategy_name(self.strategy()),
            today.cpu_hours.work,
            duration(today.endless_makespan),
            if search.seeds > 1 {
                format!("; figures are means over {} seeds", search.seeds)
            } else {
                String::new()
            },
        )
    }

    fn strategy(&self) -> Strategy {
        self.search.reconciler.plan.strategy
    }

    /// Namespace and name of the cluster.
    fn place(&self) -> String {
        let text = |pointer| self.search.space.cluster.pointer(pointer)?.as_str();
        let name = text("/metadata/name").unwrap_or("the cluster");
        let namespace = text("/metadata/namespace");
        namespace.map_or_else(|| name.to_owned(), |space| format!("{space}/{name}"))
    }

    /// Titles of columns, and a line for each choice of the front and for today's settings.
    pub fn table(&self) -> (Vec<&'static str>, Vec<Vec<String>>) {
        let has_gpus = self.has_gpus();
        let mut titles = vec!["CHOICE", "", "WAIT", "P99", "CPU-HOURS"];
        titles.extend(
            has_gpus
                .then_some(["GPU-HOURS", "COST"])
                .into_iter()
                .flatten(),
        );
        titles.extend(["WAIT TO TODAY", "COST TO TODAY", "WORSE IN", "BY"]);
        titles.extend((self.search.seeds > 1).then_some("BETTER ON"));
        titles.push("CHANGES");
        let mut rows: Vec<(Option<usize>, usize)> = (self.shown().into_iter())
            .map(|at| (Some(at), self.recommendation.trials[at]))
            .collect();
        if !self.recommendation.has_today() {
            let costs = rows
                .iter()
                .map(|(_, trial)| self.searched.trials[*trial].cost);
            let today = self.searched.today().cost;
            let before = costs.take_while(|cost| *cost <= today).count();
            rows.insert(before, (None, 0));
        }
        let lines = rows.into_iter().map(|(at, trial)| self.cells(at, trial));
        (titles, lines.collect())
    }

    fn simulations(&self) -> usize {
        let trials = self.searched.trials.iter();
        trials.map(|trial| trial.by_seed.len()).sum()
    }

    fn has_gpus(&self) -> bool {
        let mut trials = self.searched.trials.iter();
        trials.any(|trial| trial.result.gpu_hours.paid > 0.0)
    }

    /// The choices that are shown: all, or evenly chosen ones with those that matter.
    fn shown(&self) -> Vec<usize> {
        let front = self.recommendation;
        let count = front.trials.len();
        let is_named =
            |at: usize| front.trials[at] == 0 || front.knee == Some(at) || front.taken == Some(at);
        let step = count.div_ceil(MOST_SHOWN).max(1);
        let is_shown = |at: &usize| at.is_multiple_of(step) || at + 1 == count || is_named(*at);
        (0..count).filter(is_shown).collect()
    }

    fn cells(&self, at: Option<usize>, number: usize) -> Vec<String> {
        let (today, trial) = (self.searched.today(), &self.searched.trials[number]);
        let (wait, result) = (trial.result.wait, &trial.result);
        let mut cells = vec![
            at.map(|at| (at + 1).to_string()).unwrap_or_default(),
            self.mark(at, number),
            format!("{:.1} s", wait.mean),
            format!("{:.1} s", wait.p99),
            format!("{:.2}", result.cpu_hours.paid),
        ];
        if self.has_gpus() {
            cells.extend([result.gpu_hours.paid, trial.cost].map(|hours| format!("{hours:.2}")));
        }
        if number == 0 {
            let empty = 5 + usize::from(self.search.seeds > 1);
            cells.extend(std::iter::repeat_n(String::new(), empty));
            return cells;
        }
        let risk = Risk::of(self.searched, trial);
        let by = (risk.worse_parts > 0).then(|| format!("{:.1} s", risk.worst_by));
        cells.extend([
            format!("{:+.1} s", wait.mean - today.result.wait.mean),
            to_first(
                format!("{:+.2}", trial.cost - today.cost),
                trial.cost,
                today.cost,
            ),
            format!("{} of {}", risk.worse_parts, risk.parts),
            by.unwrap_or_default(),
        ]);
        let seeds = format!("{} of {} seeds", risk.better_seeds, risk.seeds);
        cells.extend((self.search.seeds > 1).then_some(seeds));
        cells.push(self.describe(&trial.patch.changes));
        cells
    }

    /// Changes in a cell: sizes are told by their cores alone, since memory goes with them, and a group by
    /// its name where there are several.
    fn describe(&self, changes: &[Change]) -> String {
        let is_told = |change: &&Change| {
            let field = change.field;
            !field.starts_with("requests.") && !field.ends_with("memory")
        };
        let is_alone = self.search.space.groups.len() == 1;
        let told = changes.iter().filter(is_told).map(|change| {
            let group = change.group.clone().filter(|_| !is_alone);
            let change = Change {
                group,
                ..change.clone()
            };
            change.to_string()
        });
        told.collect::<Vec<String>>().join(", ")
    }

    fn mark(&self, at: Option<usize>, number: usize) -> String {
        let is_knee = at.is_some() && self.recommendation.knee == at;
        let is_taken = at.is_some() && self.recommendation.taken == at;
        let marks = [
            (number == 0).then_some("today"),
            is_knee.then_some("knee"),
            (is_taken && number != 0).then_some("taken"),
        ];
        let marks: Vec<&str> = marks.into_iter().flatten().collect();
        marks.join(", ")
    }

    /// The meaning of the columns, and conclusions.
    pub fn legend(&self) -> String {
        let mut out = String::from(
            "WAIT: from when a job was ready until it started, as the mean. P99: what 99 of 100 jobs waited at \
             most.\nWORSE IN: in how many parts of the trace (by arrival, each as many jobs) the mean wait was \
             longer than today,\nand by how much at the most.\nCOST TO TODAY: in CPU-hours, and in percent.\n",
        );
        if self.search.seeds > 1 {
            out.push_str(
                "BETTER ON: with how many seeds the choice was better than today's settings in waiting or cost, and \
                 worse in neither.\n",
            );
        }
        if self.has_gpus() {
            let weight = self.search.gpu_weight;
            let _ = writeln!(
                out,
                "COST: CPU-hours, and each GPU-hour as {weight} of them."
            );
        }
        out.push('\n');
        for sentence in self.sentences() {
            let _ = writeln!(out, "{sentence}");
        }
        out
    }

    fn sentences(&self) -> Vec<String> {
        let front = self.recommendation;
        let mut said = vec![self.beside_today()];
        let (shown, all) = (self.shown().len(), front.trials.len());
        if shown < all {
            said.push(format!(
                "These are {shown} of {all} choices; -o json has them all."
            ));
        }
        let first = front
            .trials
            .first()
            .map(|trial| &self.searched.trials[*trial]);
        if let Some(failed) = first.map(Trial::failed).filter(|failed| *failed > 0) {
            said.push(format!(
                "With every choice {failed} jobs never ran or were harmed; rayfit simulate says which."
            ));
        }
        if self.searched.trials.len() >= self.search.most_choices() {
            let count = self.search.simulations;
            said.push(format!(
                "All {count} simulations were used: with more (--simulations) there may be better choices."
            ));
        }
        said.push(match front.knee {
            Some(knee) => format!(
                "Choice {} is the knee: from there on, less waiting costs much more.",
                knee + 1
            ),
            None => "There is no knee: less waiting costs about as much everywhere.".to_owned(),
        });
        said.extend(self.is_taken());
        said
    }

    /// The choices compared with today's settings.
    fn beside_today(&self) -> String {
        let front = self.recommendation;
        let trials = front.trials.iter();
        let better = trials
            .filter(|trial| self.searched.is_better(**trial))
            .count();
        match (front.has_today(), better) {
            (true, _) if front.trials.len() == 1 => {
                "Nothing that was tried is better than today's settings: leave them as they are."
                    .to_owned()
            }
            (true, _) => {
                "Today's settings are on the front: what waits less costs more, and what costs \
                          less waits longer."
                    .to_owned()
            }
            (false, 0) => {
                "No choice is better than today's settings in waiting as in cost.".to_owned()
            }
            (false, 1) => {
                "One choice is better than today's settings in waiting as in cost.".to_owned()
            }
            (false, better) => {
                format!("{better} choices are better than today's settings in waiting as in cost.")
            }
        }
    }

    /// The reason for the choice that is taken.
    fn is_taken(&self) -> Option<String> {
        let (front, searched) = (self.recommendation, self.searched);
        let Some(taken) = front.taken else {
            let none = "No choice is as wanted by --max-wait and --max-cost.";
            return Some(none.to_owned());
        };
        let number = taken + 1;
        if self.is_wanted {
            return Some(format!("Choice {number} is as wanted."));
        }
        let is_better = searched.is_better(front.trials[taken]);
        (is_better && front.knee != Some(taken)).then(|| {
            format!(
                "Choice {number} is taken, as it is better than today's settings; --choose takes another."
            )
        })
    }

    /// The patch of a choice, by its position in the front, with how to apply it.
    pub fn patch(&self, at: usize) -> String {
        let trial = &self.searched.trials[self.recommendation.trials[at]];
        if trial.patch.changes.is_empty() {
            return "Choice ".to_owned() + &format!("{} is what holds today.\n", at + 1);
        }
        let changes = trial.patch.changes.iter();
        let mut out = format!("Choice {} changes\n", at + 1);
        for change in changes {
            let _ = writeln!(out, "  {change}");
        }
        if !trial.patch.patch.0.is_empty() {
            self.cluster_patch(&mut out, at);
        }
        if let Some(policy) = self.policy_patch(at) {
            let _ = write!(
                out,
                "\nin the RayPolicy that holds for this cluster, with the patch below, which -o policy-patch prints \
                 alone:\n  kubectl patch raypolicy NAME --type merge --patch-file policy-patch.yaml --dry-run=server\n  \
                 kubectl patch raypolicy NAME --type merge --patch-file policy-patch.yaml\n\
                 It holds for all clusters that the RayPolicy selects.\n\n{policy}"
            );
        }
        out
    }

    fn cluster_patch(&self, out: &mut String, at: usize) {
        let text = |pointer| self.search.space.cluster.pointer(pointer)?.as_str();
        let (name, namespace) = (text("/metadata/name"), text("/metadata/namespace"));
        let name = name.unwrap_or("NAME");
        let namespace = namespace.map(|space| format!(" -n {space}"));
        let namespace = namespace.unwrap_or_default();
        let _ = write!(
            out,
            "\nin the manifest, or on the live cluster with the patch below, which -o patch prints alone:\n  \
             kubectl patch raycluster {name}{namespace} --type json --patch-file patch.yaml --dry-run=server\n  \
             kubectl patch raycluster {name}{namespace} --type json --patch-file patch.yaml\n"
        );
        if self
            .search
            .space
            .cluster
            .pointer("/spec/upgradeStrategy/type")
            == Some(&json!("Recreate"))
        {
            out.push_str(
                "With upgradeStrategy Recreate, KubeRay replaces all pods after a change of anything but numbers \
                 of replicas and annotations.\n",
            );
        }
        out.push('\n');
        out.push_str(&self.bare_patch(at));
    }

    /// The patch of a choice alone, as YAML.
    pub fn bare_patch(&self, at: usize) -> String {
        let trial = &self.searched.trials[self.recommendation.trials[at]];
        yaml::write(&written(&trial.patch.patch))
    }

    /// The patch of the RayPolicy alone, as YAML; `None` where a choice changes nothing there.
    pub fn policy_patch(&self, at: usize) -> Option<String> {
        let trial = &self.searched.trials[self.recommendation.trials[at]];
        trial.patch.policy_patch().map(|patch| yaml::write(&patch))
    }

    /// Everything, for programs.
    pub fn json(&self) -> Value {
        let (search, front) = (self.search, self.recommendation);
        let group = |at: Option<usize>| at.map(|at| search.space.groups[at].title());
        let parameters = search.space.parameters.iter().map(|one| {
            json!({"field": one.field.name(), "group": group(one.group), "values": one.values,
                "today": one.values[one.today]})
        });
        let choices = front.trials.iter().enumerate().map(|(at, trial)| {
            let (is_today, is_better) = (*trial == 0, self.searched.is_better(*trial));
            let trial = &self.searched.trials[*trial];
            let mut choice = self.trial(trial);
            choice["choice"] = json!(at + 1);
            choice["isToday"] = json!(is_today);
            choice["isKnee"] = json!(front.knee == Some(at));
            choice["betterThanToday"] = json!(is_better);
            choice
        });
        json!({
            "apiVersion": "rayfit.dev/v1alpha1", "kind": "Recommendation",
            "trace": search.trace.name, "jobs": search.trace.jobs.len(), "rayCluster": self.place(),
            "strategy": strategy_name(self.strategy()), "gpuWeight": search.gpu_weight,
            "simulations": self.simulations(), "seeds": search.seeds, "refused": self.searched.refused,
            "searched": parameters.collect::<Vec<Value>>(),
            "today": self.trial(self.searched.today()),
            "front": choices.collect::<Vec<Value>>(),
            "taken": front.taken.map(|at| at + 1),
        })
    }

    fn trial(&self, trial: &Trial) -> Value {
        let mut result = json!(trial.result);
        if let Some(fields) = result.as_object_mut() {
            for curves in ["curve", "groups", "pools"] {
                fields.remove(curves);
            }
        }
        json!({
            "changes": trial.patch.changes, "cost": trial.cost, "result": result,
            "risk": Risk::of(self.searched, trial), "patch": written(&trial.patch.patch),
            "policyPatch": trial.patch.policy_patch(),
        })
    }
}
