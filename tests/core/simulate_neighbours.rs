//! One process scales several clusters: what goes wrong with some of them is hardly felt by others.

use crate::faults::draw;
use crate::faults::neighbours::{GateRate, Neighbourhood, trial};
use crate::faults::plan::{Fault, FaultKind, FaultPlan};
use crate::faults::trouble::{Answer, CallKind};

use crate::settings::{part_of, setting};

/// How many clusters one process scales here.
const CLUSTERS: u64 = 8;

/// How many there are where all of them begin at once.
const CROWD: u64 = 12;

/// A low rate, so that a few clusters stand for the many of a controller.
const RATE: GateRate = GateRate { rate: 4, burst: 4 };

/// How many neighbourhoods are tried, unless `RAYFIT_NEIGHBOURHOODS` says something else.
const TRIED: u64 = 3;

fn tried() -> u64 {
    setting("RAYFIT_NEIGHBOURHOODS").map_or(part_of(TRIED, 1), |value| value.parse().unwrap())
}

fn plans(number: u64, clusters: u64) -> Vec<FaultPlan> {
    let first = 1_000_000 + number * clusters;
    (first..first + clusters).map(draw::plan).collect()
}

/// The result, in which no cluster broke a rule.
fn well(number: u64, plans: &[FaultPlan]) -> Neighbourhood {
    let result = trial(plans, RATE).unwrap();
    if let Some((cluster, failed)) = &result.failed {
        let (log, violation) = (failed.log.join("\n  "), &failed.violation);
        panic!("neighbourhood {number}, cluster {cluster}: {violation}\n  {log}");
    }
    result
}

/// What the first cluster feels of others.
#[derive(Debug, Default, Clone, Copy)]
struct Felt {
    /// By how many seconds its jobs wait longer, on average.
    waits_s: f64,
    /// The longest time that a request of it waits at the gate, in seconds.
    at_gate_s: f64,
}

fn felt(number: u64, plans: &[FaultPlan]) -> Felt {
    let alone = &well(number, &plans[..1]).waits_s[0];
    let result = well(number, plans);
    // A job that no node could hold starts in neither case.
    let more = alone
        .iter()
        .zip(&result.waits_s[0])
        .map(|waits| match waits {
            (Some(alone), Some(beside)) => beside - alone,
            (None, None) => 0.0,
            other => panic!("a job starts in one case only: {other:?}"),
        });
    let more: f64 = more.sum();
    #[expect(clippy::cast_precision_loss, reason = "a dozen jobs")]
    let jobs = alone.len().max(1) as f64;
    Felt {
        waits_s: more / jobs,
        at_gate_s: result.at_gate_s[0],
    }
}

#[test]
fn what_goes_wrong_with_neighbours_breaks_nothing() {
    for number in 0..tried() {
        well(number, &plans(number, CLUSTERS));
    }
}

#[test]
fn a_cluster_without_faults_hardly_feels_its_neighbours() {
    for number in 0..tried() {
        let mut plans = plans(number, CLUSTERS);
        plans[0].faults.clear();
        let felt = felt(number, &plans);
        let is_little = felt.waits_s < 0.5 && felt.at_gate_s < 2.0;
        assert!(is_little, "neighbourhood {number}: {felt:?}");
    }
}

/// What the first of many clusters feels of the others, on average, if so many of them have the same
/// fault for long and no others have any.
fn felt_of(faulty: usize, kind: FaultKind) -> Felt {
    let each = (0..tried()).map(|number| {
        let mut plans = plans(number, CROWD);
        for plan in &mut plans {
            plan.faults.clear();
        }
        for plan in plans.iter_mut().skip(1).take(faulty) {
            plan.faults = vec![Fault { at: 0.0, kind }];
        }
        felt(number, &plans)
    });
    #[expect(clippy::cast_precision_loss, reason = "a few")]
    let part = 1.0 / tried() as f64;
    each.fold(Felt::default(), |sum, felt| Felt {
        waits_s: sum.waits_s + felt.waits_s * part,
        at_gate_s: sum.at_gate_s + felt.at_gate_s * part,
    })
}

const HANG: FaultKind = FaultKind::CallsSlow {
    takes: 9.0,
    seconds: 200.0,
};

const TOO_MANY: FaultKind = FaultKind::CallsRefused {
    of: CallKind::PatchCluster,
    answer: Answer::TooManyRequests,
    seconds: 200.0,
};

/// What hangs takes places of the gate; a quota or a webhook that refuses what is about one namespace
/// asks its cluster for patience, and not the others.
#[test]
fn neighbours_that_hang_or_are_asked_for_patience_are_felt_no_more_than_others() {
    let usual = felt_of(0, HANG);
    for felt in [felt_of(11, HANG), felt_of(1, TOO_MANY)] {
        // Without faults, too, chance lets a cluster wait a little longer or shorter beside others.
        let is_no_more =
            felt.waits_s < usual.waits_s.max(0.0) + 0.5 && felt.at_gate_s < usual.at_gate_s + 1.0;
        println!("{felt:?}, and usually {usual:?}");
        assert!(is_no_more, "{felt:?}, and usually {usual:?}");
    }
}
