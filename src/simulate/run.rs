//! One simulation, from beginning to end.

use serde_json::Value;

use crate::reconcile::RoundSettings;
use crate::simulate::moment::Moment;
use crate::simulate::result::SimulationResult;
use crate::simulate::scaler::{Scaler, Spared};
use crate::simulate::settings::WorldSettings;
use crate::simulate::trace::Trace;
use crate::simulate::world::World;
use crate::simulate::world::group::SimulatedGroupError;
use crate::simulate::world::queue::WorldEvent;
use crate::snapshot::cluster_object::{ClusterSpec, DEFAULT_IDLE_TIMEOUT_S};
use crate::snapshot::group_spec::GroupSpec;

/// The longest rest between the start of the cluster and the first job, in seconds.
const PHASE_S: f64 = 5.0;

/// The most seconds for which the jobs wait for the cluster to come up.
const START_S: f64 = 3600.0;

/// Seconds for which jobs wait while nothing else happens to jobs, until the simulation ends
/// without them: a job that fits nowhere would wait for ever.
const STUCK_S: f64 = 7200.0;

/// Seconds for which the simulation goes on after the last job, beyond the cluster's idle timeout: pods that
/// stay longer are kept because they are small, or stay for good.
pub const TAIL_S: f64 = 60.0;

/// The error of a workload that cannot be simulated.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SimulationError {
    /// A group of the RayCluster cannot be read.
    #[error(transparent)]
    Group(#[from] SimulatedGroupError),
    /// The scaler makes too many rounds.
    #[error(
        "{0} rounds of the scaler are not enough, because work waits for months or years: cut the trace, \
         or leave out the jobs that run so long"
    )]
    TooLong(u64),
}

/// Runs the jobs of a trace on a RayCluster. `progress` hears the share of the jobs that have ended,
/// from 0 to 1, now and then.
///
/// # Errors
///
/// A group of the RayCluster cannot be read, or the scaler makes too many rounds.
pub fn run(
    cluster: &Value,
    trace: &Trace,
    settings: &WorldSettings,
    reconciler: RoundSettings,
    progress: &mut dyn FnMut(f64),
) -> Result<SimulationResult, SimulationError> {
    let kept_s = reconciler.plan.keep_small_s.unwrap_or_default();
    let mut run = Run {
        world: World::new(cluster, trace, settings.clone())?,
        scaler: Scaler::new(reconciler),
    };
    run.scaler.spared = Spared::Looks;
    run.scaler.look_after(0.0, &mut run.world);
    let limit = Moment::at(START_S);
    while run.world.now < limit && !run.world.is_up() && run.step().is_some() {}
    // Ray's autoscaler looks every five seconds: at which of them the first job comes is chance.
    let phase = run.world.random.f64() * PHASE_S;
    run.pass(phase);
    let began = run.world.now;
    run.world.begin(trace);
    run.until_done(trace.jobs.len(), progress)?;
    // Idle workers are kept for a while. A RayCluster may say any number, and the simulation goes on for so long
    // after its last job.
    let mut spec = run.world.cluster.spec.iter();
    let own = spec.clone().flat_map(|spec| &spec.groups);
    let own = own.filter_map(GroupSpec::idle_timeout_s);
    let common = spec.find_map(ClusterSpec::idle_timeout_s);
    let idle_s = own.fold(common.unwrap_or(DEFAULT_IDLE_TIMEOUT_S), f64::max);
    run.pass((idle_s.clamp(0.0, 86_400.0) + TAIL_S).max(settings.tail_s));
    // Small pods may be kept for longer.
    let end = run.world.now.plus(kept_s);
    while run.world.next_at().is_some_and(|next| next <= end)
        && i64::try_from(run.world.workers().count()).unwrap_or(i64::MAX)
            > run.world.least_workers()
    {
        run.step();
    }
    run.world.pass_to(run.world.now);
    Ok(SimulationResult::of(trace, &run.world, &run.scaler, began))
}

/// A world with its scaler.
struct Run {
    world: World,
    scaler: Scaler,
}

impl Run {
    /// Lets the next thing happen, and returns it.
    fn step(&mut self) -> Option<WorldEvent> {
        let event = self.world.advance()?;
        match event {
            WorldEvent::Look { token, .. } => self.scaler.look(token, &mut self.world),
            WorldEvent::Answered { look, chain, .. } => {
                self.scaler.answered(look, chain, 0.0, &mut self.world);
            }
            event => self.world.happen(event),
        }
        if self.world.wakes(event) {
            self.scaler.wake(&mut self.world);
        }
        Some(event)
    }

    /// Lets so many seconds pass.
    fn pass(&mut self, seconds: f64) {
        let end = self.world.now.plus(seconds);
        while self.world.next_at().is_some_and(|next| next <= end) {
            self.step();
        }
        self.world.pass_to(end);
    }

    /// Goes on until all jobs have ended, or nothing has happened to any for so long that the others never will.
    fn until_done(
        &mut self,
        jobs: usize,
        progress: &mut dyn FnMut(f64),
    ) -> Result<(), SimulationError> {
        let most = self.world.settings.most_rounds;
        let mut last = self.world.now;
        let mut reported = 0;
        while self.world.ray.jobs.left > 0 {
            if self.scaler.rounds > most {
                return Err(SimulationError::TooLong(most));
            }
            let before = self.world.ray.jobs.left;
            let Some(event) = self.step() else {
                return Ok(());
            };
            let left = self.world.ray.jobs.left;
            if matches!(event, WorldEvent::Submitted(_)) || left != before {
                last = self.world.now;
                let ended = jobs - left;
                if ended >= reported + jobs.div_ceil(100) {
                    reported = ended;
                    #[expect(clippy::cast_precision_loss, reason = "a share")]
                    progress(ended as f64 / jobs as f64);
                }
            }
            let is_stuck = self.world.now.since(last) > STUCK_S;
            if is_stuck && !self.world.ray.is_running() && self.world.submissions == 0 {
                return Ok(());
            }
        }
        Ok(())
    }
}
