//! Which jobs that wait could run: only those count as not served.

use super::checker::max_replicas;
use super::trial::FaultTrial;
use crate::simulate::ray::Ray;
use crate::simulate::ray::jobs::{JobState, Need, SimulatedJob};
use crate::simulate::ray::resources::Bundle;
use crate::simulate::trace::PlacementStrategy;

impl FaultTrial<'_> {
    /// How many jobs wait that fit in pods as the groups make them.
    pub(super) fn waiting(&self) -> usize {
        self.ready().filter(|job| self.fits(job)).count()
    }

    /// How many jobs wait that fit only in pods that have grown, or nowhere any more.
    pub(super) fn unservable(&self) -> usize {
        self.ready().filter(|job| !self.fits(job)).count()
    }

    fn ready(&self) -> impl Iterator<Item = &SimulatedJob> {
        let jobs = self.world.ray.jobs.all.iter();
        jobs.filter(|job| job.state == JobState::Ready)
    }

    /// Whether new pods of the groups would hold a job, if nothing else ran.
    fn fits(&self, job: &SimulatedJob) -> bool {
        let (ray, one) = (&self.world.ray, PlacementStrategy::Pack);
        let (bundles, strategy) = match &job.need {
            Need::Shape(shape) => (std::slice::from_ref(&ray.jobs.shapes[*shape]), one),
            Need::Gang { bundles, strategy } => (&bundles[..], *strategy),
        };
        let workers = || self.world.groups().iter().filter(|group| !group.is_head());
        // Workers that a minimum keeps may be of no use.
        let max = self.scene.settings.max_workers.unwrap_or(u64::MAX);
        let mut room = i64::try_from(max).unwrap_or(i64::MAX);
        room = room.saturating_sub(self.world.least_workers());
        let mut places = 0;
        for group in workers() {
            let each = places_in(&bundles[0], &group.resources, ray);
            let each = if strategy == PlacementStrategy::StrictSpread {
                each.min(1)
            } else {
                each
            };
            let most = max_replicas(&self.world, &group.name).min(room / group.hosts) * group.hosts;
            if each > 0 && most > 0 {
                places += each * most;
                room -= most;
            }
        }
        usize::try_from(places).unwrap_or_default() >= bundles.len()
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
