//! Effects of the memory that jobs use: reports, killed processes, and pods that cannot shrink yet.

use crate::simulate::ray::jobs::JobState;
use crate::simulate::world::World;
use crate::simulate::world::log::LogEntry;
use crate::simulate::world::queue::WorldEvent;

/// The interval at which agents report. (`REPORTER_UPDATE_INTERVAL_MS`: the dashboard's agents report
/// every five seconds.)
const REPORT_S: f64 = 5.0;

/// Seconds after which a kubelet tries again to take memory that is in use.
const SHRINK_AGAIN_S: f64 = 10.0;

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
        if !self.memory_reports.is_due {
            self.memory_reports.is_due = true;
            self.at(self.now.next_multiple(REPORT_S), WorldEvent::MemoryReport);
        }
    }

    /// A job uses another amount of memory from now on, if it is still the same attempt.
    pub(in crate::simulate::world) fn memory_step(&mut self, job: usize, attempt: u32, step: u32) {
        self.draw();
        let of = &self.ray.jobs.all[job];
        let JobState::Running(parts) = &of.state else {
            return;
        };
        if of.attempt != attempt {
            return;
        }
        let next = of.memory.get(step as usize + 1);
        if let (Some(started), Some(next)) = (of.started, next) {
            let at = started.plus(next.at);
            let step = step + 1;
            let nodes: Vec<usize> = parts.iter().map(|part| part.node).collect();
            self.at(at, WorldEvent::MemoryStep { job, attempt, step });
            return self.relieve(&nodes);
        }
        let nodes: Vec<usize> = parts.iter().map(|part| part.node).collect();
        self.relieve(&nodes);
    }

    /// Kills processes on nodes with too much memory in use, until there is not.
    fn relieve(&mut self, nodes: &[usize]) {
        let mut has_killed = false;
        for node in nodes {
            let pod = &self.machines.pods[self.ray.nodes[*node].pod];
            let limit = pod.memory();
            let name = pod.name().to_owned();
            while let Some(kill) = self.ray.relieve(*node, limit, self.now) {
                has_killed = true;
                self.ledger.out_of_memory += 1;
                self.log
                    .add(self.now, || LogEntry::MemoryKill { pod: name.clone() });
                if let Some(pause) = kill.again_s {
                    self.after(pause, WorldEvent::Retried(kill.job));
                }
            }
        }
        if has_killed {
            self.ray_changed();
        }
    }

    /// The pause is over after which a job is tried again whose process was killed.
    pub(in crate::simulate::world) fn retried(&mut self, job: usize) {
        self.ray.retry(job);
        self.ray_changed();
    }

    /// Agents report the memory in use.
    pub(in crate::simulate::world) fn report_memory(&mut self) {
        let pods = &self.machines.pods;
        let total = |pod: usize| pods[pod].memory();
        self.memory_reports.is_nearly_full = self.ray.report_memory(self.now, total);
        self.memory_reports.is_due = false;
        if self.ray.reports_memory(self.now) {
            self.report_later();
        }
    }

    /// Whether more memory is in use in a pod than it is to have.
    pub(in crate::simulate::world) fn is_in_use(&self, number: usize) -> bool {
        let node = self.ray.node_of(number);
        node.is_some_and(|node| {
            self.ray.memory_in_use(node, self.now) > self.machines.pods[number].size()[1]
        })
    }

    /// A kubelet does not take memory that is in use, and tries again. (`kuberuntime_manager.go`)
    pub(in crate::simulate::world) fn wait_for_memory(&mut self, number: usize, generation: i64) {
        let message =
            "cannot decrease memory limits: attempting to set pod memory limit below current usage";
        let pod = &mut self.machines.pods[number];
        pod.set_resize(
            "PodResizeInProgress",
            Some("Error"),
            Some(message.to_owned()),
        );
        let event = WorldEvent::Resized {
            pod: number,
            generation,
        };
        self.after(SHRINK_AGAIN_S, event);
        self.objects_changed();
    }
}
