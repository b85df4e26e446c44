//! A world that shares its Kubernetes nodes with other clusters: what it tells them, and what it hears.

use std::rc::Rc;

use crate::quantity::Quantity;
use crate::ray::resource::Amounts;
use crate::simulate::moment::Moment;
use crate::simulate::world::disturbance::WatchedKind;
use crate::simulate::world::machines::{Machines, Notice};
use crate::simulate::world::queue::WorldEvent;
use crate::simulate::world::state::World;

impl World {
    /// The numbers of the cluster's pods that exist, in the order of their names.
    pub fn own(&self) -> impl Iterator<Item = usize> + use<'_> {
        let own = self.machines.present.get(self.number).into_iter();
        own.flat_map(|own| own.values().copied())
    }

    /// Gives what clusters share to this world, or takes it back.
    pub fn exchange(&mut self, machines: &mut Machines) {
        std::mem::swap(&mut self.machines, machines);
    }

    /// Something happens to a cluster: to this one at once, to another one when it is told.
    pub fn tell(&mut self, cluster: usize, notice: Notice) {
        if cluster == self.number {
            self.follow(notice);
        } else {
            self.machines.notices.push((cluster, notice));
        }
    }

    /// Something happens to all clusters but one.
    pub fn tell_others(&mut self, but: usize, notice: Notice) {
        for cluster in (0..self.machines.present.len()).filter(|other| *other != but) {
            self.tell(cluster, notice);
        }
    }

    /// Takes in what another cluster has caused, at that moment.
    pub fn hear(&mut self, notice: Notice, now: Moment) {
        self.pass_to(now);
        self.follow(notice);
    }

    fn follow(&mut self, notice: Notice) {
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
            Notice::Disrupted(pod) => self.pod_disrupted(pod),
            Notice::Gone(pod) => self.pod_gone(pod),
        }
    }

    /// Watchers hear what pods of others take of the nodes. It leads to no look, because a controller
    /// looks at the cluster whose pod has changed.
    pub(in crate::simulate::world) fn loads_watched(&mut self) {
        self.are_loads_watched = false;
        if self.disturbance.hears(WatchedKind::Pods) {
            let loads = self.machines.loads_beside(self.number);
            if *self.view.loads != loads {
                self.view.loads = Rc::new(loads);
                self.view.version += 1;
            }
        }
    }

    /// Sets how many cores the pods of the cluster's namespace may request; without any there is no quota.
    pub fn set_quota(&mut self, cores: Option<i64>) {
        let namespace = self.namespace();
        match cores {
            Some(cores) => self.machines.quotas.insert(namespace, cores),
            None => self.machines.quotas.remove(&namespace),
        };
    }

    /// Whether there is a quota in the cluster's namespace.
    pub(in crate::simulate::world) fn has_quota(&self) -> bool {
        let quotas = &self.machines.quotas;
        !quotas.is_empty() && quotas.contains_key(&self.namespace())
    }

    /// Whether the quota of the namespace has no room for so much more CPU.
    pub(in crate::simulate::world) fn exceeds_quota(&self, more: Option<Quantity>) -> bool {
        if !self.has_quota() {
            return false;
        }
        let quota = self.machines.quota(&self.namespace());
        quota.is_some_and(|(cores, used)| {
            let more = Amounts {
                cpu: more,
                memory: None,
            };
            let cpu = used.plus(more).cpu.unwrap_or_default();
            cpu > Quantity::from_units(cores)
        })
    }
}
