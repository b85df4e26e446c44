//! What the simulator does on the scripts that are played with real Ray, too.
//!
//! The Go test `tests/e2e/agrees` plays `tests/fixtures/simulate/agrees/NAME.jsonl` in the lab, and
//! compares what is done there with the events in `NAME.events`. Here the simulator is held to the same
//! files. `RAYFIT_EVENTS=write cargo test --test core simulate_agrees` writes them.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::PathBuf;

use rayfit_core::policy::settings::ReconcileSettings;
use rayfit_core::ray::resource::Amounts;
use rayfit_core::reconcile::RoundSettings;
use rayfit_core::simulate::moment::Moment;
use rayfit_core::simulate::ray::jobs::JobState;
use rayfit_core::simulate::settings::WorldSettings;
use rayfit_core::simulate::world::World;

use crate::faults::neighbours::{self, GateRate};
use crate::faults::plan::FaultPlan;
use crate::faults::scene::SceneJob;
use crate::faults::trial::{Staging, watched};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::settings::setting;

/// The Kubernetes nodes of the lab.
const NODES: u32 = 2;

/// What holds for all scripts, here and in the lab.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Settings {
    node_cores: i64,
    keep_small_seconds: u32,
    shrink_after_seconds: u32,
    reconnect_seconds: f64,
}

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/simulate/agrees")
}

/// How the lab's world is: the nodes are there, and none comes.
fn staging(plan: &FaultPlan, settings: &Settings) -> Staging {
    assert_eq!(plan.scene.settings.node_cores, settings.node_cores);
    let mut world: WorldSettings = plan.scene.world();
    for pool in &mut world.pools {
        (pool.min, pool.max) = (NODES, NODES);
    }
    let reconciler = RoundSettings::of(&ReconcileSettings {
        written: serde_json::from_value(json!({"inPlace": {
            "keepSmallSeconds": settings.keep_small_seconds,
            "shrinkAfterSeconds": settings.shrink_after_seconds,
        }}))
        .unwrap(),
        ..ReconcileSettings::default()
    });
    Staging {
        reconciler,
        world,
        spares_none: false,
        reconnect_s: settings.reconnect_seconds,
    }
}

/// What was seen to be done. `tests/e2e/agrees/seen_test.go` sees the same in the lab, and says why pods
/// are called as they are.
#[derive(Default)]
struct Seen {
    jobs: Vec<SceneJob>,
    began: Option<Moment>,
    events: Vec<(f64, String)>,
    replicas: BTreeMap<String, i64>,
    listed: BTreeSet<String>,
    pods: BTreeMap<String, SeenPod>,
    names: BTreeMap<String, String>,
    count: BTreeMap<String, usize>,
    running: BTreeMap<usize, u32>,
}

/// A pod as it was last seen.
#[derive(Default)]
struct SeenPod {
    group: String,
    wanted: Option<i128>,
    actual: Option<i128>,
}

fn cores(amounts: Amounts) -> Option<i128> {
    Some(amounts.cpu?.ceil_milli() / 1000)
}

impl Seen {
    /// Adds what was done since the last look. What is so before the jobs are submitted is no event.
    fn look(&mut self, world: &World, began: Option<Moment>) {
        let known = self.events.len();
        self.look_at_cluster(world);
        self.look_at_pods(world);
        self.look_at_jobs(world);
        match began {
            None => self.events.clear(),
            Some(began) => {
                for (at, _) in &mut self.events[known..] {
                    *at = world.now.since(began);
                }
            }
        }
        self.began = began;
    }

    fn did(&mut self, what: String) {
        self.events.push((0.0, what));
    }

    fn look_at_cluster(&mut self, world: &World) {
        let groups = world.cluster.object().pointer("/spec/workerGroupSpecs");
        for group in groups.and_then(Value::as_array).into_iter().flatten() {
            let name = group["groupName"].as_str().unwrap();
            let replicas = group["replicas"].as_i64().unwrap_or_default();
            if self.replicas.insert(name.to_owned(), replicas) != Some(replicas) {
                self.did(format!("replicas {name} {replicas}"));
            }
            let listed = group.pointer("/scaleStrategy/workersToDelete");
            for pod in listed.and_then(Value::as_array).into_iter().flatten() {
                let pod = pod.as_str().unwrap();
                if self.listed.insert(pod.to_owned()) {
                    let called = self.called(name, pod);
                    self.did(format!("lists {called}"));
                }
            }
        }
    }

    fn look_at_pods(&mut self, world: &World) {
        let mut there = BTreeSet::new();
        for pod in world.workers() {
            let name = pod.name().to_owned();
            there.insert(name.clone());
            let limits = pod.object.spec.containers.iter();
            let limits = limits.map(|container| container.resources.limits);
            let now = SeenPod {
                group: pod.group().to_owned(),
                wanted: cores(limits.fold(Amounts::default(), Amounts::plus)),
                actual: cores(pod.limits()),
            };
            let Some(before) = self.pods.get(&name) else {
                self.did(format!("makes {}", now.group));
                self.pods.insert(name, now);
                continue;
            };
            let wants = (before.wanted != now.wanted).then_some(now.wanted);
            let has =
                (before.actual.is_some() && before.actual != now.actual).then_some(now.actual);
            for (word, changed) in [("wants", wants), ("has", has)] {
                if let Some(cores) = changed {
                    let called = self.called(&now.group, &name);
                    self.did(format!("{word} {called} {}", cores.unwrap_or_default()));
                }
            }
            self.pods.insert(name, now);
        }
        let gone: Vec<(String, String)> = (self.pods.iter())
            .filter(|(name, _)| !there.contains(*name))
            .map(|(name, pod)| (name.clone(), pod.group.clone()))
            .collect();
        for (name, group) in gone {
            let called = self.called(&group, &name);
            self.did(format!("gone {called}"));
            self.pods.remove(&name);
        }
    }

    /// What a pod is called: its group, and a number when it is first told of.
    fn called(&mut self, group: &str, pod: &str) -> String {
        if let Some(called) = self.names.get(pod) {
            return called.clone();
        }
        let count = self.count.entry(group.to_owned()).or_default();
        *count += 1;
        let called = format!("{group}-{count}");
        self.names.insert(pod.to_owned(), called.clone());
        called
    }

    fn look_at_jobs(&mut self, world: &World) {
        for (number, job) in world.ray.jobs.all.iter().enumerate() {
            let was_running = self.running.get(&number).copied();
            let is_running = matches!(job.state, JobState::Running(_)).then_some(job.attempt);
            if was_running == is_running {
                continue;
            }
            // Equal jobs are called by the number of the first of them.
            let alike = |other: &SceneJob| *other == self.jobs[number];
            let batch = self.jobs.iter().position(alike).unwrap_or(number) + 1;
            if was_running.is_some() {
                let is_over = job.state == JobState::Ended;
                let what = if is_over { "ends" } else { "loses" };
                self.did(format!("{what} job-{batch}"));
                self.running.remove(&number);
            }
            if let (JobState::Running(shares), Some(attempt)) = (&job.state, is_running) {
                let groups = shares.iter().map(|(node, _)| &world.ray.nodes[*node].group);
                let mut groups: Vec<&str> = groups.map(String::as_str).collect();
                groups.sort_unstable();
                self.did(format!("begins job-{batch} {}", groups.join(" ")));
                self.running.insert(number, attempt);
            }
        }
    }

    fn lines(&self) -> String {
        let mut text = String::new();
        for (at, what) in &self.events {
            writeln!(text, "{at:7.2} {what}").unwrap();
        }
        text
    }
}

fn settings() -> Settings {
    let settings = std::fs::read_to_string(folder().join("settings.json")).unwrap();
    serde_json::from_str(&settings).unwrap()
}

/// In the lab they are on the same nodes, and one controller scales both.
#[test]
fn two_tenants_of_one_world_do_what_each_does_alone() {
    let (settings, names) = (settings(), ["tenant-a", "tenant-b"]);
    let script = |name: &str| std::fs::read_to_string(folder().join(format!("{name}.jsonl")));
    let plans = names.map(|name| FaultPlan::read(&script(name).unwrap()).unwrap());
    let stagings = plans.iter().map(|plan| staging(plan, &settings)).collect();
    let mut seen = plans.clone().map(|plan| Seen {
        jobs: plan.scene.jobs,
        ..Seen::default()
    });
    let mut shown: Vec<_> = (seen.iter_mut())
        .map(|seen| |world: &World, began: Option<Moment>| seen.look(world, began))
        .collect();
    // The controller's own rate.
    let rate = GateRate {
        rate: 50,
        burst: 100,
    };
    let result = neighbours::watched(&plans, stagings, rate, &mut shown).unwrap();
    assert_eq!(result.failed, None);
    drop(shown);
    for (name, seen) in names.iter().zip(&seen) {
        let kept = std::fs::read_to_string(folder().join(format!("{name}.events"))).unwrap();
        assert_eq!(seen.lines(), kept, "{name}");
    }
}

#[test]
fn the_simulator_does_what_is_done_in_the_lab() {
    let settings = settings();
    let is_written = setting("RAYFIT_EVENTS").as_deref() == Some("write");
    let mut scripts = 0;
    for entry in std::fs::read_dir(folder()).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|end| end != "jsonl") {
            continue;
        }
        scripts += 1;
        let plan = FaultPlan::read(&std::fs::read_to_string(&path).unwrap()).unwrap();
        let mut seen = Seen {
            jobs: plan.scene.jobs.clone(),
            ..Seen::default()
        };
        let failed = watched(&plan, staging(&plan, &settings), &mut |world, began| {
            seen.look(world, began);
        });
        assert_eq!(failed.unwrap(), None, "{}", path.display());
        let events = path.with_extension("events");
        if is_written {
            std::fs::write(&events, seen.lines()).unwrap();
        }
        let kept = std::fs::read_to_string(&events).unwrap_or_default();
        assert_eq!(seen.lines(), kept, "{}", path.display());
    }
    assert!(scripts >= 12, "there are only {scripts} scripts");
}
