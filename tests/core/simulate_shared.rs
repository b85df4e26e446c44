//! Several clusters in one world: their pods are on the same Kubernetes nodes, and one process scales them.

use std::cell::Cell;

use rayfit_core::simulate::moment::Moment;
use rayfit_core::simulate::world::World;

use crate::faults::draw;
use crate::faults::head::RECONNECT_S;
use crate::faults::neighbours::{GateRate, Neighbourhood, shared, watched};
use crate::faults::plan::{Fault, FaultKind, FaultPlan};
use crate::faults::scene::{Scene, SceneGroup, SceneJob, SceneSettings};
use crate::faults::trial::Staging;

use crate::settings::{part_of, setting};

const RATE: GateRate = GateRate {
    rate: 50,
    burst: 100,
};

/// The worlds that are tried, unless `RAYFIT_SHARED_WORLDS` says something else.
fn tried() -> std::ops::Range<u64> {
    let Some(value) = setting("RAYFIT_SHARED_WORLDS") else {
        return 0..part_of(50, 6);
    };
    let (from, to) = value.split_once("..").expect("FROM..TO");
    from.parse().unwrap()..to.parse().unwrap()
}

/// Two or three clusters.
fn plans(number: u64) -> Vec<FaultPlan> {
    let first = 2_000_000 + number * 3;
    (first..first + 2 + number % 2).map(draw::plan).collect()
}

fn well(result: &Neighbourhood, what: &str) {
    if let Some((cluster, failed)) = &result.failed {
        let (log, violation) = (failed.log.join("\n  "), &failed.violation);
        panic!("{what}, cluster {cluster}: {violation}\n  {log}");
    }
}

#[test]
fn the_rules_hold_for_each_cluster_of_a_world() {
    for number in tried() {
        let result = shared(&plans(number), RATE).unwrap();
        well(&result, &format!("world {number}"));
    }
}

#[test]
fn equal_arguments_give_equal_results() {
    for number in 0..part_of(3, 1) {
        let results = [(), ()].map(|()| shared(&plans(number), RATE).unwrap());
        assert_eq!(results[0], results[1], "world {number}");
    }
}

/// A cluster whose pods have so many cores and may grow to so many, with jobs that begin at a moment.
fn tenant(cores: i64, max_cores: Option<i64>, max: i64, jobs: &[(f64, f64)]) -> FaultPlan {
    let job = |(at, cpu): &(f64, f64)| SceneJob {
        at: *at,
        seconds: 30.0,
        cpu: *cpu,
        memory_gi: 0.0,
        uses_gi: Vec::new(),
        actor: false,
        bundles: None,
    };
    FaultPlan {
        scene: Scene {
            settings: SceneSettings {
                seed: 1,
                idle_timeout_seconds: 10,
                node_cores: 8,
                ..SceneSettings::default()
            },
            groups: vec![SceneGroup {
                name: "small".to_owned(),
                cores,
                max_cores,
                pod_cores: None,
                min: 0,
                max,
                hosts: 1,
            }],
            jobs: jobs.iter().map(job).collect(),
        },
        faults: Vec::new(),
    }
}

/// The plans on so many nodes, and no more.
fn on_nodes<S: FnMut(&World, Option<Moment>)>(
    nodes: u32,
    plans: &[FaultPlan],
    seen: &mut [S],
) -> Neighbourhood {
    let staging = |plan: &FaultPlan| {
        let mut world = plan.scene.world();
        for pool in &mut world.pools {
            (pool.min, pool.max) = (nodes, nodes);
        }
        Staging {
            reconciler: plan.scene.reconciler(),
            world,
            spares_none: false,
            reconnect_s: RECONNECT_S,
        }
    };
    let stagings = plans.iter().map(staging).collect();
    watched(plans, stagings, RATE, seen).unwrap()
}

fn waits(result: &Neighbourhood, cluster: usize) -> Vec<f64> {
    let waits = result.waits_s[cluster].iter();
    waits.map(|wait| wait.expect("every job starts")).collect()
}

/// Of eight cores the two heads take two. The first tenant takes four for 30 s, and keeps them for the
/// ten seconds of its idle timeout; what the second one needs is there only then.
#[test]
fn pods_of_one_tenant_wait_for_the_room_that_another_one_has() {
    let first = tenant(2, None, 2, &[(0.0, 2.0), (0.0, 2.0)]);
    let second = tenant(4, None, 1, &[(2.0, 4.0)]);
    let nothing = |_: &World, _: Option<Moment>| {};
    let alone = on_nodes(1, std::slice::from_ref(&second), &mut [nothing]);
    well(&alone, "alone");
    let together = on_nodes(1, &[first, second], &mut [nothing, nothing]);
    well(&together, "together");
    let (alone, beside) = (waits(&alone, 0)[0], waits(&together, 1)[0]);
    assert!(alone < 15.0, "{alone}");
    assert!((30.0..80.0).contains(&beside), "{beside}");
    let first = waits(&together, 0);
    assert!(first.iter().all(|wait| *wait < 15.0), "{first:?}");
}

/// With room for both, each waits no longer than alone.
#[test]
fn tenants_with_room_for_both_do_not_feel_each_other() {
    let both = [
        tenant(2, None, 2, &[(0.0, 2.0), (0.0, 2.0)]),
        tenant(4, None, 1, &[(2.0, 4.0)]),
    ];
    let nothing = |_: &World, _: Option<Moment>| {};
    let together = on_nodes(2, &both, &mut [nothing, nothing]);
    well(&together, "together");
    for (number, plan) in both.iter().enumerate() {
        let alone = on_nodes(2, std::slice::from_ref(plan), &mut [nothing]);
        assert_eq!(waits(&together, number), waits(&alone, 0), "{number}");
    }
}

/// The first tenant's pod could grow from two cores to six on its node of eight, were it not for the four
/// cores of the other one's pod, of which its scaler knows: it asks for no more than there is.
#[test]
fn a_pod_grows_into_what_pods_of_others_leave() {
    let grows = tenant(
        2,
        Some(6),
        1,
        &[(0.0, 2.0), (20.0, 1.0), (20.0, 1.0), (20.0, 1.0)],
    );
    let fills = tenant(3, None, 1, &[(0.0, 3.0)]);
    let largest = |plans: &[FaultPlan]| {
        let (largest, deferred, loads) = (Cell::new(0), Cell::new(false), Cell::new(false));
        let look = |world: &World, _: Option<Moment>| {
            loads.set(loads.get() || (world.number == 0 && !world.view.loads.is_empty()));
            for pod in world.workers().filter(|_| world.number == 0) {
                largest.set(largest.get().max(pod.size()[0]));
                let mut conditions = pod.object.status.conditions.iter();
                let is = conditions.any(|one| one.reason.as_deref() == Some("Deferred"));
                deferred.set(deferred.get() || is);
            }
        };
        let result = on_nodes(1, plans, &mut vec![look; plans.len()]);
        well(&result, "growth");
        (largest.get(), deferred.get(), loads.get())
    };
    assert_eq!(largest(std::slice::from_ref(&grows)), (6000, false, false));
    assert_eq!(largest(&[grows, fills]), (3000, false, true));
}

/// A Kubernetes node that one cluster's fault takes away is gone with the pods of all.
#[test]
fn a_node_that_is_lost_is_lost_for_all() {
    let mut first = tenant(2, None, 3, &[(0.0, 2.0), (0.0, 2.0), (0.0, 2.0)]);
    let second = tenant(4, None, 2, &[(0.0, 4.0), (0.0, 4.0)]);
    let kind = FaultKind::NodeLost { pick: 0 };
    first.faults = vec![Fault { at: 15.0, kind }];
    let harmed = Cell::new(0);
    let look = |world: &World, _: Option<Moment>| {
        if world.number == 1 {
            harmed.set(world.ledger.harmed);
        }
    };
    let mut plans = [first, second];
    let result = on_nodes(4, &plans, &mut [look; 2]);
    well(&result, "a lost node");
    assert!(harmed.get() > 0, "the other one has lost no job");
    plans[0].faults.clear();
    harmed.set(0);
    well(&on_nodes(4, &plans, &mut [look; 2]), "no lost node");
    assert_eq!(harmed.get(), 0);
}

/// A quota holds for all pods of a namespace; of another namespace it holds for none.
#[test]
fn a_quota_of_one_tenant_does_not_hold_for_another() {
    let mut first = tenant(2, None, 2, &[(5.0, 2.0)]);
    let kind = FaultKind::QuotaSet {
        cores: 1,
        seconds: 60.0,
    };
    first.faults = vec![Fault { at: 0.0, kind }];
    let second = tenant(2, None, 2, &[(5.0, 2.0)]);
    let nothing = |_: &World, _: Option<Moment>| {};
    let result = on_nodes(2, &[first, second], &mut [nothing, nothing]);
    well(&result, "a quota");
    let (first, second) = (waits(&result, 0)[0], waits(&result, 1)[0]);
    assert!(first > 50.0 && second < 15.0, "{first} and {second}");
}
