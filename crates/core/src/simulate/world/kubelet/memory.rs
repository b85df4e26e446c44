//! Effects of the memory that jobs use: reports, killed processes, and pods that cannot shrink yet.

use crate::simulate::ray::jobs::JobState;
use crate::simulate::world::World;
use crate::simulate::world::queue::WorldEvent;

/// The interval at which agents report. (`REPORTER_UPDATE_INTERVAL_MS`: the dashboard's agents report
/// every five seconds.)
const REPORT_S: f64 = 5.0;

/// The interval at which memory monitors check. (`memory_monitor_refresh_ms`, `threshold_memory_monitor.cc`.) Monitors
/// that killed at once would go through a whole queue in no time, where tasks use all of their memory from the start.
const CHECK_S: f64 = 0.25;

impl World {
    /// A job has started, and uses memory from now on, if that is known.
    pub(in crate::simulate::world) fn follow_memory(&mut self, job: usize) {
        let of = &self.ray.jobs.all[job];
        if let (Some(started), Some(first)) = (of.started, of.memory.first()) {
            let (at, attempt) = (started.plus(first.at), of.attempt);
            let step = 0;
            self.at(at, WorldEvent::MemoryStep { job, attempt, step });
            self.report_later();
        }
    }

    fn report_later(&mut self) {
        if !self.ray.is_report_due {
            self.ray.is_report_due = true;
            self.at(self.now.next_multiple(REPORT_S), WorldEvent::MemoryReport);
        }
    }

    /// A job uses another amount of memory from now on, if it is still the same attempt.
    pub(in crate::simulate::world) fn memory_step(&mut self, job: usize, attempt: u32, step: u32) {
        // The curve of held memory changes, even where nothing else does.
        self.ledger.is_due = true;
        let of = &self.ray.jobs.all[job];
        let JobState::Running(parts) = &of.state else {
            return;
        };
        if of.attempt != attempt {
            return;
        }
        let nodes: Vec<usize> = parts.iter().map(|(node, _)| *node).collect();
        let next = of.memory.get(step as usize + 1);
        if let (Some(started), Some(next)) = (of.started, next) {
            let at = started.plus(next.at);
            let step = step + 1;
            self.at(at, WorldEvent::MemoryStep { job, attempt, step });
        }
        for node in nodes {
            self.relieve(node, false);
        }
    }

    /// Processes are killed on a node until there is no more in use than it has, and, when its memory monitor checks
    /// (`is_check`), than that allows.
    pub(in crate::simulate::world) fn relieve(&mut self, node: usize, is_check: bool) {
        let pod = self.ray.nodes[node].pod;
        let limit = self.machines.pods[pod].memory();
        let mut in_use = self.ray.memory_in_use(node, self.now);
        let mut has_killed = false;
        while let Some((job, pause)) = (self.ray).relieve(node, (in_use, limit), is_check, self.now)
        {
            in_use = self.ray.memory_in_use(node, self.now);
            has_killed = true;
            self.ledger.out_of_memory += 1;
            let name = self.machines.pods[pod].name();
            self.disturbance.memory_killed(self.now, name);
            if let Some(pause) = pause {
                self.after(pause, WorldEvent::Retried(job));
            }
        }
        if has_killed {
            self.ray_changed();
            // Work that starts in the room may use memory at once.
            in_use = self.ray.memory_in_use(node, self.now);
        }
        if !is_check && self.ray.nodes[node].is_above_monitor(in_use) {
            let next = self.now.next_multiple(CHECK_S);
            self.at(next, WorldEvent::MemoryCheck(node));
        }
    }

    /// Agents report the memory in use.
    pub(in crate::simulate::world) fn report_memory(&mut self) {
        let pods = &self.machines.pods;
        let has_more = self.ray.report_memory(self.now, |pod| pods[pod].memory());
        self.ray.is_report_due = false;
        if has_more {
            self.report_later();
        }
    }
}
