//! The object store: what large results of jobs keep on the nodes where they were made.
//!
//! It has no limit here and spills nothing, and reading takes no time. What counts for a scaler is that a
//! node with objects that others need is not idle, and that with the node its objects are lost.

use super::cluster::Ray;
use super::jobs::{JobOutput, JobState};
use crate::simulate::moment::Moment;

impl Ray {
    /// Drops the output of a job that nobody needs any more.
    pub(super) fn drop_if_unneeded(&mut self, number: usize, now: Moment) {
        if let JobOutput::Kept(node) = self.jobs.all[number].output
            && !self.jobs.is_needed(number)
        {
            self.jobs.all[number].output = JobOutput::Large;
            let node = &mut self.nodes[node];
            node.objects -= 1;
            if node.is_idle() {
                node.idle_since = now;
            }
        }
    }

    /// Loses the object store of a node: the jobs that filled it run again, if they have retries
    /// left. Their own inputs are assumed to exist.
    pub fn lose_objects(&mut self, node: usize) {
        if std::mem::take(&mut self.nodes[node].objects) == 0 {
            return;
        }
        let on_node = JobOutput::Kept(node);
        let lost = (0..self.jobs.all.len()).filter(|job| self.jobs.all[*job].output == on_node);
        for number in lost.collect::<Vec<usize>>() {
            let job = &mut self.jobs.all[number];
            job.output = JobOutput::Large;
            let is_again = job.retries > 0;
            // Jobs that waited for the output are ready no more: they wait anew, or are lost.
            let unready = if is_again {
                job.retries -= 1;
                self.jobs.again(number)
            } else {
                let jobs = &self.jobs.all;
                let waits = |child: &usize| {
                    matches!(jobs[*child].state, JobState::Blocked | JobState::Ready)
                };
                let children = jobs[number].children.iter().copied();
                let waiting: Vec<usize> = children.filter(waits).collect();
                for child in &waiting {
                    self.jobs.lose(*child);
                }
                waiting
            };
            for queue in self.queues.values_mut().chain([&mut self.gangs]) {
                queue.retain(|waiting| !unready.contains(waiting));
            }
            if is_again {
                self.wait(number);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulate::ray::node::{RayNode, RayNodeStage};
    use crate::simulate::trace::{Job, JobDemand, JobShape, Trace};
    use crate::snapshot::NodeId;

    const NOW: Moment = Moment::START;

    /// A job of one second on one core.
    fn job(after: Vec<usize>, output: u64, retries: u32) -> Job {
        Job {
            id: String::new(),
            name: String::new(),
            at: 0.0,
            after,
            seconds: 1.0,
            demand: JobDemand::Task(JobShape::from([("CPU".to_owned(), 1.0)])),
            memory: Vec::new(),
            output,
            retries,
        }
    }

    /// A node of one core joins.
    fn join(ray: &mut Ray, pod: usize) {
        let total = ray.names.bundle([("CPU", 1.0)]);
        let pod = (pod, "pod", "cpu");
        ray.join(RayNode::joining(NodeId::from([0; 28]), pod, total, NOW));
    }

    /// A node of one core, on which the first job has ended, and two jobs that need it wait.
    fn with_an_object(retries: u32) -> Ray {
        let parent = job(Vec::new(), 1 << 20, retries);
        let child = job(vec![0], 0, 3);
        let trace = Trace {
            name: String::new(),
            jobs: vec![parent, child.clone(), child],
        };
        let mut ray = Ray::new(&trace, 1);
        join(&mut ray, 0);
        ray.submit(0, NOW);
        assert_eq!(ray.schedule(NOW), [0]);
        ray.end(0, 1, NOW);
        ray.submit(1, NOW);
        ray.submit(2, NOW);
        assert_eq!((ray.nodes[0].running, ray.nodes[0].objects), (0, 1));
        ray
    }

    #[test]
    fn an_object_is_kept_until_all_who_need_it_have_ended() {
        let mut ray = with_an_object(3);
        assert!(!ray.drain(0, true), "it is not idle");
        for child in [1, 2] {
            assert!(!ray.nodes[0].is_idle());
            assert_eq!(ray.schedule(NOW), [child]);
            ray.end(child, 1, NOW);
        }
        assert!(ray.nodes[0].is_idle());
        assert_eq!(ray.jobs.unended, 0);
    }

    #[test]
    fn what_is_lost_with_a_node_is_made_again() {
        let mut ray = with_an_object(1);
        ray.lose(0, NOW);
        let state = |ray: &Ray, job: usize| ray.jobs.all[job].state.clone();
        assert_eq!(state(&ray, 0), JobState::Ready);
        assert_eq!(state(&ray, 1), JobState::Blocked);
        assert_eq!(ray.jobs.unended, 3);
        ray.nodes[0].stage = RayNodeStage::Alive;
        ray.alive.push(0);
        assert_eq!(ray.schedule(NOW), [0]);
        ray.end(0, 2, NOW);
        assert_eq!(ray.schedule(NOW), [1]);
    }

    #[test]
    fn who_has_ended_is_not_lost_with_what_it_needed() {
        let mut ray = with_an_object(1);
        assert_eq!(ray.schedule(NOW), [1]);
        ray.end(1, 1, NOW);
        ray.lose(0, NOW);
        assert_eq!(ray.jobs.all[0].state, JobState::Ready, "it runs again");
        ray.jobs.lose(0);
        assert_eq!(ray.jobs.all[1].state, JobState::Ended);
        assert_eq!(ray.jobs.all[2].state, JobState::Lost);
        assert_eq!(ray.jobs.unended, 0);
    }

    #[test]
    fn what_may_not_be_made_again_is_lost_with_all_who_wait_for_it() {
        let mut ray = with_an_object(0);
        ray.lose(0, NOW);
        assert_eq!(ray.jobs.unended, 0);
        for child in [1, 2] {
            assert_eq!(ray.jobs.all[child].state, JobState::Lost);
        }
        assert!(
            ray.queues
                .values()
                .all(std::collections::VecDeque::is_empty)
        );
    }
}
