//! Holds the rules against a world after every event.

use std::collections::VecDeque;

use rayfit_core::policy::settings::RAYFIT_ACCOUNTS;
use rayfit_core::reconcile::Effect;
use rayfit_core::reconcile::effects::effect::{ClusterPatch, PodPatch};
use rayfit_core::simulate::moment::Moment;
use rayfit_core::simulate::world::World;

use super::harm::HarmWatch;
use super::inspect::{self, group_spec, newest_pod};
use super::log::LogEntry;
use super::scene::{Scene, SceneGroup};
use super::trouble::Troubles;
use super::violation::WorldViolation;
use crate::faults::replicas::controllers::Controllers;

/// The most writes to the API server within a minute for each pod, and the least that may be: a pod may be
/// resized up and down once in some seconds, by two writes, or by three where answers are missing.
const MOST_WRITES: [usize; 2] = [20, 100];

/// The most drains and resizes of raylets within a minute for each pod, and the least that may be: a process
/// that starts remembers no back-off.
const MOST_GCS_CALLS: [usize; 2] = [15, 60];

/// What the sizes of pods count.
const UNITS: [&str; 2] = ["thousandths of a core", "bytes of memory"];

/// How many entries are kept for people.
const KEPT_ENTRIES: usize = 40;

/// What has been seen of a world.
#[derive(Debug, Clone, Default)]
pub(crate) struct Checker {
    /// When the last write or drain was made.
    pub(crate) last_change: Option<(Moment, LogEntry)>,
    writes: VecDeque<Moment>,
    gcs_calls: VecDeque<Moment>,
    /// The most workers that there were.
    workers: usize,
    log: VecDeque<(Moment, LogEntry)>,
    pub(super) harm: HarmWatch,
}

impl Checker {
    /// The last entries, for people.
    pub(crate) fn log(&self) -> Vec<String> {
        let log = self.log.iter();
        log.map(|(at, entry)| format!("{:.3} {entry}", at.seconds()))
            .collect()
    }

    /// Takes in what was done since it was last called; `is_disturbed` is whether anything is wrong.
    ///
    /// # Errors
    ///
    /// A rule was broken.
    pub(crate) fn check(
        &mut self,
        scene: &Scene,
        world: &World,
        troubles: &Troubles,
        controllers: &Controllers,
        is_disturbed: bool,
    ) -> Result<(), WorldViolation> {
        while let Some((at, entry)) = troubles.take_entry() {
            let is_report = matches!(&entry, LogEntry::Called { effect, .. } if matches!(**effect, Effect::Report(_)));
            if !is_report {
                if self.log.len() == KEPT_ENTRIES {
                    self.log.pop_front();
                }
                self.log.push_back((at, entry.clone()));
            }
            self.count(at, &entry, world.workers().count())?;
            self.harm.judge((at, &entry), scene, world)?;
            judge(scene, world, &entry, self.harm.has_lied(at))?;
        }
        self.harm.look(scene, world, is_disturbed);
        are_within_limits(scene, world)?;
        if let Some(broken) = troubles.borrow_mut().broken.pop() {
            return Err(WorldViolation::Plan(broken));
        }
        let replicas = controllers.trusting(world.now);
        if controllers.is_overtaken {
            return Err(WorldViolation::WritesLate);
        }
        if replicas > 1 {
            return Err(WorldViolation::SeveralScale { replicas });
        }
        Ok(())
    }

    fn count(&mut self, at: Moment, entry: &LogEntry, pods: usize) -> Result<(), WorldViolation> {
        let is_change = match entry {
            LogEntry::Called { effect, .. } => {
                !matches!(**effect, Effect::Report(_) | Effect::PutError(_))
            }
            LogEntry::Claimed(_) | LogEntry::Deleted { .. } => true,
            LogEntry::Denied { .. }
            | LogEntry::MemoryKill { .. }
            | LogEntry::TasksFailed { .. }
            | LogEntry::Fault(_) => false,
        };
        if is_change {
            self.last_change = Some((at, entry.clone()));
        }
        let is_gcs_call =
            matches!(entry, LogEntry::Called { .. }) && is_change && !entry.is_api_write();
        self.workers = self.workers.max(pods);
        let pods = self.workers;
        let most = |[each, least]: [usize; 2]| least.max(pods * each);
        for (calls, is_one, most) in [
            (&mut self.writes, entry.is_api_write(), most(MOST_WRITES)),
            (&mut self.gcs_calls, is_gcs_call, most(MOST_GCS_CALLS)),
        ] {
            if is_one {
                calls.push_back(at);
            }
            calls.retain(|call| at.since(*call) < 60.0);
            let calls = calls.len();
            if calls > most {
                return Err(WorldViolation::Storm { calls, most });
            }
        }
        Ok(())
    }
}

fn judge(
    scene: &Scene,
    world: &World,
    entry: &LogEntry,
    has_lied: bool,
) -> Result<(), WorldViolation> {
    match entry {
        LogEntry::Denied { user, why } if user == RAYFIT_ACCOUNTS[0] => {
            Err(WorldViolation::Denied(why.clone()))
        }
        LogEntry::Called { effect, .. } if is_foreign(world, effect) => {
            Err(WorldViolation::TouchesForeign(effect.to_string()))
        }
        LogEntry::Called {
            effect,
            is_done: true,
            ..
        } => match &**effect {
            Effect::PatchCluster(patch) => patched(scene, world, patch),
            Effect::ResizePod(patch) => resized(scene, world, patch, has_lied),
            _ => Ok(()),
        },
        _ => Ok(()),
    }
}

/// Whether a call is about a pod of somebody else.
fn is_foreign(world: &World, effect: &Effect) -> bool {
    let pod = match effect {
        Effect::NotePod(patch) | Effect::ResizePod(patch) => &patch.pod,
        Effect::ResizeRaylet(resize) => &resize.pod,
        Effect::Drain(drain) => &drain.pod,
        Effect::PatchCluster(_)
        | Effect::DeleteCluster { .. }
        | Effect::Report(_)
        | Effect::PutError(_) => return false,
    };
    newest_pod(world, pod).is_none()
}

fn patched(scene: &Scene, world: &World, patch: &ClusterPatch) -> Result<(), WorldViolation> {
    for group in &world.groups {
        let is_known = |name: &str| world.groups.iter().any(|group| group.name == name);
        let is_foreign = |name: &&String| {
            let pod = newest_pod(world, name);
            !pod.is_some_and(|pod| pod.group() == group.name || !is_known(pod.group()))
        };
        if let Some(pod) = group.to_delete.iter().find(is_foreign) {
            return Err(WorldViolation::DeletesForeign {
                pod: pod.clone(),
                group: group.name.clone(),
            });
        }
    }
    let mut is_growing = false;
    for change in patch.changes.iter().filter(|change| change.launches > 0) {
        is_growing |= change.then > change.now;
        let max = max_replicas(world, &change.group);
        if change.then > change.now && change.then > max {
            return Err(WorldViolation::AboveMax {
                group: change.group.clone(),
                replicas: change.then,
                max,
            });
        }
    }
    let workers = world.groups.iter().filter(|group| !group.is_head());
    let workers = workers.map(|group| group.replicas.saturating_mul(group.hosts));
    let workers = workers.fold(0, i64::saturating_add);
    let max = scene.settings.max_workers.unwrap_or(u64::MAX);
    // Ray does not know what a group has that it cannot read.
    if !scene.settings.strategy.is_rayfit() && has_faulty_group(world) {
        return Ok(());
    }
    // A launch may be rounded up to a whole replica.
    let rounded = scene
        .groups
        .iter()
        .map(|group| group.hosts - 1)
        .sum::<i64>();
    if is_growing && u64::try_from(workers - rounded).is_ok_and(|workers| workers > max) {
        return Err(WorldViolation::AboveWorkers { workers, max });
    }
    Ok(())
}

/// `maxReplicas` of a group; 0 if there is no such group.
pub(super) fn max_replicas(world: &World, group: &str) -> i64 {
    let group = group_spec(world, group);
    group.map_or(0, |group| group.max_replicas.unwrap_or(i64::MAX))
}

/// No pod is larger than its group may grow, however it came to be so.
fn are_within_limits(scene: &Scene, world: &World) -> Result<(), WorldViolation> {
    for pod in world.workers() {
        let group = (scene.groups.iter()).find(|group| group.name == pod.group());
        let Some(most) = group.map(SceneGroup::most) else {
            continue;
        };
        for ((size, most), unit) in pod.size().into_iter().zip(most).zip(UNITS) {
            if size > most {
                let pod = pod.name().to_owned();
                return Err(WorldViolation::AboveResizeLimit {
                    pod,
                    size,
                    unit,
                    most,
                });
            }
        }
    }
    Ok(())
}

/// `has_lied` is whether the GCS has said lately that less is in use.
fn resized(
    scene: &Scene,
    world: &World,
    patch: &PodPatch,
    has_lied: bool,
) -> Result<(), WorldViolation> {
    let Some(pod) = newest_pod(world, &patch.pod) else {
        return Ok(());
    };
    let known = scene.groups.iter().find(|group| group.name == pod.group());
    let Some(group) = known else {
        return Ok(());
    };
    let mut used = inspect::used(world, &patch.pod);
    if scene.settings.strategy.is_rayfit() {
        used[1] = used[1].max(inspect::reported_memory(world, &patch.pod));
    }
    if has_lied {
        used = [0; 2];
    }
    let asked = patch.body.to_string();
    let is_asked = ["\"cpu\"", "\"memory\""].map(|name| asked.contains(name));
    for (part, unit) in UNITS.into_iter().enumerate() {
        // What a patch leaves as it is was decided before.
        if !is_asked[part] {
            continue;
        }
        let size = pod.size()[part];
        let least = group.least()[part].max(used[part]);
        if size < least {
            return Err(WorldViolation::TooSmall {
                pod: patch.pod.clone(),
                size,
                unit,
                least,
            });
        }
    }
    Ok(())
}

/// Whether users have set a minimum above its maximum.
fn has_faulty_group(world: &World) -> bool {
    let spec = world.cluster.spec.as_ref();
    let mut groups = spec.into_iter().flat_map(|spec| &spec.groups);
    groups.any(|group| group.min_replicas > group.max_replicas)
}
