//! The memory that jobs really use, and what is killed where there is too much of it.
//!
//! Only jobs whose trace says so use any; what Ray itself takes is left out.

use super::cluster::Ray;
use super::jobs::{JobNeed, JobState, SimulatedJob};
use crate::reconcile::observed::memory_report::KnownMemory;
use crate::simulate::moment::Moment;
use crate::simulate::ray::node::RayNode;

/// Seconds for which agents of idle nodes are still heard.
const IDLE_S: f64 = 60.0;

/// Seconds from the kill of a process until its job is tried again: the first time, and at the most.
/// (`task_oom_retry_delay_base_ms`, `exponential_backoff.h`.)
const RETRY_S: (f64, f64) = (1.0, 60.0);

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

    /// The agents of nodes report the memory in use. `total` is what the pod with a number has. Returns
    /// whether any of them will have more to report.
    pub fn report_memory(&mut self, now: Moment, total: impl Fn(usize) -> i64) -> bool {
        self.is_nearly_full = false;
        for number in self.alive.clone() {
            if !reports(&self.nodes[number], now) {
                continue;
            }
            let bytes = self.memory_in_use(number, now);
            let node = &mut self.nodes[number];
            let before = node.memory.as_ref();
            let report = KnownMemory::of(bytes, now.seconds(), before, now.epoch_seconds());
            self.is_nearly_full |= report.is_worth_a_look(total(node.pod));
            node.memory = Some(report);
            self.version += 1;
        }
        self.living().any(|(_, node)| reports(node, now))
    }

    /// Kills the process of a job if a node that has so much memory (`total`) uses too much of it (`in_use`): the
    /// kernel does so where more is used than there is, and Ray's memory monitor before that, when it checks
    /// (`is_check`). Returns the job, and the seconds after which it waits for resources again, unless it is lost.
    pub fn relieve(
        &mut self,
        number: usize,
        (in_use, total): (i64, i64),
        is_check: bool,
        now: Moment,
    ) -> Option<(usize, Option<f64>)> {
        // The processes in a placement group are not known.
        let killable = self.nodes[number].with_memory.iter().copied();
        let is_process = |job: &usize| matches!(self.jobs.all[*job].need, JobNeed::Shape(_));
        let killable: Vec<usize> = killable.filter(is_process).collect();
        let (job, is_retried, pause) = if in_use > total {
            // The kernel kills the largest process, which counts as a crash of its worker. The number decides
            // between equal ones, so that equal simulations stay equal.
            let size = |job: &usize| (self.jobs.all[*job].bytes(now), *job);
            let largest = killable.into_iter().max_by_key(size)?;
            let retries = &mut self.jobs.all[largest].retries;
            let is_retried = *retries > 0;
            *retries = retries.saturating_sub(1);
            (largest, is_retried, RETRY_S.0)
        } else if is_check && self.nodes[number].is_above_monitor(in_use) {
            // The monitor kills the newest job that may be tried again, or else the newest.
            // (`worker_killing_policy_group_by_owner.cc`; all jobs of a trace have one owner.) What it tries
            // again does not count.
            let may_again = |job: &&usize| self.jobs.all[**job].retries > 0;
            let again: Vec<usize> = killable.iter().filter(may_again).copied().collect();
            // As in Ray, the last one that may be tried again is not tried again.
            let is_retried = again.len() > 1;
            let among = if again.is_empty() { killable } else { again };
            let newest = |job: &usize| (self.jobs.all[*job].started, *job);
            let job = among.into_iter().max_by_key(newest)?;
            // More doublings than these exceed the longest pause.
            let kills = self.jobs.all[job].memory_kills.min(16);
            let pause = RETRY_S.0 * f64::from(1_u32 << kills);
            (job, is_retried, pause.min(RETRY_S.1))
        } else {
            return None;
        };
        self.give_back(job, now);
        let killed = &mut self.jobs.all[job];
        killed.memory_kills = killed.memory_kills.saturating_add(1);
        killed.is_delayed = is_retried;
        if !is_retried {
            self.jobs.lose(job);
            for number in 0..self.jobs.all.len() {
                self.drop_if_unneeded(number, now);
            }
        }
        Some((job, is_retried.then_some(pause)))
    }

    /// The pause of a job is over whose process was killed.
    pub fn retry(&mut self, number: usize) {
        let job = &self.jobs.all[number];
        if job.is_delayed && job.state == JobState::Ready {
            self.wait(number);
        }
    }
}

/// Checks whether a node's agent has memory to report.
fn reports(node: &RayNode, now: Moment) -> bool {
    let had = node.memory.is_some();
    let is_active = !node.is_idle() || now.since(node.idle_since) < IDLE_S;
    !node.with_memory.is_empty() || (had && is_active)
}
