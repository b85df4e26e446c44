//! The end of a Ray cluster with its head, and what drivers submit again.

use super::cluster::Ray;
use super::jobs::JobState;
use super::node::{RayNode, RayNodeStage};
use crate::simulate::moment::Moment;

impl Ray {
    /// Ray has ended with its head, and so have drivers: no node is known any more, and the jobs that
    /// wait are lost. Those that run go on until their raylets end.
    pub fn end_head(&mut self) {
        self.touch();
        for number in std::mem::take(&mut self.alive) {
            self.nodes[number].stage = RayNodeStage::Dead;
        }
        self.dead.clear();
        self.reported.clear();
        self.pulled.clear();
        self.requested.clear();
        self.queues.clear();
        self.gangs.clear();
        self.lose_jobs(|state, _| *state == JobState::Ready);
    }

    /// A raylet that had lost its head has ended, and with it the jobs that ran in its pod.
    pub fn end_headless(&mut self, pod: usize) {
        self.lose_jobs(|state, nodes| match state {
            JobState::Running(shares) => shares.iter().any(|share| nodes[share.node].pod == pod),
            _ => false,
        });
    }

    fn lose_jobs(&mut self, is_lost: impl Fn(&JobState, &[RayNode]) -> bool) {
        for number in 0..self.jobs.all.len() {
            if is_lost(&self.jobs.all[number].state, &self.nodes) {
                self.jobs.lose(number);
            }
        }
    }

    /// Drivers have started again. They submit once more what was lost, what may still run where
    /// the new head does not know of it, and what had results on nodes that are gone.
    pub fn submit_again(&mut self, now: Moment) {
        for number in 0..self.jobs.all.len() {
            let is_ready = match &self.jobs.all[number].state {
                JobState::Lost => self.jobs.restore(number, now),
                JobState::Running(shares) => {
                    let is_dead = shares.iter().any(|share| self.is_dead(share.node));
                    if is_dead {
                        self.give_back(number, now);
                    }
                    is_dead
                }
                JobState::Blocked | JobState::Ready | JobState::Ended => false,
            };
            if is_ready {
                self.wait(number);
            }
        }
        for node in 0..self.nodes.len() {
            if self.is_dead(node) {
                self.lose_objects(node);
            }
        }
    }

    fn is_dead(&self, node: usize) -> bool {
        self.nodes[node].stage == RayNodeStage::Dead
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulate::ray::objects::tests::{NOW, job, join};
    use crate::simulate::trace::{Job, Trace};

    /// A job whose result others may need.
    fn needed(after: Vec<usize>) -> Job {
        job(after, 1 << 20, 1)
    }

    /// One job has ended and is needed by the second, which runs; the third waits for a node.
    fn with_a_lost_head() -> Ray {
        let trace = Trace {
            name: String::new(),
            jobs: vec![needed(Vec::new()), needed(vec![0]), needed(vec![0])],
        };
        let mut ray = Ray::new(&trace, 1);
        join(&mut ray, 0);
        for number in 0..3 {
            ray.submit(number, NOW);
        }
        assert_eq!(ray.schedule(NOW), [0]);
        ray.end(0, 1, NOW);
        assert_eq!(ray.schedule(NOW), [1]);
        ray.end_head();
        ray
    }

    #[test]
    fn drivers_submit_again_what_was_lost_with_the_head() {
        let mut ray = with_a_lost_head();
        assert_eq!(ray.jobs.all[2].state, JobState::Lost);
        assert_eq!(ray.jobs.left, 1, "one still runs where nobody hears of it");
        ray.submit_again(NOW);
        assert_eq!(ray.jobs.left, 3, "what the first one made is gone, too");
        join(&mut ray, 1);
        // The old process of the second job ends in vain.
        ray.end(1, 1, NOW);
        assert_eq!(ray.schedule(NOW), [0]);
        ray.end(0, 2, NOW);
        for (number, attempt) in [(1, 2), (2, 1)] {
            assert_eq!(ray.schedule(NOW), [number]);
            ray.end(number, attempt, NOW);
        }
        assert_eq!(ray.jobs.left, 0);
    }

    #[test]
    fn without_drivers_it_stays_lost() {
        let mut ray = with_a_lost_head();
        join(&mut ray, 1);
        assert!(ray.schedule(NOW).is_empty());
        ray.end_headless(0);
        assert_eq!(ray.jobs.left, 0);
    }
}
