//! Descriptions of jobs from Ray's own records of its tasks.
//!
//! Calls of an actor take nothing of their own: they are part of the actor's life, which ends with the
//! last of them. What runs in a placement group takes from its bundles: the group is the job, from
//! the first that was ready in it to the end of the last.

use std::collections::{BTreeMap, HashMap};

use crate::simulate::trace::draft::{JobDraft, as_name};
use crate::simulate::trace::error::{Place, TraceError};
use crate::simulate::trace::job::{JobDemand, JobShape, PlacementStrategy};
use crate::simulate::trace::loss::Loss;

/// The kind of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RayKind {
    /// A task of its own.
    Task,
    /// The creation of an actor.
    Creation,
    /// A call of an actor.
    Call,
}

/// One attempt of a task.
#[derive(Debug, Clone, PartialEq)]
pub struct RayRun {
    /// Its id, that of all its attempts.
    pub task: String,
    /// The name of the function or class.
    pub name: String,
    /// Its kind.
    pub kind: RayKind,
    /// The actor that is made or called.
    pub actor: Option<String>,
    /// The placement group in which it runs.
    pub group: Option<String>,
    /// The task that submitted it.
    pub parent: Option<String>,
    /// The time at which it was ready to run, in seconds of some clock.
    pub ready: f64,
    /// The start and the end of its run; absent as long as it has not ended.
    pub ran: Option<(f64, f64)>,
    /// The resources that it asked for.
    pub shape: JobShape,
}

/// The suffix that Ray appends to the name of a class to name its creation.
const CREATION: &str = ".__init__";

/// A placement group.
#[derive(Debug, Clone, PartialEq)]
pub struct RayGroup {
    /// The resources of each of its bundles.
    pub bundles: Vec<JobShape>,
    /// Its placement strategy, if that is recorded.
    pub strategy: Option<PlacementStrategy>,
}

/// The placement groups by their ids.
pub(in crate::simulate::trace) type Groups = HashMap<String, RayGroup>;

/// The ends of actors, by their ids, in seconds of the same clock as runs. Of others the last call
/// is taken for the end.
pub(in crate::simulate::trace) type ActorEnds = HashMap<String, f64>;

/// Makes descriptions of all that has run, beginning at 0.
pub(in crate::simulate::trace) fn drafts(
    runs: Vec<RayRun>,
    groups: &Groups,
    actor_ends: &ActorEnds,
) -> Result<(Vec<JobDraft>, Vec<Loss>), TraceError> {
    let (runs, unfinished) = last_attempts(runs);
    let mut calls = calls(&runs);
    let mut drafts = Vec::new();
    // Since when each group was needed, and until when.
    let mut used: BTreeMap<String, (f64, f64)> = BTreeMap::new();
    // Tasks in a placement group are part of the group's job, and calls of an actor are part of the actor's.
    let is_task = |run: &RayRun| run.kind == RayKind::Task && run.group.is_none();
    let tasks = runs.iter().filter(|(run, ..)| is_task(run));
    let ends = tasks.map(|(run, _, end)| (run.task.clone(), *end));
    let ends: HashMap<String, f64> = ends.collect();
    for (run, start, mut end) in runs {
        if run.kind == RayKind::Call {
            continue;
        }
        if run.kind == RayKind::Creation {
            let called = run.actor.as_ref().and_then(|actor| calls.remove(actor));
            end = called.map_or(end, |(last, _)| end.max(last));
            let ended = run.actor.as_ref().and_then(|actor| actor_ends.get(actor));
            end = ended.map_or(end, |ended| end.max(*ended));
        }
        if let Some(group) = &run.group {
            let life = used.entry(group.clone()).or_insert((run.ready, end));
            *life = (life.0.min(run.ready), life.1.max(end));
        } else {
            // A task that had ended came first, however long it took. One that goes on meanwhile says only
            // when this one was submitted.
            let parent = run.parent.clone();
            let has_ended = |parent: &String| ends.get(parent).is_some_and(|end| *end <= run.ready);
            let after = parent.into_iter().filter(has_ended).collect();
            drafts.push(JobDraft {
                after,
                ..draft(run, end - start)
            });
        }
    }
    let calls_only = calls.values().map(|(_, count)| count).sum();
    let unused = groups.keys().filter(|id| !used.contains_key(*id)).count();
    let of_used = used.keys().filter_map(|id| groups.get(id));
    let unlisted = of_used.filter(|group| group.strategy.is_none()).count();
    let losses = [
        Loss::of(Loss::Unfinished, unfinished),
        Loss::of(Loss::CallsOnly, calls_only),
        Loss::of(Loss::UnusedGroups, unused),
        Loss::of(Loss::Strategy, unlisted),
    ];
    for (id, life) in used {
        drafts.push(group(id, life, groups)?);
    }
    count_from_begin(&mut drafts);
    Ok((drafts, losses.into_iter().flatten().collect()))
}

/// The end of the last call of each actor, and how many calls it had, by its id.
fn calls(runs: &[(RayRun, f64, f64)]) -> HashMap<String, (f64, usize)> {
    let mut calls: HashMap<String, (f64, usize)> = HashMap::new();
    for (run, _, end) in runs.iter().filter(|(run, ..)| run.kind == RayKind::Call) {
        let actor = run.actor.clone().unwrap_or_default();
        let (last, count) = calls.entry(actor).or_insert((*end, 0));
        *last = last.max(*end);
        *count += 1;
    }
    calls
}

/// Counts the times of jobs from the first one on.
fn count_from_begin(drafts: &mut [JobDraft]) {
    let begin = drafts.iter().map(|draft| draft.job.at);
    let begin = begin.fold(f64::INFINITY, f64::min);
    for JobDraft { job, .. } in drafts {
        job.at = to_microseconds(job.at - begin);
        // The clocks of two nodes can differ.
        job.seconds = to_microseconds(job.seconds).max(0.0);
    }
}

/// The last attempt of each task that ended, with the moment at which the first was ready, and how
/// many tasks had not ended.
fn last_attempts(runs: Vec<RayRun>) -> (Vec<(RayRun, f64, f64)>, usize) {
    // Ordered by id, and no hash map: equal recordings have to give equal traces.
    let mut tasks: BTreeMap<String, (RayRun, f64)> = BTreeMap::new();
    for run in runs {
        let Some((known, first)) = tasks.get_mut(&run.task) else {
            let first = run.ready;
            tasks.insert(run.task.clone(), (run, first));
            continue;
        };
        // A retry is Ray's own doing, which the simulation does again where a node is lost; the
        // program asked for the task when its first attempt was ready.
        *first = first.min(run.ready);
        if is_later(&run, known) {
            *known = run;
        }
    }
    let all = tasks.len();
    let ended = tasks.into_values().filter_map(|(run, ready)| {
        let (start, end) = run.ran?;
        Some((RayRun { ready, ..run }, start, end))
    });
    let ended: Vec<(RayRun, f64, f64)> = ended.collect();
    let unfinished = all - ended.len();
    (ended, unfinished)
}

/// Checks whether a run is a later attempt of a task than another one. Lists need not have the attempts in
/// order.
fn is_later(run: &RayRun, known: &RayRun) -> bool {
    let begin = |run: &RayRun| run.ran.map_or(f64::NEG_INFINITY, |(start, _)| start);
    let begins = begin(run).total_cmp(&begin(known));
    let order = match run.kind {
        // An attempt that failed ran for as long as it took to fail, which says nothing of how long the
        // job takes. So a task whose retry has not ended has not ended either.
        RayKind::Task => run.ready.total_cmp(&known.ready).then(begins),
        // An actor that is made again lives on: its calls and its end say for how long.
        RayKind::Creation | RayKind::Call => begins,
    };
    order.is_gt()
}

/// Seconds to the microsecond.
fn to_microseconds(seconds: f64) -> f64 {
    // A difference of two times since 1970 is no finer than that.
    (seconds * 1e6).round() / 1e6
}

fn draft(run: RayRun, seconds: f64) -> JobDraft {
    let demand = match run.kind {
        RayKind::Creation => JobDemand::Actor(run.shape),
        RayKind::Task | RayKind::Call => JobDemand::Task(run.shape),
    };
    let name = as_name(run.name.strip_suffix(CREATION).unwrap_or(&run.name));
    let mut draft = JobDraft::new(Place::Task(run.task.clone()), run.task, demand);
    if !name.is_empty() {
        draft.job.name = name;
    }
    (draft.job.at, draft.job.seconds) = (run.ready, seconds);
    draft
}

fn group(id: String, (ready, end): (f64, f64), groups: &Groups) -> Result<JobDraft, TraceError> {
    let Some(group) = groups.get(&id) else {
        return Err(Place::Whole.fault(format!(
            "there is no placement group {id:?}; tasks ran in it; append the output of ray list placement-groups \
             --detail --format json --limit 10000 to the file"
        )));
    };
    let demand = JobDemand::PlacementGroup {
        strategy: group.strategy.unwrap_or(PlacementStrategy::Pack),
        bundles: group.bundles.clone(),
    };
    let mut draft = JobDraft::new(Place::Task(id.clone()), id, demand);
    (draft.job.at, draft.job.seconds) = (ready, end - ready);
    Ok(draft)
}
