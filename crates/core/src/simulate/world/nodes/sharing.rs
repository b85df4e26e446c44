//! A world that shares its Kubernetes nodes with other clusters: what it tells them, and what it hears.

use crate::simulate::world::machines::Notice;
use crate::simulate::world::objects::SimulatedPod;
use crate::simulate::world::queue::WorldEvent;
use crate::simulate::world::state::World;

impl World {
    /// The numbers of the cluster's pods that exist, in the order of their names.
    pub fn own_pods(&self) -> impl Iterator<Item = usize> + use<'_> {
        let own = self.machines.present.get(self.number).into_iter();
        own.flat_map(|own| own.values().copied())
    }

    /// The worker pods that exist.
    pub fn workers(&self) -> impl Iterator<Item = &SimulatedPod> {
        let pods = self.own_pods().map(|pod| &self.machines.pods[pod]);
        pods.filter(|pod| !pod.is_head)
    }

    /// The number of the pod that has this name now.
    pub fn pod_named(&self, name: &str) -> Option<usize> {
        let own = self.machines.present.get(self.number)?;
        own.get(name).copied()
    }

    /// Something happens to a cluster: to this one at once, to another one when it is told.
    pub fn tell(&mut self, cluster: usize, notice: Notice) {
        // The machines are lent to this world now, so that another one hears of it once it has them.
        if cluster != self.number {
            self.machines.notices.push((cluster, notice));
            return;
        }
        match notice {
            Notice::Nodes => {
                self.objects_changed();
                self.count_cost();
            }
            Notice::Loads => {
                if !self.are_loads_watched {
                    self.are_loads_watched = true;
                    self.after(self.settings.watch_lag_s, WorldEvent::LoadsWatched);
                }
            }
            Notice::Bound(pod) => {
                let pulled_s = self.machines.pods[pod].pulled_s;
                let starts = pulled_s + self.settings.pod_start_s;
                self.after(starts, WorldEvent::PodRuns(pod));
                self.objects_changed();
                self.count_cost();
            }
            Notice::Refused => self.objects_changed(),
            Notice::Room(pod) => self.after(0.0, WorldEvent::Kubelet(pod)),
            Notice::Evicted(pod) => self.delete_pod(pod),
            Notice::Disrupted(pod) => {
                if !self.machines.pods[pod].is_deleting() {
                    self.ledger.evicted += 1;
                    self.delete_pod(pod);
                }
            }
            Notice::Gone(pod) => self.pod_gone(pod),
        }
    }

    /// Something happens to all clusters but one.
    pub fn tell_others(&mut self, but: usize, notice: Notice) {
        for cluster in (0..self.machines.present.len()).filter(|other| *other != but) {
            self.tell(cluster, notice);
        }
    }
}
