//! Holds the rules against a world after every event.

use std::collections::VecDeque;

use serde_json::Value;

use super::scene::Scene;
use super::violation::Violation;
use crate::reconcile::Effect;
use crate::reconcile::effects::effect::{ClusterPatch, PodPatch};
use crate::simulate::moment::Moment;
use crate::simulate::scaler::Scaler;
use crate::simulate::world::World;
use crate::simulate::world::deeds::{Deed, DeletionCause};

/// The most writes to the API server within a minute. These clusters have at most a dozen pods, each
/// of which may be resized up and down once in some seconds, by two writes.
const MOST_WRITES: usize = 120;

/// How many deeds are kept for people.
const KEPT_DEEDS: usize = 30;

/// What has been seen of a world.
#[derive(Debug, Clone, Default)]
pub struct Checker {
    /// When the last write or drain was made.
    pub last_change: Option<(Moment, String)>,
    writes: VecDeque<Moment>,
    deeds: VecDeque<String>,
}

impl Checker {
    /// The last deeds, for people.
    pub fn deeds(self) -> Vec<String> {
        self.deeds.into()
    }

    /// Takes in what was done since it was last called.
    ///
    /// # Errors
    ///
    /// A rule was broken.
    pub fn check(
        &mut self,
        scene: &Scene,
        world: &mut World,
        scaler: &mut Scaler,
    ) -> Result<(), Violation> {
        while let Some((at, deed)) = world.deeds.take() {
            if self.deeds.len() == KEPT_DEEDS {
                self.deeds.pop_front();
            }
            self.deeds.push_back(format!("{:.3} {deed}", at.seconds()));
            self.count(at, &deed)?;
            judge(scene, world, &deed)?;
        }
        match scaler.broken.pop() {
            Some(broken) => Err(Violation::Plan(broken)),
            None => Ok(()),
        }
    }

    fn count(&mut self, at: Moment, deed: &Deed) -> Result<(), Violation> {
        let is_change = match deed {
            Deed::Called { effect, .. } => {
                !matches!(**effect, Effect::Report(_) | Effect::PutError(_))
            }
            Deed::Claimed(_) | Deed::Deleted { .. } => true,
            Deed::Fault(_) => false,
        };
        if is_change {
            self.last_change = Some((at, deed.to_string()));
        }
        if deed.is_api_write() {
            self.writes.push_back(at);
        }
        self.writes.retain(|write| at.since(*write) < 60.0);
        let writes = self.writes.len();
        if writes > MOST_WRITES {
            let most = MOST_WRITES;
            return Err(Violation::Storm { writes, most });
        }
        Ok(())
    }
}

fn judge(scene: &Scene, world: &World, deed: &Deed) -> Result<(), Violation> {
    match deed {
        Deed::Deleted {
            name,
            group,
            cause: DeletionCause::Listed,
            jobs,
            ..
        } if *jobs > 0 && !has_hosts(scene, group) => Err(Violation::DeletesBusy {
            pod: name.clone(),
            jobs: *jobs,
        }),
        Deed::Called {
            effect,
            is_done: true,
            ..
        } => match &**effect {
            Effect::PatchCluster(patch) => patched(scene, world, patch),
            Effect::ResizePod(patch) => resized(scene, world, patch),
            _ => Ok(()),
        },
        _ => Ok(()),
    }
}

/// Where a replica has several hosts, KubeRay deletes all of them with the first whose containers have
/// ended. (docs/operations.md.)
fn has_hosts(scene: &Scene, group: &str) -> bool {
    (scene.groups.iter()).any(|known| known.name == group && known.hosts > 1)
}

fn patched(scene: &Scene, world: &World, patch: &ClusterPatch) -> Result<(), Violation> {
    for group in world.groups() {
        let is_known = |name: &str| world.groups().iter().any(|group| group.name == name);
        let is_foreign = |name: &&String| {
            let pod = world.pod(name);
            !pod.is_some_and(|pod| pod.group() == group.name || !is_known(pod.group()))
        };
        if let Some(pod) = group.to_delete.iter().find(is_foreign) {
            return Err(Violation::DeletesForeign {
                pod: pod.clone(),
                group: group.name.clone(),
            });
        }
    }
    let mut is_growing = false;
    for change in patch.changes.iter().filter(|change| change.launches > 0) {
        is_growing |= change.then > change.now;
        let max = max_replicas(world.stored_cluster(), &change.group);
        if change.then > change.now && change.then > max {
            return Err(Violation::AboveMax {
                group: change.group.clone(),
                replicas: change.then,
                max,
            });
        }
    }
    let workers = world.groups().iter().filter(|group| !group.is_head());
    let workers = workers.map(|group| group.replicas.saturating_mul(group.hosts));
    let workers = workers.fold(0, i64::saturating_add);
    let max = scene.reconciler.plan.max_workers;
    // A launch may be rounded up to a whole replica.
    let rounded = scene
        .groups
        .iter()
        .map(|group| group.hosts - 1)
        .sum::<i64>();
    if is_growing && u64::try_from(workers - rounded).is_ok_and(|workers| workers > max) {
        return Err(Violation::AboveWorkers { workers, max });
    }
    Ok(())
}

fn max_replicas(cluster: &Value, group: &str) -> i64 {
    let groups = cluster
        .pointer("/spec/workerGroupSpecs")
        .and_then(Value::as_array);
    let mut groups = groups.into_iter().flatten();
    let group = groups.find(|known| known["groupName"] == group);
    group.map_or(0, |group| group["maxReplicas"].as_i64().unwrap_or(i64::MAX))
}

fn resized(scene: &Scene, world: &World, patch: &PodPatch) -> Result<(), Violation> {
    let Some(pod) = world.pod(&patch.pod) else {
        return Ok(());
    };
    let known = scene.groups.iter().find(|group| group.name == pod.group());
    let Some(group) = known else {
        return Ok(());
    };
    let wanted = pod.wanted().cpu.unwrap_or_default();
    let milli = i64::try_from(wanted.ceil_milli()).unwrap_or(i64::MAX);
    let (pod, most) = (
        patch.pod.clone(),
        group.most_cores.unwrap_or(group.cores) * 1000,
    );
    if milli > most {
        return Err(Violation::AboveCap { pod, milli, most });
    }
    let least = (group.cores * 1000).max(world.used_milli(&pod));
    if milli < least {
        return Err(Violation::TooSmall { pod, milli, least });
    }
    Ok(())
}
