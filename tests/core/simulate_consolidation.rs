//! Pods that shrink beside a node autoscaler that consolidates: they do not keep each other going.

use std::collections::BTreeMap;

use rayfit_core::plan::Strategy;
use rayfit_core::simulate::moment::Moment;
use rayfit_core::simulate::world::World;

use crate::faults::head::RECONNECT_S;
use crate::faults::inspect::jobs_on;
use crate::faults::plan::FaultPlan;
use crate::faults::scene::{Scene, SceneGroup, SceneJob, SceneSettings};
use crate::faults::trial::{Staging, watched};

use crate::settings::part_of;

/// For how long a worker may have had work before it is marked, in seconds: until the next look, and a call.
const MARKED_S: f64 = 6.0;

/// For how long nothing may have been evicted in the end, in seconds.
const REST_S: f64 = 60.0;

/// What was seen of a workload.
#[derive(Debug, Default)]
struct Seen {
    /// How many pods the node autoscaler evicted, and when it last did.
    evicted: u64,
    last_evicted: Option<Moment>,
    /// For how long the evicted pods had had work, in seconds, at the most.
    busy_s: f64,
    /// How many Kubernetes nodes there ever were, and how many bursts of jobs.
    nodes: usize,
    bursts: usize,
    end: Option<Moment>,
    /// Since when each pod has had work.
    busy: BTreeMap<String, Moment>,
}

impl Seen {
    fn look(&mut self, world: &World) {
        let now = world.now;
        let has_evicted = world.ledger.evicted > self.evicted;
        for pod in world.workers() {
            if jobs_on(world, pod.name()) == 0 {
                self.busy.remove(pod.name());
                continue;
            }
            let since = *self.busy.entry(pod.name().to_owned()).or_insert(now);
            if has_evicted && pod.is_deleting() {
                self.busy_s = self.busy_s.max(now.since(since));
            }
        }
        if has_evicted {
            (self.evicted, self.last_evicted) = (world.ledger.evicted, Some(now));
        }
        (self.nodes, self.end) = (world.machines.nodes.len(), Some(now));
    }
}

/// Bursts of short and long tasks with gaps, on pods that grow.
fn workload(seed: u64) -> (FaultPlan, usize) {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut group = |name: &str, cores: i64| SceneGroup {
        name: name.to_owned(),
        cores,
        max_cores: Some(cores * random.i64(2..=4)),
        pod_cores: None,
        min: 0,
        max: random.i64(4..=8),
        hosts: 1,
    };
    let groups = vec![group("small", 1), group("large", 2)];
    let (mut jobs, mut at) = (Vec::new(), 0.0);
    let bursts = random.usize(3..=5);
    for _ in 0..bursts {
        for _ in 0..random.usize(3..=12) {
            let is_long = random.usize(..4) == 0;
            let seconds = if is_long { 60..=240 } else { 3..=30 };
            jobs.push(SceneJob {
                at: at + f64::from(random.u32(0..=10)),
                seconds: f64::from(random.u32(seconds)),
                cpu: [0.5, 1.0, 1.0, 2.0][random.usize(..4)],
                memory_gi: 0.0,
                uses_gi: Vec::new(),
                actor: false,
                bundles: None,
            });
        }
        at += f64::from(random.u32(40..=240));
    }
    let settings = SceneSettings {
        seed,
        strategy: Strategy::Rayfit,
        idle_timeout_seconds: random.u32(10..=60),
        node_cores: random.i64(6..=12),
        ..SceneSettings::default()
    };
    let scene = Scene {
        settings,
        groups,
        jobs,
    };
    let faults = Vec::new();
    (FaultPlan { scene, faults }, bursts)
}

/// Tries a workload. All rules of simulations with faults hold, among them those for resizes and for rest.
fn try_out(seed: u64, consolidate_after_s: Option<f64>, holds: bool) -> Seen {
    let (plan, bursts) = workload(seed);
    let mut staging = Staging {
        reconciler: plan.scene.reconciler(),
        world: plan.scene.world(),
        spares_none: false,
        reconnect_s: RECONNECT_S,
    };
    staging.reconciler.plan.hold_busy_nodes = holds;
    staging.world.pools[0].max = 8;
    staging.world.pools[0].consolidate_after_s = consolidate_after_s;
    let mut told = Seen {
        bursts,
        ..Seen::default()
    };
    let failed = watched(&plan, staging, &mut |world, _| told.look(world)).unwrap();
    if let Some(failed) = failed {
        panic!(
            "seed {seed}: {}\n{}",
            failed.violation,
            failed.log.join("\n")
        );
    }
    told
}

/// However a workload goes on, each of its bursts has at most two pods evicted and one node more made than there
/// would be without consolidation, and afterwards nothing is evicted any more. Workers with work are left alone
/// where they are marked.
#[test]
fn shrinking_and_consolidation_come_to_rest() {
    let mut evicted = 0;
    for seed in 0..part_of(10, 1) {
        let alone = try_out(seed, None, true);
        for (after_s, holds) in [(0.0, true), (30.0, true), (0.0, false), (30.0, false)] {
            let found = try_out(seed, Some(after_s), holds);
            let what = format!("seed {seed}, after {after_s} s, holds {holds}: {found:?}");
            let bursts = alone.bursts;
            assert!(found.evicted <= 2 * bursts as u64, "{what}");
            assert!(
                found.nodes <= alone.nodes + bursts,
                "{what}, alone {alone:?}"
            );
            let (end, last) = (found.end.unwrap(), found.last_evicted);
            assert!(last.is_none_or(|last| end.since(last) >= REST_S), "{what}");
            if holds {
                assert!(
                    found.busy_s <= MARKED_S,
                    "a busy worker was evicted: {what}"
                );
            }
            evicted += found.evicted;
        }
    }
    assert!(evicted > 0, "nothing was consolidated");
}
