//! The scaler in simulated clusters: it gets where it should, it is killed at every call and gets there
//! too, and so it does whatever call fails. `simulate_faults` draws what goes wrong by seed.

use std::fmt::Write as _;

use rayfit_core::plan::{ScaleUp, Strategy};
use rayfit_core::reconcile::effects::effect::DrainKind;
use rayfit_core::reconcile::{Effect, RoundSettings};

use crate::faults::losses::edit;
use crate::faults::scene::SceneGroup;
use crate::faults::trouble::Answer;
use serde_json::{Value, json};

use crate::reconcile_support::{FOR_EVER, Fate, Run, Story, group, jobs};
use crate::settings::part_of;

/// What people do to the RayCluster.
type Edit = fn(&mut Value);

/// A story, and what people do in it so many seconds after its beginning.
struct Told {
    name: &'static str,
    story: Story,
    edit: Option<(f64, Edit)>,
    /// For how many seconds it goes on at least.
    lasts_s: f64,
}

fn stories() -> Vec<Told> {
    let growing = |limit, min| SceneGroup {
        max_cores: Some(limit),
        ..group("cpu", 1, min, 4)
    };
    let up_and_down = |group: SceneGroup| Story {
        groups: vec![group],
        jobs: [jobs(3, 0.0, 1.0, 15.0), jobs(1, 0.0, 1.0, FOR_EVER)].concat(),
        ..Story::default()
    };
    let grows = |group: SceneGroup, nodes: &[i64], knows_nodes| Story {
        groups: vec![group],
        jobs: jobs(5, 0.0, 1.0, FOR_EVER),
        nodes: nodes.to_vec(),
        knows_nodes,
        ..Story::default()
    };
    let removed = |pods_exit| Story {
        groups: vec![group("large", 2, 0, 6), group("small", 1, 0, 6)],
        jobs: [jobs(2, 0.0, 2.0, 25.0), jobs(1, 15.0, 1.0, FOR_EVER)].concat(),
        pods_exit,
        ..Story::default()
    };
    let of = |name, story| Told {
        name,
        story,
        edit: None,
        lasts_s: 0.0,
    };
    let shrinks = Story {
        groups: vec![SceneGroup {
            max: 1,
            ..growing(3, 1)
        }],
        jobs: [jobs(1, 0.0, 1.0, FOR_EVER), jobs(2, 0.0, 1.0, 10.0)].concat(),
        ..Story::default()
    };
    let lowered = Story {
        groups: vec![group("cpu", 1, 0, 6)],
        jobs: [jobs(4, 0.0, 1.0, 25.0), jobs(1, 15.0, 1.0, FOR_EVER)].concat(),
        ..Story::default()
    };
    let slices = SceneGroup {
        hosts: 2,
        ..group("cpu", 1, 0, 3)
    };
    vec![
        of("up and down again", up_and_down(group("cpu", 1, 0, 6))),
        of("a pod grows", grows(growing(3, 1), &[8, 8], true)),
        Told {
            // Until spare CPU has been spare for long enough, with what a crash forgets of that.
            lasts_s: 90.0,
            ..of("a pod grows and shrinks", shrinks)
        },
        of("growing is deferred", grows(growing(3, 2), &[4, 4], false)),
        of(
            "no node can hold the resize limit",
            grows(growing(6, 1), &[3, 3], false),
        ),
        Told {
            edit: Some((15.0, |cluster| lower(cluster, 2))),
            ..of("the maximum is lowered", lowered)
        },
        of("slices of two hosts", up_and_down(slices)),
        of(
            "pods end with their Ray",
            Story {
                pods_exit: true,
                ..up_and_down(group("cpu", 1, 0, 6))
            },
        ),
        Told {
            edit: Some((15.0, remove_large)),
            ..of("a group is removed", removed(false))
        },
        Told {
            edit: Some((15.0, remove_large)),
            ..of(
                "a group is removed, and its pods end with their Ray",
                removed(true),
            )
        },
    ]
}

/// People let the first group have so many replicas at the most.
fn lower(cluster: &mut Value, max: i64) {
    cluster["spec"]["workerGroupSpecs"][0]["maxReplicas"] = json!(max);
}

fn remove_large(cluster: &mut Value) {
    let groups = cluster["spec"]["workerGroupSpecs"].as_array_mut().unwrap();
    groups.retain(|group| group["groupName"] != "large");
}

fn tell(told: &Told, fate: impl Fn(usize) -> Fate) -> Run {
    let mut fate = |number| fate(number);
    let mut run = Run::new(told.story.clone(), &mut fate);
    if let Some((at, change)) = told.edit {
        run.pass(at, &mut fate);
        edit(&mut run.world, change);
    }
    run.pass(told.lasts_s, &mut fate);
    run.settle(&mut fate);
    run
}

/// Tells each story once for each of its calls and each of these fates, which that call has; in `make test`
/// once for each call, whose fates take turns.
fn at_every_call(fates: &[Fate], check: impl Fn(&Run, &Run, &str, &'static str)) {
    for told in stories() {
        let whole = tell(&told, |_| Fate::Done);
        for (number, kind) in whole.kinds().into_iter().enumerate() {
            let step = part_of(1, fates.len());
            for fate in fates.iter().skip(number % step).step_by(step) {
                let run = tell(&told, |at| if at == number { *fate } else { Fate::Done });
                let what = format!("{}: {fate:?} call {number}, {kind}", told.name);
                check(&run, &whole, &what, kind);
            }
        }
    }
}

#[test]
fn stories_end_as_they_should() {
    let mut ends = String::new();
    for told in stories() {
        let run = tell(&told, |_| Fate::Done);
        let (name, kinds, outcome) = (told.name, run.kinds().join(", "), run.outcome());
        writeln!(ends, "{name}: {kinds}\n  {outcome:#}").unwrap();
    }
    insta::assert_snapshot!(ends);
}

/// Killed before or after any call, and started again without memory: the same end.
#[test]
fn a_crash_at_any_point_changes_nothing_in_the_end() {
    let fates = [Fate::KilledBefore, Fate::KilledAfter];
    at_every_call(&fates, |run, whole, what, _| {
        assert_eq!(run.outcome(), whole.outcome(), "{what}:\n{}", run.log());
    });
}

/// Once failed or unanswered, every call is tried again: the same end.
#[test]
fn a_failure_at_any_point_changes_nothing_in_the_end() {
    let fates = [
        Fate::Fails(Answer::Conflict),
        Fate::Fails(Answer::InternalError),
        Fate::Lost,
    ];
    at_every_call(&fates, |run, whole, what, kind| {
        assert_eq!(run.waiting(), 0, "{what}:\n{}", run.log());
        if kind != "resize-pod" {
            // A pod that could not be resized is passed over for a new one.
            assert_eq!(run.outcome(), whole.outcome(), "{what}:\n{}", run.log());
        }
    });
}

/// A story in which nothing fails.
fn run(story: Story) -> Run {
    Run::new(story, &mut |_| Fate::Done)
}

/// A group that is there and cannot be read is not one that was removed.
#[test]
fn pods_of_a_group_that_cannot_be_read_are_left_alone() {
    let mut run = run(Story {
        groups: vec![group("large", 2, 0, 6), group("small", 1, 0, 6)],
        jobs: [jobs(2, 0.0, 2.0, FOR_EVER), jobs(1, 200.0, 1.0, FOR_EVER)].concat(),
        ..Story::default()
    });
    run.settle(&mut |_| Fate::Done);
    let changes = |run: &Run| -> Vec<Effect> {
        let mut snapshot = run.snapshot();
        let mut cluster = run.world.cluster.object().clone();
        cluster["spec"]["workerGroupSpecs"][0]["rayStartParams"]["num-cpus"] = json!("many");
        snapshot.ray_cluster = cluster.into();
        let chains = run.first_round(&snapshot).chains.into_iter();
        let calls = chains.filter_map(|chain| chain.next());
        let reports = |call: &Effect| matches!(call, Effect::Report(_) | Effect::PutError(_));
        calls.filter(|call| !reports(call)).collect()
    };
    assert_eq!(changes(&run), []);
    while run.waiting() == 0 || run.snapshot().gcs.pending_resource_requests.is_empty() {
        run.pass(0.1, &mut |_| Fate::KilledBefore);
    }
    let changes = changes(&run);
    let [Effect::PatchCluster(patch)] = &changes[..] else {
        panic!("other groups go on: {changes:?}");
    };
    let groups = patch.changes.iter().map(|change| &*change.group);
    assert_eq!(groups.collect::<Vec<_>>(), ["small"]);
}

/// Without a group by which KubeRay would delete them, pods of a group that was removed stay, and
/// it is said how to be rid of them.
#[test]
fn what_kuberay_would_not_delete_is_named() {
    let slices = SceneGroup {
        hosts: 2,
        ..group("slices", 1, 0, 3)
    };
    let mut run = run(Story {
        groups: vec![group("large", 2, 0, 6), slices],
        jobs: jobs(1, 0.0, 2.0, 20.0),
        pods_exit: true,
        ..Story::default()
    });
    run.wait(15.0);
    edit(&mut run.world, remove_large);
    run.settle(&mut |_| Fate::Done);
    let text = run.first_round(&run.snapshot()).plan.to_string();
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
        let mut settings = RoundSettings::default();
        settings.plan.pending_idle_timeout_s = pending;
        let mut run = run(Story {
            groups: vec![SceneGroup {
                max_cores: limit,
                ..group("cpu", 2, 1, 8)
            }],
            jobs: jobs(20, 0.0, 1.0, FOR_EVER),
            nodes: vec![4, 3],
            knows_nodes,
            settings,
            ..Story::default()
        });
        run.wait(25.0);
        let made = run.made.clone();
        run.wait(30.0);
        let (log, case) = (run.log(), (knows_nodes, limit, pending));
        assert_eq!(run.made, made, "{case:?}:\n{log}");
    }
}

/// A task that needs a pod to grow, where no node has the room: a new pod stays as small as the
/// one before it, so it is not tried again and again.
#[test]
fn pods_that_cannot_grow_are_not_made_again_and_again() {
    for (knows_nodes, hosts) in [(true, 1), (false, 1), (true, 2)] {
        let mut run = run(Story {
            groups: vec![SceneGroup {
                max_cores: Some(4),
                hosts,
                ..group("cpu", 2, 0, 1)
            }],
            jobs: jobs(1, 0.0, 4.0, FOR_EVER),
            nodes: vec![3, 3, 3],
            knows_nodes,
            ..Story::default()
        });
        run.wait(600.0);
        // At once, and after one minute, two, and four.
        let (made, hosts) = (run.made.len(), usize::try_from(hosts).unwrap());
        let log = run.log();
        assert!(
            (2 * hosts..=5 * hosts).contains(&made),
            "{made} pods:\n{log}"
        );
        assert!(run.said.contains("could not grow"), "{}", run.said);
    }
}

/// Three workers that are busy for ever, of which the group may have one from now on.
fn above_its_maximum(change: impl FnOnce(&mut RoundSettings)) -> Run {
    let mut story = Story {
        groups: vec![group("cpu", 1, 0, 3)],
        jobs: jobs(3, 0.0, 1.0, FOR_EVER),
        ..Story::default()
    };
    change(&mut story.settings);
    let mut run = run(story);
    run.settle(&mut |_| Fate::Done);
    assert_eq!(run.workers(), 3);
    // Work is stopped here that has no more time by these settings.
    run.checker = None;
    edit(&mut run.world, |cluster| lower(cluster, 1));
    run
}

/// The drains so far.
fn drains(run: &Run) -> Vec<DrainKind> {
    let drains = run.calls.iter().filter_map(|call| match call {
        Effect::Drain(drain) => Some(drain.kind),
        _ => None,
    });
    drains.collect()
}

/// How many Ray nodes were stopped, and their work with them.
fn stops(run: &Run) -> usize {
    let drains = drains(run).into_iter();
    drains.filter(|kind| *kind == DrainKind::Stop).count()
}

#[test]
fn what_is_above_a_maximum_has_ten_minutes_to_finish() {
    let mut run = above_its_maximum(|_| {});
    let lowered_ms = run.world.now.epoch_seconds() * 1000.0;
    run.wait(599.0);
    assert_eq!(run.workers(), 3, "they work");
    let [DrainKind::Until(one), DrainKind::Until(other)] = drains(&run)[..] else {
        panic!("{:?}", drains(&run));
    };
    for told_ms in [one, other] {
        #[expect(clippy::cast_precision_loss, reason = "milliseconds since 1970")]
        let left_s = (told_ms as f64 - lowered_ms) / 1000.0;
        assert!((600.0..660.0).contains(&left_s), "{left_s}");
    }
    run.wait(61.0);
    assert_eq!(run.workers(), 1);
    assert_eq!(run.world.groups[1].replicas, 1);
    assert_eq!(stops(&run), 2, "once each");
    let calls = run.calls.len();
    run.wait(60.0);
    assert_eq!(run.calls.len(), calls, "and all is over");
}

#[test]
fn the_time_of_what_is_above_a_maximum_outlasts_failures() {
    let mut run = above_its_maximum(|settings| settings.plan.drain_timeout_s = 60.0);
    run.pass(300.0, &mut |call| {
        if call % 3 == 0 {
            Fate::Done
        } else {
            Fate::Fails(Answer::InternalError)
        }
    });
    assert_eq!(run.workers(), 1, "{:?}", run.kinds());
}

#[test]
fn without_time_what_is_above_a_maximum_is_stopped_at_once() {
    let at_once = |settings: &mut RoundSettings| settings.plan.drain_timeout_s = 0.0;
    let as_ray = |settings: &mut RoundSettings| settings.plan.strategy = Strategy::Ray;
    for change in [at_once, as_ray] {
        let mut run = above_its_maximum(change);
        run.wait(15.0);
        assert_eq!(run.workers(), 1, "{:?}", run.kinds());
    }
}

#[test]
fn nothing_is_stopped_once_the_maximum_is_raised_again() {
    let mut run = above_its_maximum(|settings| settings.plan.drain_timeout_s = 60.0);
    run.wait(30.0);
    edit(&mut run.world, |cluster| lower(cluster, 2));
    run.wait(5.0);
    edit(&mut run.world, |cluster| lower(cluster, 3));
    run.wait(100.0);
    assert_eq!(run.workers(), 3, "{:?}", run.kinds());
    assert_eq!(stops(&run), 0);
}

#[test]
fn a_cluster_grows_no_faster_than_its_policy_says() {
    let mut settings = RoundSettings::default();
    settings.plan.scale_up = Some(ScaleUp {
        max_pods: 4,
        per_s: 30,
    });
    let mut run = run(Story {
        groups: vec![group("cpu", 1, 0, 12)],
        jobs: jobs(12, 0.0, 1.0, FOR_EVER),
        settings,
        ..Story::default()
    });
    let mut jumps = Vec::new();
    for second in 0..120_i32 {
        let before = run.made.len();
        run.wait(1.0);
        if run.made.len() > before {
            jumps.push((second, run.made.len() - before));
        }
    }
    let counts: Vec<usize> = jumps.iter().map(|(_, count)| *count).collect();
    assert_eq!(counts, [4, 4, 4], "{jumps:?}:\n{}", run.log());
    let between: Vec<i32> = jumps.windows(2).map(|two| two[1].0 - two[0].0).collect();
    assert!(
        between.iter().all(|seconds| (30..35).contains(seconds)),
        "{jumps:?}"
    );
}

#[test]
fn of_a_refused_jump_a_part_is_asked_for() {
    let mut run = run(Story {
        groups: vec![group("cpu", 1, 0, 12)],
        jobs: jobs(8, 0.0, 1.0, FOR_EVER),
        ..Story::default()
    });
    // The patches of the RayCluster are the only calls until there are pods.
    let mut fate = |call| {
        if call < 2 {
            Fate::Fails(Answer::Invalid)
        } else {
            Fate::Done
        }
    };
    run.pass(120.0, &mut fate);
    let asked = run.calls.iter().filter_map(|call| match call {
        Effect::PatchCluster(patch) => Some(patch.changes[0].then),
        _ => None,
    });
    let asked: Vec<i64> = asked.collect();
    assert_eq!(asked[..3], [8, 4, 2], "{}", run.log());
    assert_eq!(run.workers(), 8, "{}", run.log());
}
