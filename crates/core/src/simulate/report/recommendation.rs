//! The result of a search for better settings, as people and programs read it.

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::table::{duration, to_first};
use crate::report::counted;
use crate::report::table::Table;
use crate::simulate::price::Price;
use crate::simulate::recommend::recommendation::{Recommendation, Risk};
use crate::simulate::recommend::search::{Search, SearchResult};
use crate::simulate::recommend::trial::{Trial, failed};
use crate::yaml;

/// The most choices that are shown to people; programs get all.
const MOST_SHOWN: usize = 12;

/// A search, what it has found, and what follows from it.
#[derive(Debug, Clone, Copy)]
pub struct Report<'a> {
    /// The space that was searched.
    pub search: &'a Search,
    /// The trials.
    pub searched: &'a SearchResult,
    /// The recommended choice.
    pub recommendation: &'a Recommendation,
    /// The prices by which choices are shown in money as well.
    pub price: Option<Price>,
    /// True if users have set a longest wait or a highest cost.
    pub is_wanted: bool,
}

impl Report<'_> {
    /// The workload and the cluster, in a line.
    pub fn headline(&self) -> String {
        let (search, today) = (self.search, &self.searched.today().result);
        let jobs = counted(search.trace.jobs.len(), "job");
        format!(
            "{} on {}, scaled by {}: {jobs}, {:.2} CPU-hours of work, {} if nothing ever waited{}",
            search.trace.name,
            self.place(),
            search.reconciler.plan.strategy,
            today.cpu_hours.work,
            duration(today.endless_makespan),
            if search.seeds > 1 {
                format!("; figures are means over {} seeds", search.seeds)
            } else {
                String::new()
            },
        )
    }

    /// Namespace and name of the cluster.
    fn place(&self) -> String {
        let text = |pointer| self.search.space.cluster.pointer(pointer)?.as_str();
        let name = text("/metadata/name").unwrap_or("the cluster");
        let namespace = text("/metadata/namespace");
        namespace.map_or_else(|| name.to_owned(), |space| format!("{space}/{name}"))
    }

    /// The table: a line for each choice of the front and for today's settings.
    pub fn table(&self) -> Table {
        let mut titles = vec!["CHOICE", "", "WAIT", "P99", "CPU-HOURS"];
        if self.has_gpus() {
            titles.extend(["GPU-HOURS", "COST"]);
        }
        titles.extend(self.price.map(|_| "PRICE"));
        titles.extend(["WAIT TO TODAY", "COST TO TODAY"]);
        titles.extend(self.price.map(|_| "PRICE TO TODAY"));
        titles.extend(["WORSE IN", "BY"]);
        if self.search.seeds > 1 {
            titles.push("BETTER ON");
        }
        titles.push("CHANGES");
        let front = self.recommendation;
        let mut rows: Vec<(Option<usize>, usize)> = (self.shown().into_iter())
            .map(|at| (Some(at), front.trials[at]))
            .collect();
        let today = self.searched.today();
        if !front.has_today() {
            let costs = rows
                .iter()
                .map(|(_, trial)| self.searched.trials[*trial].cost);
            let cheaper = costs.take_while(|cost| *cost <= today.cost).count();
            rows.insert(cheaper, (None, 0));
        }
        let mut table = Table::new(&titles);
        for (at, number) in rows {
            let mut cells = self.cells(at, number);
            // Today's settings are not compared with themselves, and change nothing.
            cells.resize(titles.len(), String::new());
            table.line(cells);
        }
        table
    }

    /// The cells of a trial, by its position in the front and its number; of today's settings without comparisons.
    fn cells(&self, at: Option<usize>, number: usize) -> Vec<String> {
        let (front, today) = (self.recommendation, self.searched.today());
        let trial = &self.searched.trials[number];
        let (wait, result) = (trial.result.wait, &trial.result);
        let marks = [
            (number == 0).then_some("today"),
            (at.is_some() && front.knee == at).then_some("knee"),
            (at.is_some() && front.taken == at && number != 0).then_some("taken"),
        ];
        let marks: Vec<&str> = marks.into_iter().flatten().collect();
        let mut cells = vec![
            at.map(|at| (at + 1).to_string()).unwrap_or_default(),
            marks.join(", "),
            format!("{:.1} s", wait.mean),
            format!("{:.1} s", wait.p99),
            format!("{:.2}", result.cpu_hours.paid),
        ];
        if self.has_gpus() {
            cells.extend([result.gpu_hours.paid, trial.cost].map(|hours| format!("{hours:.2}")));
        }
        let money = |trial: &Trial| Some(self.price?.of(&trial.result));
        cells.extend(money(trial).map(|money| format!("{money:.2}")));
        if number == 0 {
            return cells;
        }
        let risk = Risk::of(self.searched, trial);
        let by = (risk.worse_parts > 0).then(|| format!("{:.1} s", risk.worst_by));
        let more = format!("{:+.2}", trial.cost - today.cost);
        cells.extend([
            format!("{:+.1} s", wait.mean - today.result.wait.mean),
            to_first(more, trial.cost, today.cost),
        ]);
        cells.extend(
            money(trial)
                .zip(money(today))
                .map(|(money, today)| to_first(format!("{:+.2}", money - today), money, today)),
        );
        cells.extend([
            format!("{} of {}", risk.worse_parts, risk.parts),
            by.unwrap_or_default(),
        ]);
        if self.search.seeds > 1 {
            cells.push(format!("{} of {} seeds", risk.better_seeds, risk.seeds));
        }
        // Sizes are shown by their cores alone, since memory goes with them, and a group by its name where
        // there are several.
        let is_alone = self.search.space.groups.len() == 1;
        let changes = trial.patch.changes.iter().filter(|change| {
            !change.field.starts_with("requests.") && !change.field.ends_with("memory")
        });
        let changes = changes.map(|change| {
            let mut change = change.clone();
            change.group = change.group.filter(|_| !is_alone);
            change.to_string()
        });
        cells.push(changes.collect::<Vec<String>>().join(", "));
        cells
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
        if self.price.is_some() {
            out.push_str("PRICE: of the hours of worker pods, by --price; PRICE TO TODAY: what is saved is negative.\n");
        }
        out.push('\n');
        for sentence in self.conclusions() {
            let _ = writeln!(out, "{sentence}");
        }
        out
    }

    /// The comparison of the choices with today's settings, in words.
    fn compared_to_today(&self) -> String {
        let (front, searched) = (self.recommendation, self.searched);
        let trials = front.trials.iter();
        let better = trials.filter(|trial| searched.is_better(**trial)).count();
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

    fn conclusions(&self) -> Vec<String> {
        let (front, searched) = (self.recommendation, self.searched);
        let mut sentences = vec![self.compared_to_today()];
        let (shown, all) = (self.shown().len(), front.trials.len());
        if shown < all {
            sentences.push(format!(
                "These are {shown} of {all} choices; -o json has them all."
            ));
        }
        let first = front.trials.first();
        let lost = first.map_or(0, |trial| failed(&searched.trials[*trial].result));
        if lost > 0 {
            sentences.push(format!(
                "With every choice {lost} jobs never ran or were harmed; rayfit simulate says which."
            ));
        }
        if searched.trials.len() >= self.search.most_choices() {
            let count = self.search.simulations;
            sentences.push(format!(
                "All {count} simulations were used: with more (--simulations) there may be better choices."
            ));
        }
        sentences.push(match front.knee {
            Some(knee) => format!(
                "Choice {} is the knee: from there on, less waiting costs much more.",
                knee + 1
            ),
            None => "There is no knee: less waiting costs about as much everywhere.".to_owned(),
        });
        match front.taken {
            None => {
                sentences.push("No choice is as wanted by --max-wait and --max-cost.".to_owned());
            }
            Some(taken) if self.is_wanted => {
                sentences.push(format!("Choice {} is as wanted.", taken + 1));
            }
            Some(taken) if front.knee != Some(taken) && searched.is_better(front.trials[taken]) => {
                sentences.push(format!(
                    "Choice {} is taken, as it is better than today's settings; --choose takes another.",
                    taken + 1
                ));
            }
            Some(_) => {}
        }
        sentences
    }

    /// The patch of a choice, by its position in the front, with how to apply it.
    pub fn patch(&self, at: usize) -> String {
        let trial = &self.searched.trials[self.recommendation.trials[at]];
        let number = at + 1;
        if trial.patch.changes.is_empty() {
            return format!("Choice {number} is what holds today.\n");
        }
        let mut out = format!("Choice {number} changes\n");
        for change in &trial.patch.changes {
            let _ = writeln!(out, "  {change}");
        }
        if !trial.patch.patch.0.is_empty() {
            let cluster = &self.search.space.cluster;
            let name = cluster["metadata"]["name"].as_str().unwrap_or("NAME");
            let namespace = cluster["metadata"]["namespace"].as_str();
            let namespace = namespace.map_or_else(String::new, |space| format!(" -n {space}"));
            let _ = write!(
                out,
                "\nin the manifest, or on the live cluster with the patch below, which -o patch prints alone:\n  \
                 kubectl patch raycluster {name}{namespace} --type json --patch-file patch.yaml --dry-run=server\n  \
                 kubectl patch raycluster {name}{namespace} --type json --patch-file patch.yaml\n"
            );
            if cluster["spec"]["upgradeStrategy"]["type"] == "Recreate" {
                out.push_str(
                    "With upgradeStrategy Recreate, KubeRay replaces all pods after a change of anything but numbers \
                     of replicas and annotations.\n",
                );
            }
            let _ = write!(out, "\n{}", self.bare_patch(at));
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

    /// The patch of a choice alone, as YAML.
    pub fn bare_patch(&self, at: usize) -> String {
        let trial = &self.searched.trials[self.recommendation.trials[at]];
        yaml::write(&json!(trial.patch.patch))
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
            json!({"field": <&str>::from(one.field), "group": group(one.group), "values": one.values,
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
        let trials = self.searched.trials.iter();
        let simulations: usize = trials.map(|trial| trial.by_seed.len()).sum();
        json!({
            "apiVersion": "rayfit.dev/v1alpha1", "kind": "Recommendation",
            "trace": search.trace.name, "jobs": search.trace.jobs.len(), "rayCluster": self.place(),
            "strategy": search.reconciler.plan.strategy, "gpuWeight": search.gpu_weight,
            "simulations": simulations, "seeds": search.seeds, "refused": self.searched.refused,
            "searched": parameters.collect::<Vec<Value>>(),
            "today": self.trial(self.searched.today()),
            "front": choices.collect::<Vec<Value>>(),
            "taken": front.taken.map(|at| at + 1),
        })
    }

    fn trial(&self, trial: &Trial) -> Value {
        let mut result = json!(trial.result);
        if let Some(fields) = result.as_object_mut() {
            fields.remove("curve");
        }
        let mut written = json!({
            "changes": trial.patch.changes, "cost": trial.cost, "result": result,
            "risk": Risk::of(self.searched, trial), "patch": trial.patch.patch,
            "policyPatch": trial.patch.policy_patch(),
        });
        if let Some(price) = self.price {
            written["price"] = json!(price.of(&trial.result));
        }
        written
    }
}
