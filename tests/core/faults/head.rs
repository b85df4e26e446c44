//! The loss of the head, and with it of Ray: until another one is there, and until drivers have submitted
//! again what was lost. A GCS that starts anew, too.

use rayfit_core::simulate::moment::Moment;
use rayfit_core::simulate::ray::Ray;
use rayfit_core::simulate::ray::jobs::JobState;
use rayfit_core::simulate::ray::node::{RayNode, RayNodeStage};
use rayfit_core::simulate::ray::resources::Bundle;
use rayfit_core::simulate::world::World;
use rayfit_core::simulate::world::queue::WorldEvent;

/// Seconds from when another head takes work until drivers have submitted again what was lost.
const DRIVER_S: f64 = 5.0;

/// The number of the event by which drivers submit again what was lost with the head.
pub(crate) const DRIVERS_RETURN: usize = usize::MAX - 1;

/// The time from the loss of the head to the end of workers' containers that look for it, in seconds.
/// (`gcs_rpc_server_reconnect_timeout_s`.)
pub(crate) const RECONNECT_S: f64 = 60.0;

/// The consequences of the loss of a head.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LostHead {
    /// The seconds for which workers look for the head.
    pub(crate) reconnect_s: f64,
    /// Whether a head was lost, and whether there is another one.
    stage: HeadLoss,
    /// Whether drivers start again once there is another head.
    returns: bool,
    /// Whether they have not done so since the last loss.
    pub(crate) is_awaited: bool,
}

impl Default for LostHead {
    fn default() -> Self {
        Self {
            reconnect_s: RECONNECT_S,
            stage: HeadLoss::Never,
            returns: false,
            is_awaited: false,
        }
    }
}

/// Whether a head was lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum HeadLoss {
    /// None ever was.
    Never,
    /// One was, and no other has joined since.
    Gone,
    /// One was, and another one has joined.
    Replaced,
}

impl LostHead {
    /// Drivers will submit again what is lost with the head, if `returns` says so.
    pub(crate) fn expect_drivers(&mut self, returns: bool) {
        self.returns |= returns;
        self.is_awaited |= returns;
    }

    /// Whether the GCS has ended with its head.
    pub(super) fn is_gone(self) -> bool {
        self.stage == HeadLoss::Gone
    }

    /// A pod is gone or has ended. With the head ends Ray: workers end when they have looked for it in vain.
    pub(super) fn pod_ended(&mut self, world: &mut World, pod: usize) {
        // With a pod that Ray does not know ends what has run there since before the head was lost.
        if self.stage != HeadLoss::Never {
            end_headless(&mut world.ray, pod);
        }
        let ended = &world.machines.pods[pod];
        if !(ended.is_head && ended.is_gone) {
            return;
        }
        self.stage = HeadLoss::Gone;
        self.is_awaited = self.returns;
        // A worker whose raylet has not joined yet waits for the new head, and joins that.
        let had_joined = |pod: &usize| {
            let phase = world.machines.pods[*pod].phase();
            phase == "Running" && world.ray.node_of(*pod).is_some()
        };
        let had_joined: Vec<usize> = world.own_pods().filter(had_joined).collect();
        end_head(&mut world.ray);
        for worker in had_joined {
            world.after(self.reconnect_s, WorldEvent::PodEnds(worker));
        }
        world.ray_changed();
    }

    /// Another head takes work.
    pub(super) fn head_joined(&mut self, world: &mut World) {
        if self.stage == HeadLoss::Gone {
            self.stage = HeadLoss::Replaced;
        }
        if self.is_awaited {
            world.after(DRIVER_S, WorldEvent::Outside(DRIVERS_RETURN));
        }
    }

    /// Drivers submit again what was lost with the head, unless that is gone again.
    pub(super) fn drivers_return(&mut self, world: &mut World) {
        let mut own = world.own_pods().map(|pod| &world.machines.pods[pod]);
        let is_there = own.any(|pod| pod.is_head && !pod.is_deleting());
        drop(own);
        if is_there && !self.is_gone() && self.is_awaited {
            self.is_awaited = false;
            submit_again(&mut world.ray, world.now);
            world.ray_changed();
        }
    }
}

/// Ray has ended with its head, and so have drivers: no node is known any more, and the jobs that
/// wait are lost. Those that run go on until their raylets end.
fn end_head(ray: &mut Ray) {
    ray.touch();
    for number in std::mem::take(&mut ray.alive) {
        ray.nodes[number].stage = RayNodeStage::Dead;
    }
    ray.dead.clear();
    ray.reported.clear();
    ray.pulled.clear();
    ray.queues.clear();
    ray.gangs.clear();
    lose_jobs(ray, |state, _| *state == JobState::Ready);
}

/// A raylet that had lost its head has ended, and with it the jobs that ran in its pod.
fn end_headless(ray: &mut Ray, pod: usize) {
    lose_jobs(ray, |state, nodes| match state {
        JobState::Running(shares) => shares.iter().any(|(node, _)| nodes[*node].pod == pod),
        _ => false,
    });
}

fn lose_jobs(ray: &mut Ray, is_lost: impl Fn(&JobState, &[RayNode]) -> bool) {
    for number in 0..ray.jobs.all.len() {
        if is_lost(&ray.jobs.all[number].state, &ray.nodes) {
            ray.jobs.lose(number);
        }
    }
}

/// Drivers have started again. They submit once more what was lost, what may still run where
/// the new head does not know of it, and what had results on nodes that are gone.
fn submit_again(ray: &mut Ray, now: Moment) {
    let is_dead = |ray: &Ray, node: usize| ray.nodes[node].stage == RayNodeStage::Dead;
    for number in 0..ray.jobs.all.len() {
        let is_ready = match &ray.jobs.all[number].state {
            JobState::Lost => {
                ray.jobs.unended += 1;
                let job = &mut ray.jobs.all[number];
                let is_ready = job.waits_for == 0;
                job.state = JobState::Blocked;
                if is_ready {
                    job.ready = job.ready.or(Some(now));
                    job.state = JobState::Ready;
                }
                is_ready
            }
            JobState::Running(shares) => {
                let is_lost = shares.iter().any(|(node, _)| is_dead(ray, *node));
                if is_lost {
                    ray.give_back(number, now);
                }
                is_lost
            }
            JobState::Blocked | JobState::Ready | JobState::Ended => false,
        };
        if is_ready {
            ray.wait(number);
        }
    }
    for node in 0..ray.nodes.len() {
        if is_dead(ray, node) {
            ray.lose_objects(node);
        }
    }
}

/// The GCS has been started anew: it knows the nodes by what they registered with, and hears
/// of loads and demand only when it next collects them. (`gcs_resource_manager.cc`, `OnNodeAdd`.)
pub(super) fn restart_gcs(world: &mut World) {
    let (groups, ray) = (&world.groups, &mut world.ray);
    ray.touch();
    ray.pulled.clear();
    let living = ray.living().map(|(number, node)| (number, node.clone()));
    ray.reported = living.collect();
    for node in ray.reported.values_mut() {
        if let Some(group) = groups.iter().find(|group| group.name == node.group) {
            let amounts = group.resources.iter();
            let amounts = amounts.map(|(name, amount)| (name.as_str(), *amount));
            node.total = ray.names.bundle(amounts);
        }
        node.used = Bundle::default();
        node.running = 0;
        node.objects = 0;
        node.gangs.clear();
        node.idle_since = world.now;
        if node.stage == RayNodeStage::Draining {
            node.stage = RayNodeStage::Alive;
        }
    }
    world.ray_changed();
}

mod tests {
    use rayfit_core::simulate::trace::{Job, JobDemand, JobShape, Trace};
    use rayfit_core::snapshot::NodeId;

    use super::*;

    const NOW: Moment = Moment::START;

    /// A job of one second on one core, whose result others may need.
    fn needed(after: Vec<usize>) -> Job {
        Job {
            id: String::new(),
            name: String::new(),
            at: 0.0,
            after,
            seconds: 1.0,
            demand: JobDemand::Task(JobShape::from([("CPU".to_owned(), 1.0)])),
            memory: Vec::new(),
            output: 1 << 20,
            retries: 1,
        }
    }

    /// A node of one core joins.
    fn join(ray: &mut Ray, pod: usize) {
        let total = ray.names.bundle([("CPU", 1.0)]);
        let pod = (pod, "pod", "cpu");
        ray.join(RayNode::joining(NodeId::from([0; 28]), pod, total, NOW));
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
        end_head(&mut ray);
        ray
    }

    #[test]
    fn drivers_submit_again_what_was_lost_with_the_head() {
        let mut ray = with_a_lost_head();
        assert_eq!(ray.jobs.all[2].state, JobState::Lost);
        assert_eq!(
            ray.jobs.unended, 1,
            "one still runs where nobody hears of it"
        );
        submit_again(&mut ray, NOW);
        assert_eq!(ray.jobs.unended, 3, "what the first one made is gone, too");
        join(&mut ray, 1);
        // The old process of the second job ends in vain.
        ray.end(1, 1, NOW);
        assert_eq!(ray.schedule(NOW), [0]);
        ray.end(0, 2, NOW);
        for (number, attempt) in [(1, 2), (2, 1)] {
            assert_eq!(ray.schedule(NOW), [number]);
            ray.end(number, attempt, NOW);
        }
        assert_eq!(ray.jobs.unended, 0);
    }

    #[test]
    fn without_drivers_it_stays_lost() {
        let mut ray = with_a_lost_head();
        join(&mut ray, 1);
        assert!(ray.schedule(NOW).is_empty());
        end_headless(&mut ray, 0);
        assert_eq!(ray.jobs.unended, 0);
    }
}
