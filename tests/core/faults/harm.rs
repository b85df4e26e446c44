//! Work that a scaler harms, and work that it should have saved.

use std::collections::{BTreeMap, VecDeque};

use rayfit_core::plan::{PlanSettings, RemovalCause};
use rayfit_core::reconcile::Effect;
use rayfit_core::reconcile::effects::effect::DrainKind;
use rayfit_core::simulate::moment::Moment;
use rayfit_core::simulate::world::World;
use rayfit_core::simulate::world::objects::{DeletionCause, SimulatedPod};
use serde_json::Value;

use super::inspect::{self, jobs_on, newest_pod};
use super::log::LogEntry;
use super::scene::Scene;
use super::violation::WorldViolation;

/// For how many seconds after a lie of the GCS wrong effects may follow from it: the next look, and what takes
/// its time until it is carried out.
const LIED_S: f64 = 60.0;

/// For how many seconds after a fault a pod may not be able to grow: that long a back-off lasts, or a
/// pod whose resize failed is left alone.
const RECOVERED_S: f64 = 150.0;

/// From the report that a pod is nearly full until the pod has grown, in seconds: a round that is under way,
/// the next look, two calls and the kubelet.
const GROWN_S: f64 = 8.0;

/// For how many seconds a task may wait of which the scaler does not know yet: the GCS hears of it once a
/// second, and the next look comes some seconds later.
const SEEN_S: f64 = 10.0;

/// The share of its memory in percent from which on a pod has to grow, if it soon needs so much.
const NEARLY_FULL: i128 = 85;

/// Within how many seconds it may need so much.
const SOON_S: i64 = 10;

/// The most resizes of one pod within a minute. A pod gives up what was spare for ten seconds at the least,
/// and may grow in a few steps before.
const MOST_RESIZES: usize = 12;

/// How far apart drains are at the most that were asked for at once, in seconds: a call may take so long.
const TOGETHER_S: f64 = 4.0;

/// For how many seconds the scaler may not know that Ray has begun to work in a pod, beyond the time of a
/// call: the GCS hears of it once a second, and KubeRay deletes what is listed a moment later.
const UNKNOWN_S: f64 = 1.5;

/// What was seen of work and of the pods that have it.
#[derive(Debug, Clone, Default)]
pub(super) struct HarmWatch {
    /// What is known of the drains that the scaler asked for, by pod.
    drained: BTreeMap<String, Drained>,
    /// Since when each pod could grow that is nearly full.
    pressed: BTreeMap<String, Moment>,
    /// When each pod was resized within the last minute.
    resizes: BTreeMap<String, VecDeque<Moment>>,
    /// Since when each pod has work.
    busy: BTreeMap<String, Moment>,
    /// When the GCS lied last.
    pub(super) lied: Option<Moment>,
    /// When something was wrong last.
    disturbed: Option<Moment>,
}

/// What the scaler asked for a pod.
#[derive(Debug, Clone, Copy)]
struct Drained {
    first: Moment,
    last: Moment,
    /// Whether it was only asked for because the pod is unneeded.
    is_unneeded: bool,
}

impl HarmWatch {
    /// Takes in how things are now.
    pub(super) fn look(&mut self, scene: &Scene, world: &World, is_disturbed: bool) {
        if is_disturbed {
            self.disturbed = Some(world.now);
        }
        let busy = world.workers().filter(|pod| jobs_on(world, pod.name()) > 0);
        let busy = busy.map(|pod| {
            let since = self.busy.get(pod.name()).copied();
            (pod.name().to_owned(), since.unwrap_or(world.now))
        });
        self.busy = busy.collect();
        let settings = &scene.settings;
        let follows = |in_place: &super::scene::SceneInPlace| in_place.follow_memory;
        let follows = settings.in_place.as_ref().is_none_or(follows);
        let has_recovered = |at| world.now.since(at) >= RECOVERED_S;
        if !settings.strategy.is_rayfit() || !follows || !self.disturbed.is_none_or(has_recovered) {
            self.pressed.clear();
            return;
        }
        let pressed = world.workers().filter(|pod| is_pressed(scene, world, pod));
        let pressed = pressed.map(|pod| {
            let since = self.pressed.get(pod.name()).copied();
            (pod.name().to_owned(), since.unwrap_or(world.now))
        });
        self.pressed = pressed.collect();
    }

    /// Judges what was done.
    ///
    /// # Errors
    ///
    /// Work was harmed, or not saved, or a pod was resized too often.
    pub(super) fn judge(
        &mut self,
        (at, entry): (Moment, &LogEntry),
        scene: &Scene,
        world: &World,
    ) -> Result<(), WorldViolation> {
        let is_excused = !scene.settings.strategy.is_rayfit() || self.has_lied(at);
        match entry {
            LogEntry::Called {
                effect, is_done, ..
            } => match &**effect {
                Effect::Drain(drain) => {
                    let is_unneeded = !is_above(drain.cause);
                    let entry = self.drained.entry(drain.pod.clone());
                    let drained = entry.or_insert(Drained {
                        first: at,
                        last: at,
                        is_unneeded,
                    });
                    drained.is_unneeded &= is_unneeded;
                    drained.last = at;
                    let first = drained.first;
                    let jobs = jobs_on(world, &drain.pod);
                    let is_due = at.since(first) >= PlanSettings::default().drain_timeout_s;
                    if drain.kind == DrainKind::Stop
                        && *is_done
                        && jobs > 0
                        && !is_due
                        && !is_excused
                    {
                        let pod = drain.pod.clone();
                        return Err(WorldViolation::StopsBusy { pod, jobs });
                    }
                    Ok(())
                }
                Effect::ResizePod(patch) if *is_done => self.count(&patch.pod, at),
                _ => Ok(()),
            },
            LogEntry::Deleted {
                name, cause, jobs, ..
            } if *jobs > 0 && !is_excused => {
                let is_its_doing = match cause {
                    DeletionCause::Listed => !self.began_meanwhile(world, name, at),
                    DeletionCause::Ended => false,
                    DeletionCause::Replica => self.ended_another_of(world, name),
                };
                let (pod, jobs) = (name.clone(), *jobs);
                if is_its_doing {
                    return Err(WorldViolation::DeletesBusy { pod, jobs });
                }
                Ok(())
            }
            LogEntry::TasksFailed {
                pod,
                tasks,
                waited_s,
            } => {
                let is_disturbed = self.disturbed.is_some_and(|last| at.since(last) < SEEN_S);
                if *waited_s >= SEEN_S && !is_disturbed && !is_excused {
                    let (pod, tasks) = (pod.clone(), *tasks);
                    return Err(WorldViolation::FailsTasks { pod, tasks });
                }
                Ok(())
            }
            LogEntry::MemoryKill { pod } => {
                let since = self.pressed.get(pod).map(|since| at.since(*since));
                match since.filter(|seconds| *seconds >= GROWN_S) {
                    Some(seconds) if !is_excused => {
                        let pod = pod.clone();
                        Err(WorldViolation::NotRelieved { pod, seconds })
                    }
                    _ => Ok(()),
                }
            }
            _ => Ok(()),
        }
    }

    /// Whether the GCS lies, or has lied so lately that wrong effects may follow from it.
    pub(super) fn has_lied(&self, now: Moment) -> bool {
        self.lied.is_some_and(|at| now.since(at) < LIED_S)
    }

    /// Whether Ray has begun to work in a pod that was never drained after it was decided to delete it.
    fn began_meanwhile(&self, world: &World, pod: &str, at: Moment) -> bool {
        let unknown_s = UNKNOWN_S + world.settings.call_s;
        let since = self.busy.get(pod).map_or(0.0, |since| at.since(*since));
        since < unknown_s && !self.drained.contains_key(pod)
    }

    /// Whether another pod of the same replica has ended because the scaler drained it as unneeded. What
    /// fails, or is deleted by people, ends otherwise. Above a maximum each host is drained until it has no
    /// work left, and where pods end by themselves then, KubeRay does not wait for the others. Nor does it
    /// where all were asked at once and this one has refused, because it has got work since the GCS last
    /// heard of it: Ray cannot ask several nodes together.
    fn ended_another_of(&self, world: &World, name: &str) -> bool {
        let replica_of = |pod: &SimulatedPod| pod.object.metadata.labels.replica.clone();
        let Some(replica) = newest_pod(world, name).and_then(replica_of) else {
            return false;
        };
        let others = world.workers().filter(|pod| pod.name() != name);
        let mut others = others.filter(|pod| replica_of(pod).as_ref() == Some(&replica));
        let own = self.drained.get(name);
        let is_together = |other: &Drained| {
            own.is_some_and(|own| {
                own.is_unneeded
                    && own.last.since(other.first) + other.first.since(own.last) < TOGETHER_S
            })
        };
        others.any(|pod| {
            let drained = self.drained.get(pod.name());
            pod.phase() == "Succeeded"
                && drained.is_some_and(|other| other.is_unneeded && !is_together(other))
        })
    }

    fn count(&mut self, pod: &str, at: Moment) -> Result<(), WorldViolation> {
        let resizes = self.resizes.entry(pod.to_owned()).or_default();
        resizes.push_back(at);
        resizes.retain(|resize| at.since(*resize) < 60.0);
        let count = resizes.len();
        if count > MOST_RESIZES {
            let (pod, most) = (pod.to_owned(), MOST_RESIZES);
            return Err(WorldViolation::ResizedOften { pod, count, most });
        }
        Ok(())
    }
}

/// Whether something goes although it has work, in time.
fn is_above(cause: RemovalCause) -> bool {
    matches!(
        cause,
        RemovalCause::GroupMax
            | RemovalCause::ClusterMax
            | RemovalCause::GroupGone
            | RemovalCause::NodeLeaves
    )
}

/// Whether a pod is nearly full by the last report, and nothing keeps it from growing.
fn is_pressed(scene: &Scene, world: &World, pod: &SimulatedPod) -> bool {
    let mut groups = scene.groups.iter();
    let Some(group) = groups.find(|group| group.name == pod.group()) else {
        return false;
    };
    let Some(told) = inspect::told_memory(world, pod.name()) else {
        return false;
    };
    let size = pod.size()[1];
    let soon = told
        .rise_per_s
        .saturating_mul(SOON_S)
        .saturating_add(told.bytes);
    let is_nearly_full = i128::from(soon) * 100 >= i128::from(size) * NEARLY_FULL;
    let more = group.least()[1].min(group.most()[1] - size);
    let has_failed = pod
        .object
        .metadata
        .annotations
        .resize_status
        .as_deref()
        .is_some_and(has_failed);
    is_nearly_full
        && more > 0
        && !has_failed
        && size == pod.memory()
        && pod.object.status.conditions.is_empty()
        && inspect::has_memory_beside(world, pod.name(), more)
        && inspect::is_growth_allowed(world)
}

/// Whether a note says that a resize has failed, or that the node had no room.
fn has_failed(note: &str) -> bool {
    let note: Value = serde_json::from_str(note).unwrap_or_default();
    ["last-failed-at", "suggested-max-memory"]
        .iter()
        .any(|key| !note[*key].is_null())
}
