//! What must be so after the last fault: jobs that could run are served, and then nothing is left to do.

use rayfit_core::simulate::moment::Moment;
use rayfit_core::simulate::ray::Ray;
use rayfit_core::simulate::ray::jobs::{JobNeed, JobState, SimulatedJob};
use rayfit_core::simulate::ray::resources::Bundle;
use rayfit_core::simulate::settings::LIVENESS_S;
use rayfit_core::simulate::trace::PlacementStrategy;
use rayfit_core::simulate::world::group::SimulatedGroup;
use rayfit_core::simulate::world::objects::SimulatedPod;

use super::checker::max_replicas;
use super::inspect;
use super::plan::{Fault, FaultKind};
use super::trial::FaultTrial;
use super::violation::WorldViolation;

/// How long after the last fault and the last submission jobs may wait that could run, in seconds:
/// the longest back-off and the longest node's start several times over, and the work itself. It is
/// less than the time after which a launch counts as failed.
const SERVED_S: f64 = 500.0;

/// How long ago a job began at the most that is tried again and again, in seconds: Ray's longest wait
/// before that, and the time until the memory is full.
const LATELY_S: f64 = 120.0;

/// The pods in which a job may find room.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Pods {
    /// Those that groups make.
    Base,
    /// Those that have grown as far as they may, where Kubernetes nodes have room for that whatever else is
    /// on them.
    Grown,
    /// Those that have grown as far as they may, wherever that is.
    GrownAnywhere,
}

impl FaultTrial<'_> {
    /// No job that could run waits any more, or not yet for too long. Returns whether to go on.
    pub(super) fn is_served_in_time(&self, calm: Moment) -> Result<bool, WorldViolation> {
        let seconds = self.world.now.since(calm);
        let is_lost = |fault: &Fault| matches!(fault.kind, FaultKind::HeadLost { .. });
        // With a head that is lost, Ray's strategy forgets which raylets were drained, and counts on their
        // pods until KubeRay's liveness probe ends these.
        let forgets = !self.scene.settings.strategy.is_rayfit() && self.faults.iter().any(is_lost);
        let longer_s = if forgets { LIVENESS_S } else { 0.0 };
        if seconds > SERVED_S + longer_s {
            if self.may_wait_for_ever() {
                return Ok(false);
            }
            let jobs = self.waiting();
            return Err(WorldViolation::NotServed { jobs, seconds });
        }
        Ok(true)
    }

    /// Whether what still waits is what users have set, or what Ray does.
    fn may_wait_for_ever(&self) -> bool {
        let settings = &self.scene.settings;
        // Ray counts a launch as asked for whose replicas people have taken back.
        let overwrites = |fault: &Fault| {
            matches!(
                fault.kind,
                FaultKind::ReplicasReset { .. } | FaultKind::ManifestApplied
            )
        };
        if !settings.strategy.is_rayfit() && self.faults.iter().any(overwrites) {
            return true;
        }
        // A job that asks for no memory and uses much may be killed again and again on a pod that has no room to
        // grow, or does not follow the memory in use, as with Ray's strategy. Kills on pods that could grow are
        // judged one by one.
        let uses = self.scene.jobs.iter().any(|job| !job.uses_gi.is_empty());
        uses && self.servable().all(|job| self.was_killed_lately(job))
    }

    /// Whether a job that waits has run lately, and was killed because its pod was full.
    fn was_killed_lately(&self, job: &SimulatedJob) -> bool {
        let is_lately = |started| self.world.now.since(started) < LATELY_S;
        job.memory_kills > 0 && job.started.is_some_and(is_lately)
    }

    /// After the last job everything has come to rest.
    pub(super) fn is_at_rest(&self, last: Moment, stable: Moment) -> Result<(), WorldViolation> {
        let standby = self.scene.settings.standby.clone().unwrap_or_default();
        let seconds = self.world.now.since(last);
        if let Some((at, entry)) = &self.checker.last_change
            && *at > stable
            && !self.is_tried_again()
        {
            let entry = entry.to_string();
            return Err(WorldViolation::NotQuiet { entry, seconds });
        }
        let wanted = usize::try_from(self.world.least_workers()).unwrap_or_default();
        // Ray leaves the pods of a group that was removed as they are.
        let is_rayfit = self.scene.settings.strategy.is_rayfit();
        let counts = |of: &str| is_rayfit || inspect::group_spec(&self.world, of).is_some();
        let workers = self.world.workers();
        let counts = |pod: &&SimulatedPod| {
            counts(pod.group()) && !self.hung.contains(pod.name()) && !self.is_left(pod.group())
        };
        let pods = workers.filter(counts).count();
        let fewest = if self.hung.is_empty() { wanted } else { 0 };
        let is_needed = self.unservable() > 0;
        // Every pod has a core that is kept ready, or is of the same replica as one that has.
        let hosts = self.scene.groups.iter().map(|group| group.hosts).max();
        let ready = if is_rayfit { standby.cpus_beside(0) } else { 0 };
        let ready = usize::try_from(ready * hosts.unwrap_or(1)).unwrap_or_default();
        let most = wanted + ready;
        if !(fewest..=most).contains(&pods) && !is_needed {
            return Err(WorldViolation::NotScaledDown {
                pods,
                wanted,
                most,
                seconds,
            });
        }
        Ok(())
    }

    /// Whether a job waits that only a grown pod could hold, where there may be no room to grow.
    /// The scheduler decides whether a new pod finds room, so one is tried again and again, ever
    /// less often.
    fn is_tried_again(&self) -> bool {
        let grows =
            self.scene.settings.strategy.is_rayfit() && inspect::is_growth_allowed(&self.world);
        let mut jobs = self.ready().filter(|job| !self.is_servable(job));
        grows && jobs.any(|job| self.fits(job, Pods::GrownAnywhere))
    }

    /// How many jobs wait that fit in pods as the groups make them, or in pods that have grown.
    pub(super) fn waiting(&self) -> usize {
        self.servable().count()
    }

    /// How many jobs wait that fit nowhere any more.
    pub(super) fn unservable(&self) -> usize {
        self.ready().filter(|job| !self.is_servable(job)).count()
    }

    fn servable(&self) -> impl Iterator<Item = &SimulatedJob> {
        self.ready().filter(|job| self.is_servable(job))
    }

    fn ready(&self) -> impl Iterator<Item = &SimulatedJob> {
        let jobs = self.world.ray.jobs.all.iter();
        jobs.filter(|job| job.state == JobState::Ready)
    }

    /// Whether pods of the groups could hold a job, if nothing else ran. Ray's own autoscaler may wait for
    /// ever for pods to grow.
    fn is_servable(&self, job: &SimulatedJob) -> bool {
        let grows =
            self.scene.settings.strategy.is_rayfit() && inspect::is_growth_allowed(&self.world);
        // Pods that hang take the room of their Kubernetes nodes for good.
        let grows = grows && self.hung.is_empty();
        self.fits(job, Pods::Base) || grows && self.fits(job, Pods::Grown)
    }

    /// The same, of such pods.
    fn fits(&self, job: &SimulatedJob, of: Pods) -> bool {
        let (ray, one) = (&self.world.ray, PlacementStrategy::Pack);
        let (bundles, strategy) = match &job.need {
            JobNeed::Shape(shape) => (std::slice::from_ref(&ray.jobs.shapes[*shape]), one),
            JobNeed::Gang { bundles, strategy } => (&bundles[..], *strategy),
        };
        let workers = || self.world.groups.iter().filter(|group| !group.is_head());
        // Workers that a minimum keeps may be of no use.
        let max = self.scene.settings.max_workers.unwrap_or(u64::MAX);
        let mut room = i64::try_from(max).unwrap_or(i64::MAX);
        room = room.saturating_sub(self.world.least_workers());
        room = room.saturating_sub(i64::try_from(self.hung.len()).unwrap_or(i64::MAX));
        let mut places = 0;
        for group in workers() {
            let (resources, pods) = match of {
                Pods::Base => (group.resources.clone(), i64::MAX),
                Pods::Grown => (self.grown(group), self.places_to_grow(group)),
                Pods::GrownAnywhere => (self.grown(group), i64::MAX),
            };
            let each = places_in(&bundles[0], &resources, ray);
            let each = if strategy == PlacementStrategy::StrictSpread {
                each.min(1)
            } else {
                each
            };
            let most = max_replicas(&self.world, &group.name);
            let most = self
                .replicas_beside(&group.name, most, group.hosts)
                .min(room / group.hosts)
                .min(pods / group.hosts)
                * group.hosts;
            if each > 0 && most > 0 {
                places += each * most;
                room -= most;
            }
        }
        usize::try_from(places).unwrap_or_default() >= bundles.len()
    }
}

impl FaultTrial<'_> {
    /// What a pod of a group has that has grown as far as it may.
    fn grown(&self, group: &SimulatedGroup) -> Vec<(String, f64)> {
        let mut groups = self.scene.groups.iter();
        let mut resources = group.resources.clone();
        let Some(known) = groups.find(|known| known.name == group.name) else {
            return resources;
        };
        #[expect(clippy::cast_precision_loss, reason = "Ray counts in floats too")]
        let [cores, bytes] = known.most().map(|most| most as f64);
        for (name, amount) in &mut resources {
            match name.as_str() {
                "CPU" => *amount = cores / 1000.0,
                "memory" => *amount = bytes,
                _ => {}
            }
        }
        resources
    }

    /// For how many pods of a group that have grown as far as they may there are Kubernetes nodes beside that
    /// of the head.
    fn places_to_grow(&self, group: &SimulatedGroup) -> i64 {
        let mut groups = self.scene.groups.iter();
        let Some(known) = groups.find(|known| known.name == group.name) else {
            return i64::MAX;
        };
        // A pod is bound where it fits as it is made, and may have to grow beside the head, the other hosts of
        // its replica, what minima keep, and what is kept ready.
        let settings = &self.scene.settings;
        let in_place = settings.in_place.as_ref();
        let shrinks = in_place.is_none_or(|one| one.shrink_after_seconds > 0);
        let minima = self.scene.groups.iter().map(|group| {
            let size = if shrinks { group.least() } else { group.most() };
            group.min * group.hosts * size[0]
        });
        let ready = settings.standby.as_ref();
        let ready = ready.map_or(0, |standby| standby.cpus_beside(0)) * 1000;
        let hosts = (group.hosts - 1) * known.least()[0];
        let beside = 1000 + hosts + minima.sum::<i64>() + ready;
        if beside + known.most()[0] > settings.node_cores * 1000 {
            return 0;
        }
        let on_each = settings.node_cores * 1000 / known.most()[0].max(1);
        let nodes = self
            .world
            .settings
            .pools
            .iter()
            .map(|pool| i64::from(pool.max));
        on_each * (nodes.sum::<i64>() - 1)
    }
}

/// How often a bundle fits in a new pod.
fn places_in(bundle: &Bundle, resources: &[(String, f64)], ray: &Ray) -> i64 {
    let amounts = ray.names.amounts(bundle).into_iter();
    let counts = amounts.map(|(name, amount)| {
        let there = resources.iter().find(|(known, _)| *known == name);
        #[expect(clippy::cast_possible_truncation, reason = "a small count")]
        let count = there.map_or(0, |(_, there)| (there / amount) as i64);
        count
    });
    counts.min().unwrap_or_default()
}
