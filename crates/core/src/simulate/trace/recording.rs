//! A trace that grows while a cluster runs, from what its GCS knows again and again.

use std::collections::HashMap;

use super::assemble::{assemble, some};
use super::draft::as_name;
use super::error::TraceError;
use super::forms::ray_runs::{ActorEnds, Groups, RayGroup, RayKind, RayRun, drafts};
use super::job::Trace;
use super::loss::Loss;

/// The most attempts of tasks that are kept: about a hundred megabytes.
pub const MOST_RUNS: usize = 250_000;

/// The most actors, and the most placement groups.
const MOST_OTHERS: usize = 100_000;

/// The runs that a GCS knows of at one moment.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RayHistory {
    /// Attempts of tasks.
    pub runs: Vec<RayRun>,
    /// The ends of actors, by their ids, in seconds since 1970.
    pub actor_ends: Vec<(String, f64)>,
    /// Placement groups by their ids.
    pub groups: Vec<(String, RayGroup)>,
    /// The number of attempts that the GCS has forgotten since it started.
    pub forgotten: u64,
}

/// The runs that were learned since the recording began.
#[derive(Debug, Clone, Default)]
pub struct Recording {
    /// Attempts by their task and when they were ready. Of the calls of an actor only the last is
    /// kept: it says how long the actor was needed.
    runs: HashMap<(String, u64), RayRun>,
    actor_ends: ActorEnds,
    groups: Groups,
    /// The GCS's count of forgotten attempts when the recording began, and the last one.
    forgotten: Option<(u64, u64)>,
}

impl Recording {
    /// The number of attempts that are kept.
    pub fn attempts(&self) -> usize {
        self.runs.len()
    }

    /// Checks whether there is no room for more attempts.
    pub fn is_full(&self) -> bool {
        self.runs.len() >= MOST_RUNS
    }

    /// Learns what a GCS knows now. What has no room is left out, and counts as forgotten.
    pub fn add(&mut self, history: RayHistory) {
        let mut left_out = 0;
        for run in history.runs {
            let key = match (&run.actor, run.kind) {
                // An actor may be called thousands of times a second: a record of each call would
                // leave no room for tasks.
                (Some(actor), RayKind::Call) => (actor.clone(), u64::MAX),
                // Attempts of one task differ in when they were ready, in bits because a float is
                // no key.
                _ => (run.task.clone(), run.ready.to_bits()),
            };
            let end = |run: &RayRun| run.ran.map_or(f64::NEG_INFINITY, |(_, end)| end);
            let has_room = self.runs.len() < MOST_RUNS;
            match self.runs.get_mut(&key) {
                // Reports overlap, and a task that goes on is reported again when it has ended.
                Some(known) if end(known) <= end(&run) => *known = run,
                Some(_) => {}
                None if has_room => {
                    self.runs.insert(key, run);
                }
                None => left_out += 1,
            }
        }
        learn(&mut self.actor_ends, history.actor_ends);
        learn(&mut self.groups, history.groups);
        // A GCS that has restarted counts from 0 again, below what it had forgotten when the
        // recording began.
        let (first, _) = self.forgotten.unwrap_or((history.forgotten, 0));
        self.forgotten = Some((first.min(history.forgotten), history.forgotten + left_out));
    }

    /// The trace, and what was left out of it. Actors that live now, in seconds since 1970, have lived
    /// until now.
    ///
    /// # Errors
    ///
    /// Nothing has ended, or the GCS told of amounts that Ray does not have.
    pub fn finish(mut self, name: &str, now: f64) -> Result<(Trace, Vec<Loss>), TraceError> {
        for run in self.runs.values() {
            if let (RayKind::Creation, Some(actor), Some(_)) = (run.kind, &run.actor, run.ran) {
                self.actor_ends.entry(actor.clone()).or_insert(now);
            }
        }
        let mut runs: Vec<((String, u64), RayRun)> = self.runs.into_iter().collect();
        // A hash map has another order in each process; equal recordings have to give equal traces.
        runs.sort_by(|(one, _), (other, _)| one.cmp(other));
        let runs = runs.into_iter().map(|(_, run)| run).collect();
        let (drafts, mut losses) = drafts(runs, &self.groups, &self.actor_ends)?;
        let (first, last) = self.forgotten.unwrap_or_default();
        let forgotten = usize::try_from(last.saturating_sub(first)).unwrap_or(usize::MAX);
        losses.extend(Loss::of(Loss::Forgotten, forgotten));
        some(&drafts, " that has ended")?;
        Ok((assemble(as_name(name), drafts)?, losses))
    }
}

/// Adds entries of ids that are in the map, and of new ones as long as there is room.
fn learn<T>(map: &mut HashMap<String, T>, entries: Vec<(String, T)>) {
    for (id, entry) in entries {
        if map.len() < MOST_OTHERS || map.contains_key(&id) {
            map.insert(id, entry);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulate::trace::job::{JobDemand, JobShape, PlacementStrategy};

    fn run(task: &str, kind: RayKind, from: f64, to: Option<f64>) -> RayRun {
        RayRun {
            task: task.to_owned(),
            name: "f".to_owned(),
            kind,
            actor: None,
            group: None,
            parent: None,
            ready: from,
            ran: to.map(|to| (from + 0.5, to)),
            shape: JobShape::from([("CPU".to_owned(), 1.0)]),
        }
    }

    fn history(runs: Vec<RayRun>) -> RayHistory {
        RayHistory {
            runs,
            ..RayHistory::default()
        }
    }

    #[test]
    fn what_is_reported_twice_counts_once_and_ends_are_kept() {
        let mut recording = Recording::default();
        recording.add(history(vec![run("t", RayKind::Task, 100.0, None)]));
        recording.add(history(vec![run("t", RayKind::Task, 100.0, Some(103.0))]));
        // The GCS has forgotten the first, and tells of another.
        let mut later = history(vec![
            run("u", RayKind::Task, 104.0, Some(105.0)),
            run("v", RayKind::Task, 104.0, None),
        ]);
        later.forgotten = 2;
        recording.add(later);
        let (trace, losses) = recording.finish("n", 110.0).unwrap();
        let jobs: Vec<(&str, f64, f64)> = (trace.jobs.iter())
            .map(|job| (job.id.as_str(), job.at, job.seconds))
            .collect();
        assert_eq!(jobs, [("t", 0.0, 2.5), ("u", 4.0, 0.5)]);
        assert_eq!(losses, [Loss::Unfinished(1), Loss::Forgotten(2)]);
    }

    #[test]
    fn actors_live_until_they_end_and_parents_come_first_where_they_did() {
        let actor = |id: &str, run: RayRun| RayRun {
            actor: Some(id.to_owned()),
            ..run
        };
        let child = |at: f64| RayRun {
            parent: Some("t".to_owned()),
            ..run("late", RayKind::Task, at, Some(at + 2.0))
        };
        let mut told = history(vec![
            run("t", RayKind::Task, 100.0, Some(103.0)),
            child(104.0),
            RayRun {
                task: "early".to_owned(),
                ..child(101.0)
            },
            actor("a", run("made-a", RayKind::Creation, 100.0, Some(101.0))),
            actor("b", run("made-b", RayKind::Creation, 100.0, Some(101.0))),
            actor("b", run("call", RayKind::Call, 102.0, Some(103.0))),
        ]);
        told.actor_ends = vec![("a".to_owned(), 150.5)];
        let mut recording = Recording::default();
        recording.add(told);
        let (trace, _) = recording.finish("n", 200.5).unwrap();
        let job = |id: &str| trace.jobs.iter().find(|job| job.id == id).unwrap();
        let after = |id: &str| job(id).after.iter().map(|at| trace.jobs[*at].id.as_str());
        assert_eq!(after("late").collect::<Vec<_>>(), ["t"]);
        assert_eq!(after("early").count(), 0, "its parent went on");
        let seconds = |id: &str| job(id).seconds.to_string();
        assert_eq!(
            (seconds("made-a"), seconds("made-b")),
            ("50".into(), "100".into())
        );
    }

    #[test]
    fn what_is_known_takes_no_further_room() {
        let ends = |count: usize| RayHistory {
            actor_ends: (0..count).map(|number| (number.to_string(), 1.0)).collect(),
            ..RayHistory::default()
        };
        let mut recording = Recording::default();
        recording.add(ends(MOST_OTHERS - 1));
        // A GCS tells of those that it has told of before, and then of others.
        recording.add(ends(MOST_OTHERS + 1));
        let knows = |number: usize| recording.actor_ends.contains_key(&number.to_string());
        assert!(knows(MOST_OTHERS - 1) && !knows(MOST_OTHERS));
        assert_eq!(recording.actor_ends.len(), MOST_OTHERS);
    }

    #[test]
    fn strategies_of_placement_groups_are_known() {
        let mut told = history(vec![RayRun {
            group: Some("g".to_owned()),
            ..run("t", RayKind::Task, 1.0, Some(4.0))
        }]);
        let group = RayGroup {
            bundles: vec![JobShape::from([("CPU".to_owned(), 1.0)]); 2],
            strategy: Some(PlacementStrategy::StrictSpread),
        };
        told.groups = vec![("g".to_owned(), group.clone())];
        let mut recording = Recording::default();
        recording.add(told);
        let (trace, losses) = recording.finish("n", 9.0).unwrap();
        assert_eq!(losses, []);
        let expected = JobDemand::PlacementGroup {
            strategy: PlacementStrategy::StrictSpread,
            bundles: group.bundles,
        };
        assert_eq!(trace.jobs[0].demand, expected);
    }
}
