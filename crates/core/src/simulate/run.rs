//! One simulation, from beginning to end.

use serde_json::Value;

use crate::reconcile::RoundSettings;
use crate::simulate::moment::Moment;
use crate::simulate::result::SimulationResult;
use crate::simulate::scaler::{Scaler, SparedSteps};
use crate::simulate::settings::WorldSettings;
use crate::simulate::trace::Trace;
use crate::simulate::world::World;
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
    #[error("{0}")]
    Group(String),
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
    let keep_small_s = reconciler.plan.keep_small_s.unwrap_or_default();
    let world = World::new(cluster, trace, settings.clone());
    let mut world = world.map_err(SimulationError::Group)?;
    let mut scaler = Scaler::new(reconciler);
    scaler.spared = SparedSteps::Looks;
    scaler.look_after(0.0, &mut world);
    // Jobs that came earlier would wait for the first start of the cluster, whatever scales it.
    let limit = Moment::at(START_S);
    while world.now < limit && !world.is_up() && step(&mut world, &mut scaler).is_some() {}
    // Ray's autoscaler looks every five seconds: at which of them the first job comes is chance.
    let phase = world.random.f64() * PHASE_S;
    pass(phase, &mut world, &mut scaler);
    let began = world.now;
    world.begin(trace);
    until_done(&mut world, &mut scaler, progress)?;
    // Idle workers are kept for a while. A RayCluster may say any number, and the simulation goes on for so long
    // after its last job.
    let mut spec = world.cluster.spec.iter();
    let of_groups = spec.clone().flat_map(|spec| &spec.groups);
    let of_groups = of_groups.filter_map(GroupSpec::idle_timeout_s);
    let common = spec.find_map(ClusterSpec::idle_timeout_s);
    let idle_s = of_groups.fold(common.unwrap_or(DEFAULT_IDLE_TIMEOUT_S), f64::max);
    let tail_s = (idle_s.clamp(0.0, 86_400.0) + TAIL_S).max(settings.tail_s);
    pass(tail_s, &mut world, &mut scaler);
    // Small pods may be kept for longer, and the minima of all groups for good.
    let end = world.now.plus(keep_small_s);
    while world.next_at().is_some_and(|next| next <= end)
        && i64::try_from(world.workers().count()).unwrap_or(i64::MAX) > world.least_workers()
    {
        step(&mut world, &mut scaler);
    }
    world.pass_to(world.now);
    Ok(SimulationResult::of(trace, &world, &scaler, began))
}

/// Lets the next thing happen, and returns it.
fn step(world: &mut World, scaler: &mut Scaler) -> Option<WorldEvent> {
    let event = world.advance()?;
    match event {
        WorldEvent::Look { token, .. } => scaler.look(token, world),
        WorldEvent::Answered { look, chain, .. } => scaler.answered(look, chain, world),
        event => world.happen(event),
    }
    if world.wakes(event) {
        scaler.wake(world);
    }
    Some(event)
}

/// Lets so many seconds pass.
fn pass(seconds: f64, world: &mut World, scaler: &mut Scaler) {
    let end = world.now.plus(seconds);
    while world.next_at().is_some_and(|next| next <= end) {
        step(world, scaler);
    }
    world.pass_to(end);
}

/// Goes on until all jobs have ended, or nothing has happened to any for so long that the others never will.
fn until_done(
    world: &mut World,
    scaler: &mut Scaler,
    progress: &mut dyn FnMut(f64),
) -> Result<(), SimulationError> {
    let (jobs, most) = (world.ray.jobs.all.len(), world.settings.most_rounds);
    let mut last = world.now;
    let mut reported = 0;
    while world.ray.jobs.unended > 0 {
        if scaler.rounds > most {
            return Err(SimulationError::TooLong(most));
        }
        let unended = world.ray.jobs.unended;
        let Some(event) = step(world, scaler) else {
            return Ok(());
        };
        if matches!(event, WorldEvent::Submitted(_)) || world.ray.jobs.unended != unended {
            last = world.now;
            let ended = jobs - world.ray.jobs.unended;
            // A report for each job of a million would take longer than the simulation.
            if ended >= reported + jobs.div_ceil(100) {
                reported = ended;
                progress(ended as f64 / jobs as f64);
            }
        }
        let is_stuck = world.now.since(last) > STUCK_S;
        if is_stuck && !world.ray.is_running() && world.submissions == 0 {
            return Ok(());
        }
    }
    Ok(())
}
