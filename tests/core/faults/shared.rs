//! What several clusters of one simulated world share: Kubernetes nodes with the pods on them.

use rayfit_core::simulate::moment::Moment;
use rayfit_core::simulate::world::Machines;

use super::trial::FaultTrial;

/// What clusters share. Each of them has it only while something happens to it.
#[derive(Debug)]
pub(super) struct SharedParts {
    pub(super) machines: Machines,
}

impl SharedParts {
    /// Lets something happen to a cluster while it has what is shared, and tells the others what follows.
    pub(super) fn with<T>(
        &mut self,
        clusters: &mut [FaultTrial<'_>],
        number: usize,
        act: impl FnOnce(&mut FaultTrial<'_>) -> T,
    ) -> T {
        let result = self.lend(&mut clusters[number], act);
        let now = clusters[number].world.now;
        self.tell(clusters, now);
        result
    }

    fn tell(&mut self, clusters: &mut [FaultTrial<'_>], now: Moment) {
        loop {
            let notices = std::mem::take(&mut self.machines.notices);
            if notices.is_empty() {
                return;
            }
            for (number, notice) in notices {
                if let Some(cluster) = clusters.get_mut(number) {
                    self.lend(cluster, |FaultTrial { world, .. }| {
                        world.pass_to(now);
                        world.tell(number, notice);
                    });
                }
            }
        }
    }

    fn lend<T>(
        &mut self,
        cluster: &mut FaultTrial<'_>,
        act: impl FnOnce(&mut FaultTrial<'_>) -> T,
    ) -> T {
        std::mem::swap(&mut cluster.world.machines, &mut self.machines);
        let result = act(cluster);
        std::mem::swap(&mut cluster.world.machines, &mut self.machines);
        result
    }
}
