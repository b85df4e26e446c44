//! The memory that jobs really use, and what is killed where there is too much of it.
//!
//! Only jobs whose trace says so use any; what Ray itself takes is left out.

use super::cluster::Ray;
use super::jobs::{JobState, Need, SimulatedJob};
use crate::reconcile::observed::memory_report::KnownMemory;
use crate::simulate::moment::Moment;
use crate::simulate::ray::node::RayNode;

/// Seconds for which agents of idle nodes are still heard.
const IDLE_S: f64 = 60.0;

/// Seconds from the kill of a process until its job is tried again: the first time, and at the most.
/// (`task_oom_retry_delay_base_ms`, `exponential_backoff.h`.)
const RETRY_S: (f64, f64) = (1.0, 60.0);

/// A job whose process was killed because there was too little memory.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MemoryKill {
    /// The number of the job.
    pub job: usize,
    /// Seconds after which it waits for resources again; `None` if it is lost.
    pub again_s: Option<f64>,
}

impl SimulatedJob {
    /// The bytes that it uses of each node on which it has a part.
    fn bytes(&self, now: Moment) -> u64 {
        let JobState::Running(parts) = &self.state else {
            return 0;
        };
        // In the future as long as its worker process starts, which is not counted.
        let Some(started) = self.started.filter(|started| *started <= now) else {
            return 0;
        };
        let ran_s = now.since(started);
        let mut steps = self.memory.iter().rev();
        let step = steps.find(|step| step.at <= ran_s);
        step.map_or(0, |step| step.bytes / parts.len().max(1) as u64)
    }
}

impl Ray {
    /// The bytes that jobs use on a node.
    pub fn memory_in_use(&self, number: usize, now: Moment) -> i64 {
        let jobs = self.nodes[number].with_memory.iter();
        let bytes = jobs.map(|job| self.jobs.all[*job].bytes(now));
        let sum = bytes.fold(0_u64, u64::saturating_add);
        i64::try_from(sum).unwrap_or(i64::MAX)
    }

    /// Whether the agent of any node has memory to report.
    pub fn reports_memory(&self, now: Moment) -> bool {
        self.living().any(|(_, node)| reports(node, now))
    }

    /// The agents of nodes report the memory in use. `total` is what the pod with a number has. Returns
    /// whether a node is nearly full.
    pub fn report_memory(&mut self, now: Moment, total: impl Fn(usize) -> i64) -> bool {
        let mut is_nearly_full = false;
        for number in self.alive.clone() {
            if !reports(&self.nodes[number], now) {
                continue;
            }
            let bytes = self.memory_in_use(number, now);
            let node = &mut self.nodes[number];
            let before = node.memory.as_ref();
            let known = KnownMemory::of(bytes, now.seconds(), before, now.epoch_seconds());
            is_nearly_full |= known.is_worth_a_look(total(node.pod));
            node.memory = Some(known);
            self.version += 1;
        }
        is_nearly_full
    }

    /// Kills the process of a job if a node that has so much memory uses too much: the kernel does so
    /// where more is used than there is, and Ray's memory monitor before that, if it is on.
    pub fn relieve(&mut self, number: usize, total: i64, now: Moment) -> Option<MemoryKill> {
        let in_use = self.memory_in_use(number, now);
        if in_use > total {
            return self.kill_largest(number, now);
        }
        let node = &self.nodes[number];
        let is_full = node.monitor_bytes.is_some_and(|most| in_use >= most);
        is_full.then(|| self.kill_newest(number, now)).flatten()
    }

    /// Kills the largest process, as the kernel does; that counts as a crash of its worker.
    fn kill_largest(&mut self, number: usize, now: Moment) -> Option<MemoryKill> {
        let killable = self.killable(number).into_iter();
        // The number decides between equal ones, so that equal simulations stay equal.
        let largest = killable.max_by_key(|job| (self.jobs.all[*job].bytes(now), *job))?;
        let is_retried = self.jobs.all[largest].retries > 0;
        if is_retried {
            self.jobs.all[largest].retries -= 1;
        }
        Some(self.kill(largest, is_retried, RETRY_S.0, now))
    }

    /// Kills the newest job that may be tried again, or else the newest, as Ray's monitor does.
    /// (`worker_killing_policy_group_by_owner.cc`; all jobs of a trace have one owner.) What it
    /// tries again does not count.
    fn kill_newest(&mut self, number: usize, now: Moment) -> Option<MemoryKill> {
        let killable = self.killable(number);
        let may_again = |job: &&usize| self.jobs.all[**job].retries > 0;
        let again: Vec<usize> = killable.iter().filter(may_again).copied().collect();
        let among = if again.is_empty() { &killable } else { &again };
        let newest = |job: &&usize| (self.jobs.all[**job].started, **job);
        let job = *among.iter().max_by_key(newest)?;
        // More doublings than these exceed the longest pause.
        let kills = self.jobs.all[job].memory_kills.min(16);
        let pause = RETRY_S.0 * f64::from(1_u32 << kills);
        // As in Ray, the last one that may be tried again is not tried again.
        Some(self.kill(job, again.len() > 1, pause.min(RETRY_S.1), now))
    }

    /// The jobs on a node whose processes use memory. What runs in a placement group is not known.
    fn killable(&self, number: usize) -> Vec<usize> {
        let jobs = self.nodes[number].with_memory.iter().copied();
        let is_process = |job: &usize| matches!(self.jobs.all[*job].need, Need::Shape(_));
        jobs.filter(is_process).collect()
    }

    fn kill(&mut self, number: usize, is_retried: bool, pause: f64, now: Moment) -> MemoryKill {
        self.give_back(number, now);
        let job = &mut self.jobs.all[number];
        job.memory_kills = job.memory_kills.saturating_add(1);
        job.is_delayed = is_retried;
        if !is_retried {
            self.jobs.lose(number);
            self.drop_unneeded(now);
        }
        MemoryKill {
            job: number,
            again_s: is_retried.then_some(pause),
        }
    }

    /// The pause of a job is over whose process was killed.
    pub fn retry(&mut self, number: usize) {
        let job = &self.jobs.all[number];
        if job.is_delayed && job.state == JobState::Ready {
            self.wait(number);
        }
    }
}

/// Whether a node's agent has memory to report.
fn reports(node: &RayNode, now: Moment) -> bool {
    let had = node.memory.is_some();
    let is_active = !node.is_idle() || now.since(node.idle_since) < IDLE_S;
    !node.with_memory.is_empty() || (had && is_active)
}
