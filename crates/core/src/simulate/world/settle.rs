//! Consequences of a change: jobs that start, costs, and the curves of demand and use.

use std::collections::VecDeque;

use super::ledger::Capacity;
use super::ledger::curves::{CurveLevel, Point};
use super::queue::WorldEvent;
use super::state::World;
use crate::ray::group::HEAD_NAME;
use crate::simulate::ray::resources::{Bundle, float};
use crate::simulate::world::objects::SimulatedPod;

impl World {
    /// Something about Ray has changed: what fits is started, and drained nodes without work end.
    pub fn ray_changed(&mut self) {
        for job in self.ray.schedule(self.now) {
            let started = &mut self.ray.jobs.all[job];
            let begins = if started.is_new_process {
                self.settings.worker_start_s
            } else {
                0.0
            };
            started.started = Some(self.now.plus(begins));
            let (seconds, attempt) = (begins + started.seconds, started.attempt);
            self.after(seconds, WorldEvent::JobEnds { job, attempt });
            self.follow_memory(job);
        }
        for pod in self.ray.ending() {
            self.after(self.settings.ray_stop_s, WorldEvent::RayEnds(pod));
        }
        // The GCS pulls once a second in any case; only pulls that bring something new are events.
        if self.ray.has_changed && !self.is_pulled {
            self.is_pulled = true;
            let next = self.now.next_multiple(self.settings.gcs_pull_s);
            self.at(next, WorldEvent::Pull);
        }
        self.ledger.is_due = true;
    }

    /// Counts from now on what worker pods and nodes take now.
    pub(super) fn count_cost(&mut self) {
        let mut rate = Capacity::default();
        let pods = self.own_pods().map(|pod| &self.machines.pods[pod]);
        for (cpus, memory, gpus) in pods.filter_map(SimulatedPod::paid) {
            rate.cpus += cpus;
            rate.memory += memory;
            rate.gpus += gpus;
        }
        let nodes = self.machines.nodes.iter();
        rate.nodes = nodes.filter(|node| node.removed.is_none()).count() as f64;
        self.ledger.set(rate, self.now);
    }

    /// Nothing more happens at this moment: what it led to is drawn, and holds until the next change.
    pub(super) fn settle(&mut self) {
        if !std::mem::take(&mut self.ledger.is_due) {
            return;
        }
        // Amounts are of CPU, memory and GPUs, in this order. Nobody may have named one of them.
        let numbers = ["CPU", "memory", "GPU"].map(|name| self.ray.names.find(name));
        let read = |bundle: &Bundle| {
            numbers.map(|number| number.map_or(0.0, |number| float(bundle.get(number))))
        };
        let rate = self.ledger.rate;
        let mut levels = [rate.cpus, rate.memory, rate.gpus].map(|paid| CurveLevel {
            paid,
            ..CurveLevel::default()
        });
        let (mut on_head, mut memory_held) = ([0.0; 3], 0_i64);
        for (number, node) in self.ray.living() {
            let (used, total) = (read(&node.used), read(&node.total));
            for (at, level) in levels.iter_mut().enumerate() {
                level.used += used[at];
                level.total += total[at];
                on_head[at] += if node.group == HEAD_NAME {
                    used[at]
                } else {
                    0.0
                };
            }
            memory_held = memory_held.saturating_add(self.ray.memory_in_use(number, self.now));
        }
        for (bundle, count) in self.ray.waiting() {
            for (level, amount) in levels.iter_mut().zip(read(bundle)) {
                level.waiting += amount * count as f64;
            }
        }
        let queued: usize = self.ray.queues.values().map(VecDeque::len).sum();
        let waiting_jobs = queued + self.ray.gangs.len();
        // The head is not paid for, so what jobs use of it does not count either.
        let less = |at: usize| (levels[at].paid - (levels[at].used - on_head[at])).max(0.0);
        let unused = Capacity {
            cpus: less(0),
            memory: less(1),
            gpus: less(2),
            nodes: 0.0,
        };
        self.ledger.set_unused(unused, self.now);
        let [cpus, memory, gpus] = levels;
        self.ledger.curves.add(Point {
            at: self.now.seconds(),
            waiting: cpus.waiting,
            used: cpus.used,
            total: cpus.total,
            cores: rate.cpus,
            nodes: rate.nodes,
            waiting_jobs: waiting_jobs as f64,
            memory,
            memory_held: memory_held as f64,
            gpus,
        });
    }
}
