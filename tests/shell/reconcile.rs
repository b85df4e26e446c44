//! The scaler against a played cluster: it gets where it should, it is crashed at every point
//! and gets there too, and whatever fails, no work is lost and no rule is broken.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use crate::played_cluster::api::api;
use crate::played_cluster::{Group, START, Setup, Task, World};
use proptest::prelude::*;
use rayfit::plan::ExcessNode;
use rayfit::plan::check::check;
use rayfit::reconcile::{
    Chain, Done, Effect, Failure, RoundMemory, RoundSettings, UnchangedCheck, round,
};
use rayfit::snapshot::Snapshot;
use serde_json::Value;

const STEP_S: f64 = 1.0;

/// What happens to an effect.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Fate {
    /// It is done.
    Done,
    /// The process is killed before it is sent.
    KilledBefore,
    /// The process is killed after it was done, before the answer.
    KilledAfter,
    /// The API server or the GCS answers with an error; nothing was done.
    Fails(u16),
    /// It was done, and the answer was lost.
    Lost,
}

fn objects(snapshot: &Snapshot) -> [String; 2] {
    [
        snapshot.ray_cluster.object().to_string(),
        serde_json::to_string(&snapshot.pods).unwrap(),
    ]
}

/// A scaler in a world.
struct Run {
    world: World,
    memory: RoundMemory,
    /// What the shell would go by instead of a round, and the objects that it is of.
    still: Option<(UnchangedCheck, [String; 2])>,
    settings: RoundSettings,
    /// How many effects there were that change something.
    effects: usize,
    kinds: Vec<&'static str>,
    /// What was done, for people.
    log: Vec<String>,
    /// Pods of replicas with several hosts, for which the call to drain them failed. Ray drains each
    /// host by itself: such a host may get work before it is asked again, and KubeRay deletes it with
    /// its replica once the pod of a drained host has ended. Nothing can be taken back by then.
    doomed: BTreeSet<String>,
}

impl Run {
    fn new(setup: Setup) -> Self {
        let world = World::new(setup);
        Self {
            world,
            memory: RoundMemory::default(),
            still: None,
            settings: RoundSettings::default(),
            effects: 0,
            kinds: Vec::new(),
            log: Vec::new(),
            doomed: BTreeSet::new(),
        }
    }

    fn want(&mut self, count: usize, cpu: f64, seconds: Option<f64>) {
        let task = Task { cpu, left: seconds };
        self.world.waiting.extend(std::iter::repeat_n(task, count));
    }

    /// By which the shell makes no round of it, if it does not.
    fn spared_by(&self, snapshot: &Snapshot) -> Option<&UnchangedCheck> {
        let (still, of) = self.still.as_ref()?;
        let holds = *of == objects(snapshot) && still.holds(&snapshot.gcs, self.world.now);
        holds.then_some(still)
    }

    /// One round and the time until the next.
    fn round(&mut self, fate: &mut impl FnMut(usize) -> Fate) -> bool {
        let settings = self.settings.clone();
        let snapshot = self.world.snapshot(self.memory.history.clone());
        let planned = round(&snapshot, &self.memory, &settings);
        assert_eq!(
            check(&snapshot, &planned.plan),
            [],
            "at {}",
            self.world.now - START
        );
        if let Some(still) = self.spared_by(&snapshot) {
            let chains = &planned.chains;
            assert!(chains.is_empty(), "{chains:?} would be slept through");
            assert_eq!(planned.busy, still.is_busy(), "the next look comes as soon");
        }
        let mut done = Vec::new();
        let mut alive = true;
        for chain in planned.chains.clone() {
            alive = alive && self.chain(chain, fate, &mut done);
        }
        if alive {
            self.memory
                .fold(&planned, &done, &settings, self.world.now, || 0.5);
            let objects = objects(&snapshot);
            let still = done
                .is_empty()
                .then(|| UnchangedCheck::of(&planned, snapshot, &self.memory, &settings));
            self.still = still.flatten().map(|still| (still, objects));
        } else {
            self.memory = RoundMemory::default();
        }
        self.world.step(STEP_S);
        let of_doomed = |fault: &&String| {
            let mut doomed = self.doomed.iter();
            doomed.any(|pod| fault.starts_with(&format!("pod {pod} ")))
        };
        let faults = self.world.faults.iter();
        let faults: Vec<&String> = faults.filter(|fault| !of_doomed(fault)).collect();
        assert_eq!(
            faults,
            [] as [&String; 0],
            "at {}, after:\n{}",
            self.world.now - START,
            self.log.join("\n")
        );
        planned.plan.is_quiet() && done.iter().all(|done| !done.effect.is_kubernetes())
    }

    /// Whether the process survived.
    fn chain(
        &mut self,
        mut chain: Chain,
        fate: &mut impl FnMut(usize) -> Fate,
        done: &mut Vec<Done>,
    ) -> bool {
        while let Some(effect) = chain.next() {
            let changes = !matches!(effect, Effect::Report(_) | Effect::PutError(_));
            let what = if changes {
                self.effects += 1;
                self.kinds.push(effect.kind());
                fate(self.effects - 1)
            } else {
                Fate::Done
            };
            let result = match what {
                Fate::KilledBefore => return false,
                Fate::KilledAfter => {
                    let _ = self.world.perform(&effect);
                    return false;
                }
                Fate::Fails(code) => Err(api(code, "injected", &[])),
                Fate::Lost => {
                    let _ = self.world.perform(&effect);
                    Err(Failure::NoAnswer("injected".to_owned()))
                }
                Fate::Done => self.world.perform(&effect),
            };
            if let (Effect::Drain(drain), Err(_)) = (&effect, &result)
                && self.world.group(&drain.group).hosts > 1
            {
                self.doomed.insert(drain.pod.clone());
            }
            if changes {
                let at = self.world.now - START;
                let (kind, why) = (effect.kind(), &chain.why);
                self.log.push(format!("{at}: {kind} ({why}): {result:?}"));
            }
            chain.answered(result.as_ref(), self.world.now);
            done.push(Done {
                about: chain.about.clone(),
                effect,
                result,
            });
        }
        true
    }

    /// Rounds until nothing moves for some time; fails if that takes too many.
    fn settle(&mut self, fate: &mut impl FnMut(usize) -> Fate) {
        let (mut quiet, mut outcome) = (0, Value::Null);
        for _ in 0..400 {
            let still = self.round(fate);
            let now = self.world.outcome();
            let rests = still && !self.world.works() && now == outcome;
            quiet = if rests { quiet + 1 } else { 0 };
            outcome = now;
            if quiet >= 12 {
                return;
            }
        }
        let last = self.log.len().saturating_sub(24);
        panic!(
            "it does not settle:\n{}\n{outcome:#}",
            self.log[last..].join("\n")
        );
    }
}

fn group(name: &'static str, cpu: i64, min: i64, max: i64) -> Group {
    Group {
        name,
        cpu,
        min,
        max,
        hosts: 1,
        limit: None,
    }
}

fn setup(groups: Vec<Group>) -> Setup {
    Setup {
        groups,
        kube_nodes: vec![8, 8],
        knows_nodes: true,
        watch_lag: 1,
        pods_exit: false,
    }
}

/// A story: what is there, and what happens.
struct Story {
    name: &'static str,
    setup: Setup,
    tell: fn(&mut Run, &mut dyn FnMut(usize) -> Fate),
}

fn stories() -> Vec<Story> {
    let growing = |limit| Group {
        limit: Some(limit),
        ..group("cpu", 1, 1, 4)
    };
    let slices = Group {
        hosts: 2,
        ..group("cpu", 1, 0, 3)
    };
    vec![
        Story {
            name: "up and down again",
            setup: setup(vec![group("cpu", 1, 0, 6)]),
            tell: up_and_down,
        },
        Story {
            name: "a pod grows",
            setup: setup(vec![growing(3)]),
            tell: grows,
        },
        Story {
            name: "a pod grows and shrinks",
            setup: setup(vec![Group {
                max: 1,
                ..growing(3)
            }]),
            tell: shrinks,
        },
        Story {
            name: "growing is deferred",
            setup: Setup {
                kube_nodes: vec![4, 4],
                knows_nodes: false,
                ..setup(vec![Group {
                    min: 2,
                    ..growing(3)
                }])
            },
            tell: grows,
        },
        Story {
            name: "no node can hold the resize limit",
            setup: Setup {
                kube_nodes: vec![3, 3],
                knows_nodes: false,
                ..setup(vec![growing(6)])
            },
            tell: grows,
        },
        Story {
            name: "the maximum is lowered",
            setup: setup(vec![group("cpu", 1, 0, 6)]),
            tell: lowered,
        },
        Story {
            name: "slices of two hosts",
            setup: setup(vec![slices]),
            tell: up_and_down,
        },
        Story {
            name: "pods end with their Ray",
            setup: Setup {
                pods_exit: true,
                ..setup(vec![group("cpu", 1, 0, 6)])
            },
            tell: up_and_down,
        },
        Story {
            name: "a group is removed",
            setup: setup(vec![group("large", 2, 0, 6), group("small", 1, 0, 6)]),
            tell: removed,
        },
        Story {
            name: "a group is removed, and its pods end with their Ray",
            setup: Setup {
                pods_exit: true,
                ..setup(vec![group("large", 2, 0, 6), group("small", 1, 0, 6)])
            },
            tell: removed,
        },
    ]
}

fn up_and_down(run: &mut Run, fate: &mut dyn FnMut(usize) -> Fate) {
    let mut fate = fate;
    run.want(3, 1.0, Some(15.0));
    run.want(1, 1.0, None);
    run.settle(&mut fate);
}

fn grows(run: &mut Run, fate: &mut dyn FnMut(usize) -> Fate) {
    let mut fate = fate;
    run.settle(&mut fate);
    run.want(5, 1.0, None);
    run.settle(&mut fate);
}

fn shrinks(run: &mut Run, fate: &mut dyn FnMut(usize) -> Fate) {
    let mut fate = fate;
    run.settle(&mut fate);
    run.want(1, 1.0, None);
    run.want(2, 1.0, Some(10.0));
    // Until spare CPU has been spare for long enough, with what a crash forgets of that.
    for _ in 0..90 {
        run.round(&mut fate);
    }
    run.settle(&mut fate);
}

fn lowered(run: &mut Run, fate: &mut dyn FnMut(usize) -> Fate) {
    let mut fate = fate;
    run.want(4, 1.0, Some(25.0));
    for _ in 0..10 {
        run.round(&mut fate);
    }
    run.world.edit("cpu", "maxReplicas", 2);
    run.want(1, 1.0, None);
    run.settle(&mut fate);
}

fn removed(run: &mut Run, fate: &mut dyn FnMut(usize) -> Fate) {
    let mut fate = fate;
    run.want(2, 2.0, Some(25.0));
    for _ in 0..10 {
        run.round(&mut fate);
    }
    run.world.remove_group("large");
    run.want(1, 1.0, None);
    run.settle(&mut fate);
}

fn told(story: &Story, fate: impl Fn(usize) -> Fate) -> Run {
    let mut run = Run::new(story.setup.clone());
    let mut fate = |number| fate(number);
    (story.tell)(&mut run, &mut fate);
    run
}

#[test]
fn stories_end_as_they_should() {
    let mut ends = String::new();
    for story in stories() {
        let run = told(&story, |_| Fate::Done);
        let (name, kinds, outcome) = (story.name, run.kinds.join(", "), run.world.outcome());
        writeln!(ends, "{name}: {kinds}\n  {outcome:#}").unwrap();
    }
    insta::assert_snapshot!(ends);
}

/// Killed before or after any effect, and started again without memory: the same end.
#[test]
fn a_crash_at_any_point_changes_nothing_in_the_end() {
    for story in stories() {
        let whole = told(&story, |_| Fate::Done);
        let end = whole.world.outcome();
        for number in 0..whole.effects {
            for fate in [Fate::KilledBefore, Fate::KilledAfter] {
                let run = told(&story, |at| if at == number { fate } else { Fate::Done });
                let kind = whole.kinds[number];
                assert_eq!(
                    run.world.outcome(),
                    end,
                    "{}: {fate:?} effect {number}, {kind}",
                    story.name
                );
            }
        }
    }
}

/// Once failed or unanswered, every effect is tried again: the same end.
#[test]
fn a_failure_at_any_point_changes_nothing_in_the_end() {
    for story in stories() {
        let whole = told(&story, |_| Fate::Done);
        let end = whole.world.outcome();
        for number in 0..whole.effects {
            for fate in [Fate::Fails(409), Fate::Fails(500), Fate::Lost] {
                let run = told(&story, |at| if at == number { fate } else { Fate::Done });
                let (kind, waiting) = (whole.kinds[number], &run.world.waiting);
                assert!(
                    waiting.is_empty(),
                    "{}: {fate:?} effect {number}, {kind}",
                    story.name
                );
                if kind != "resize-pod" {
                    // A pod that could not be resized is passed over for a new one.
                    assert_eq!(
                        run.world.outcome(),
                        end,
                        "{}: {fate:?} effect {number}, {kind}",
                        story.name
                    );
                }
            }
        }
    }
}

/// A group that is there and cannot be read is not one that was removed.
#[test]
fn pods_of_a_group_that_cannot_be_read_are_left_alone() {
    let mut run = Run::new(setup(vec![
        group("large", 2, 0, 6),
        group("small", 1, 0, 6),
    ]));
    let mut done = |_| Fate::Done;
    run.want(2, 2.0, None);
    run.settle(&mut done);
    let params = run
        .world
        .cluster
        .pointer_mut("/spec/workerGroupSpecs/0/rayStartParams");
    params.unwrap()["num-cpus"] = "many".into();
    let before = run.effects;
    run.settle(&mut done);
    assert_eq!(run.effects, before, "{:?}", run.log);
    run.want(1, 1.0, None);
    run.settle(&mut done);
    assert!(run.world.waiting.is_empty(), "other groups go on");
}

/// Without a group by which KubeRay would delete them, pods of a group that was removed stay, and
/// it is said how to be rid of them.
#[test]
fn what_kuberay_would_not_delete_is_named() {
    let slices = Group {
        hosts: 2,
        ..group("slices", 1, 0, 3)
    };
    let mut run = Run::new(Setup {
        pods_exit: true,
        ..setup(vec![group("large", 2, 0, 6), slices])
    });
    run.want(1, 2.0, Some(20.0));
    for _ in 0..10 {
        run.round(&mut |_| Fate::Done);
    }
    run.world.remove_group("large");
    run.settle(&mut |_| Fate::Done);
    let snapshot = run.world.snapshot(run.memory.history.clone());
    let planned = round(&snapshot, &run.memory, &RoundSettings::default());
    let text = planned.plan.to_string();
    assert!(
        text.contains("kubectl delete pod demo-large-worker-"),
        "{text}"
    );
}

/// Kubernetes is full, tasks wait: what was asked for waits too, and is not made again and again.
#[test]
fn nothing_comes_and_goes_where_kubernetes_is_full() {
    for (knows_nodes, limit, pending) in [
        (true, None, None),
        (true, Some(4), Some(3.0)),
        (false, Some(8), None),
        (false, Some(4), Some(3.0)),
    ] {
        let full = Setup {
            kube_nodes: vec![4, 3],
            knows_nodes,
            ..setup(vec![Group {
                limit,
                ..group("cpu", 2, 1, 8)
            }])
        };
        let mut run = Run::new(full);
        run.settings.plan.pending_idle_timeout_s = pending;
        run.want(20, 1.0, None);
        let mut made = Vec::new();
        for _ in 0..60 {
            run.round(&mut |_| Fate::Done);
            made.push(run.world.made("cpu"));
        }
        let log = run.log.join("\n");
        assert_eq!(
            made[29], made[59],
            "{knows_nodes} {limit:?} {pending:?}:\n{log}"
        );
    }
}

/// A task that needs a pod to grow, where no node has the room: a new pod stays as small as the
/// one before it, so it is not tried again and again.
#[test]
fn pods_that_cannot_grow_are_not_made_again_and_again() {
    for (knows_nodes, hosts) in [(true, 1), (false, 1), (true, 2)] {
        let narrow = Setup {
            kube_nodes: vec![3, 3, 3],
            knows_nodes,
            ..setup(vec![Group {
                limit: Some(4),
                hosts,
                ..group("cpu", 2, 0, 1)
            }])
        };
        let mut run = Run::new(narrow);
        run.want(1, 4.0, None);
        for _ in 0..600 {
            run.round(&mut |_| Fate::Done);
        }
        // At once, and after one minute, two, and four.
        let (made, log) = (run.world.made("cpu"), run.log.join("\n"));
        let hosts = usize::try_from(hosts).unwrap();
        assert!(
            (2 * hosts..=5 * hosts).contains(&made),
            "{made} pods:\n{log}"
        );
        let snapshot = run.world.snapshot(run.memory.history.clone());
        let planned = round(&snapshot, &run.memory, &run.settings);
        let reasons = &planned.plan.unmet[0].reasons;
        assert!(
            planned.plan.unmet[0].why(9).contains("could not grow"),
            "{reasons:?}"
        );
    }
}

/// Random demand in a random world.
#[derive(Debug, Clone)]
struct Chance {
    setup: Setup,
    bursts: Vec<(usize, u8, Option<u8>, u8)>,
    fates: Vec<u8>,
}

/// Three workers that are busy for ever, of which the group may have one from now on.
fn above_its_maximum(change: impl FnOnce(&mut RoundSettings)) -> Run {
    let mut run = Run::new(setup(vec![group("cpu", 1, 0, 3)]));
    change(&mut run.settings);
    run.want(3, 1.0, None);
    run.settle(&mut |_| Fate::Done);
    assert_eq!(run.workers(), 3);
    run.world.edit("cpu", "maxReplicas", 1);
    run
}

impl Run {
    fn workers(&self) -> usize {
        self.world.pods.len() - 1
    }

    fn rounds(&mut self, count: usize) {
        for _ in 0..count {
            self.round(&mut |_| Fate::Done);
        }
    }

    /// What the next plan says of the nodes that are leaving.
    fn excess(&self) -> Vec<ExcessNode> {
        let snapshot = self.world.snapshot(self.memory.history.clone());
        round(&snapshot, &self.memory, &self.settings).plan.excess
    }
}

#[test]
fn what_is_above_a_maximum_has_ten_minutes_to_finish() {
    let mut run = above_its_maximum(|_| {});
    run.rounds(599);
    assert_eq!(run.workers(), 3, "they work");
    let excess = run.excess();
    assert_eq!(excess.len(), 2);
    for node in excess {
        assert_eq!(node.holds["CPU"].to_bits(), 1.0_f64.to_bits());
        let stop_at = node.stop_at.unwrap() - START;
        assert!((600.0..660.0).contains(&stop_at), "{stop_at}");
    }
    let stopped = || "; its time is over";
    assert!(!run.log.join("\n").contains(stopped()));
    run.rounds(60);
    assert_eq!(run.workers(), 1);
    assert_eq!(
        run.world.cluster["spec"]["workerGroupSpecs"][0]["replicas"],
        1
    );
    assert_eq!(
        run.log.join("\n").matches(stopped()).count(),
        2,
        "once each"
    );
    assert_eq!(run.excess(), []);
    assert!(run.memory.history.excess.is_empty());
}

#[test]
fn the_time_of_what_is_above_a_maximum_outlasts_failures() {
    let mut run = above_its_maximum(|settings| settings.plan.drain_timeout_s = 60.0);
    for _ in 0..200 {
        run.round(&mut |effect| {
            if effect % 3 == 0 {
                Fate::Done
            } else {
                Fate::Fails(500)
            }
        });
    }
    assert_eq!(run.workers(), 1);
}

#[test]
fn without_time_what_is_above_a_maximum_is_stopped_at_once() {
    let at_once = |settings: &mut RoundSettings| settings.plan.drain_timeout_s = 0.0;
    let as_ray =
        |settings: &mut RoundSettings| settings.plan.strategy = rayfit::plan::Strategy::Ray;
    for change in [at_once, as_ray] {
        let mut run = above_its_maximum(change);
        run.rounds(5);
        assert_eq!(run.workers(), 1, "{}", run.log.join("\n"));
    }
}

#[test]
fn nothing_is_stopped_once_the_maximum_is_raised_again() {
    let mut run = above_its_maximum(|settings| settings.plan.drain_timeout_s = 60.0);
    run.rounds(30);
    assert_eq!(run.excess().len(), 2);
    run.world.edit("cpu", "maxReplicas", 2);
    run.rounds(1);
    assert_eq!(
        run.excess().len(),
        1,
        "the other one has drained without need"
    );
    run.world.edit("cpu", "maxReplicas", 3);
    run.rounds(100);
    assert_eq!(run.workers(), 3, "{}", run.log.join("\n"));
    assert!(!run.log.join("\n").contains("its time is over"));
}

#[test]
fn a_cluster_grows_no_faster_than_its_policy_says() {
    let mut run = Run::new(setup(vec![group("cpu", 1, 0, 12)]));
    run.settings.plan.scale_up = Some(rayfit::plan::ScaleUp {
        max_pods: 4,
        per_s: 30,
    });
    run.want(10, 1.0, None);
    let mut last = 0;
    let mut jumps = Vec::new();
    for second in 0..120_i32 {
        run.rounds(1);
        if run.workers() != last {
            jumps.push((second, run.workers() - last));
            last = run.workers();
        }
    }
    let counts: Vec<usize> = jumps.iter().map(|(_, count)| *count).collect();
    assert_eq!(counts, [4, 4, 2], "{jumps:?}");
    let between: Vec<i32> = jumps.windows(2).map(|two| two[1].0 - two[0].0).collect();
    assert!(
        between.iter().all(|seconds| (30..35).contains(seconds)),
        "{jumps:?}"
    );
}

#[test]
fn of_a_refused_jump_a_part_is_asked_for() {
    let mut run = Run::new(setup(vec![group("cpu", 1, 0, 12)]));
    run.want(8, 1.0, None);
    let mut refusals = 2;
    for _ in 0..60 {
        // The patches of the RayCluster are the only effects until there are pods.
        let is_refused = refusals > 0 && run.workers() == 0;
        let before = run.effects;
        run.round(&mut |_| {
            if is_refused {
                Fate::Fails(422)
            } else {
                Fate::Done
            }
        });
        refusals -= i32::from(is_refused && run.effects > before);
        if run.workers() > 0 {
            break;
        }
    }
    assert_eq!(run.workers(), 2, "{}", run.log.join("\n"));
    run.rounds(20);
    assert_eq!(run.workers(), 8, "{}", run.log.join("\n"));
}

fn chance() -> impl Strategy<Value = Chance> {
    let group = |name| {
        (
            1..3_i64,
            0..2_i64,
            2..5_i64,
            1..3_i64,
            prop::option::of(2..6_i64),
        )
            .prop_map(move |(cpu, min, max, hosts, limit)| {
                let limit = limit.filter(|limit| *limit > cpu);
                Group {
                    name,
                    cpu,
                    min,
                    max,
                    hosts,
                    limit,
                }
            })
    };
    let setup = (
        group("a"),
        group("b"),
        prop_oneof![Just(vec![200]), prop::collection::vec(4..9_i64, 2..4)],
        any::<bool>(),
        1..4_u64,
        any::<bool>(),
    )
        .prop_map(
            |(a, b, kube_nodes, knows_nodes, watch_lag, pods_exit)| Setup {
                groups: vec![a, b],
                kube_nodes,
                knows_nodes,
                watch_lag,
                pods_exit,
            },
        );
    let burst = (
        1..6_usize,
        1..4_u8,
        prop::option::weighted(0.8, 1..30_u8),
        0..20_u8,
    );
    let bursts = prop::collection::vec(burst, 1..5);
    (setup, bursts, prop::collection::vec(any::<u8>(), 64)).prop_map(|(setup, bursts, fates)| {
        Chance {
            setup,
            bursts,
            fates,
        }
    })
}

/// One in five effects goes wrong, for as long as there are fates.
fn fated(fates: &[u8]) -> impl FnMut(usize) -> Fate + '_ {
    |number| match fates.get(number).map_or(0, |fate| fate % 32) {
        1 => Fate::KilledBefore,
        2 => Fate::KilledAfter,
        3 => Fate::Fails(409),
        4 => Fate::Fails(500),
        5 => Fate::Lost,
        6 => Fate::Fails(403),
        7 => Fate::Fails(429),
        _ => Fate::Done,
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]

    /// Whatever fails and whenever the process is killed: no busy worker is deleted, no plan
    /// breaks a rule, no pod is resized beyond its bounds, and in the end all is at rest.
    #[test]
    fn nothing_is_lost_whatever_goes_wrong(chance in chance()) {
        let mut run = Run::new(chance.setup.clone());
        let mut fate = fated(&chance.fates);
        for (count, cpu, seconds, rounds) in &chance.bursts {
            run.want(*count, f64::from(*cpu), seconds.map(f64::from));
            for _ in 0..*rounds {
                run.round(&mut fate);
            }
        }
        if run.world.setup.kube_nodes == [200] {
            run.settle(&mut fate);
        } else {
            // Where Kubernetes is full, a new pod may come in vain, more and more seldom.
            for _ in 0..100 {
                run.round(&mut fate);
            }
        }
        for ray in run.world.rays.iter().filter(|ray| !ray.dead) {
            prop_assert!(ray.used() <= ray.cpu);
        }
    }
}
