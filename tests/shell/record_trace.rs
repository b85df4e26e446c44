//! `rayfit record --trace` with real Ray: what ran is in the trace, with what it asked for and for how
//! long; and with what no cluster answers.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use axum::Router;
use axum::routing::get;
use rayfit::gcs::Client;
use rayfit_core::simulate::trace::{self, Job, JobDemand, PlacementStrategy, RayHistory, Trace};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tokio::process::Command;

use crate::command::rayfit;
use crate::process_support::{PATIENCE, soon};
use crate::real_ray::{Ray, TURN};

/// No part of the workload takes longer, in seconds, however busy the machine is. A wrong unit would
/// make it a thousand times as long as it is.
const MOST_S: f64 = 240.0;

const WORKLOAD: &str = "
import ray, time
ray.init(log_to_driver=False)

@ray.remote(num_cpus=1)
def slow():
    time.sleep(2)

@ray.remote(num_cpus=0.5, memory=100 * 1024 * 1024)
def half(secret):
    time.sleep(0.5)

@ray.remote(num_cpus=0.5)
def late(done):
    time.sleep(0.3)

@ray.remote(num_cpus=0)
def submits():
    late.remote(slow.remote())

@ray.remote(num_cpus=1)
class Holder:
    def work(self):
        time.sleep(1)

ray.get([half.remote('a secret argument') for _ in range(3)])
ray.get(submits.remote())
time.sleep(4)
holder = Holder.remote()
ray.get(holder.work.remote())
time.sleep(1)
ray.kill(holder)
group = ray.util.placement_group([{'CPU': 1}, {'CPU': 0.5}], strategy='SPREAD')
inside = ray.util.scheduling_strategies.PlacementGroupSchedulingStrategy(group)
ray.get(slow.options(scheduling_strategy=inside).remote())
time.sleep(3600)
";

/// Asks until all of the workload has ended.
async fn until_ended(client: &Client) -> RayHistory {
    let is_over = |history: &RayHistory| {
        let ended = history.runs.iter().filter(|run| run.ran.is_some()).count();
        // Three halves, one that submits, one late, two slow ones, the actor and its call.
        ended == 9 && history.actor_ends.len() == 1
    };
    let mut last = None;
    let over = tokio::time::timeout(PATIENCE, async {
        loop {
            match client.history().await {
                Ok(history) if is_over(&history) => return history,
                other => last = Some(other),
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    });
    let over = over.await;
    over.unwrap_or_else(|_| panic!("the workload has not ended: {last:?}"))
}

/// An API server that knows one RayCluster and its head pod, and the kubeconfig for it.
async fn api_server() -> PathBuf {
    let size = json!({"cpu": "2", "memory": "4Gi"});
    let resources = json!({"limits": size, "requests": size});
    let template = |name| json!({"spec": {"containers": [{"name": name, "image": "ray:2.60.0", "resources": resources}]}});
    let cluster = json!({"apiVersion": "ray.io/v1", "kind": "RayCluster",
        "metadata": {"name": "demo", "namespace": "ray", "uid": "u"}, "spec": {
            "enableInTreeAutoscaling": true, "autoscalerOptions": {"version": "v2"},
            "headGroupSpec": {"rayStartParams": {"num-cpus": "0"}, "template": template("ray-head")},
            "workerGroupSpecs": [{"groupName": "cpu", "replicas": 1, "minReplicas": 1, "maxReplicas": 9,
                "rayStartParams": {}, "template": template("ray-worker")}]}});
    let pods = json!({"apiVersion": "v1", "kind": "PodList", "metadata": {}, "items": [{
        "metadata": {"name": "head", "namespace": "ray", "uid": "h",
            "labels": {"ray.io/cluster": "demo", "ray.io/node-type": "head", "ray.io/group": "headgroup"},
            "ownerReferences": [{"apiVersion": "ray.io/v1", "kind": "RayCluster", "name": "demo",
                "uid": "u", "controller": true}]},
        "spec": {"containers": [{"name": "ray-head"}]},
        "status": {"phase": "Running", "podIP": "127.0.0.1", "podIPs": [{"ip": "127.0.0.1"}]}}]});
    let answer = |value: Value| move || async move { axum::Json(value) };
    let router = Router::new()
        .route(
            "/apis/ray.io/v1/namespaces/ray/rayclusters/demo",
            get(answer(cluster)),
        )
        .route("/api/v1/namespaces/ray/pods", get(answer(pods)));
    let file = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("record-trace-kubeconfig.json");
    crate::client_support::kubeconfig(router, file).await
}

fn command(ray: &Ray, kubeconfig: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rayfit"));
    command
        .args(arguments)
        .arg("--gcs-address")
        .arg(ray.address().to_string())
        .arg("--kubeconfig")
        .arg(kubeconfig)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    command
}

fn record(ray: &Ray, kubeconfig: &Path, arguments: &[&str]) -> Command {
    let record = ["record", "--trace", "ray/demo"];
    command(ray, kubeconfig, &[&record, arguments].concat())
}

/// The jobs of a trace by name, in the order of time.
fn by_name(trace: &Trace) -> BTreeMap<&str, Vec<&Job>> {
    let mut jobs: BTreeMap<&str, Vec<&Job>> = BTreeMap::new();
    for job in &trace.jobs {
        jobs.entry(&job.name).or_default().push(job);
    }
    jobs
}

fn amount(job: &Job, resource: &str) -> f64 {
    job.demand.total(resource)
}

#[tokio::test]
async fn what_ran_is_recorded() {
    let _turn = TURN.lock().await;
    let ray = Ray::head(&[]);
    let _driver = ray.driver(WORKLOAD);
    until_ended(&ray.client()).await;
    let kubeconfig = api_server().await;
    let output = record(&ray, &kubeconfig, &["--for", "1s"])
        .output()
        .await
        .unwrap();
    let (text, errors) = (
        String::from_utf8(output.stdout).unwrap(),
        String::from_utf8(output.stderr).unwrap(),
    );
    assert!(output.status.success(), "{errors}");
    assert!(!text.contains("secret"), "no arguments: {text}");
    let trace = trace::read(&text, "").unwrap();
    assert_eq!(trace.name, "demo");
    check(&trace);

    // A live cluster can be recorded and searched at once.
    let mut command = command(&ray, &kubeconfig, &["recommend", "ray/demo"]);
    command.args(["--for", "1s", "--simulations", "3", "-o", "json"]);
    let output = command.output().await.unwrap();
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(
        (&found["jobs"], &found["rayCluster"]),
        (&json!(8), &json!("ray/demo"))
    );

    // The same without names, ended by who records.
    let mut child = record(
        &ray,
        &kubeconfig,
        &["--for", "1h", "--interval", "1s", "--hash-names"],
    )
    .spawn()
    .unwrap();
    let pid = Pid::from_raw(child.id().unwrap().try_into().unwrap()).unwrap();
    soon("it has asked once", async {
        while !awaits_interrupt(pid) {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
    .await;
    kill_process(pid, Signal::INT).unwrap();
    assert!(child.wait().await.unwrap().success());
    let output = child.wait_with_output().await.unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(!text.contains("half") && !text.contains("demo"), "{text}");
    let hashed = trace::read(&text, "").unwrap();
    assert_eq!(hashed.jobs.len(), trace.jobs.len());
}

/// A process has said what is to happen at an interrupt: until then it would just end.
fn awaits_interrupt(pid: Pid) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{}/status", pid.as_raw_nonzero()));
    let status = status.unwrap_or_default();
    let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
    let caught = caught.map_or(0, |mask| u64::from_str_radix(mask.trim(), 16).unwrap());
    caught & (1 << (Signal::INT.as_raw() - 1)) != 0
}

/// The trace has what the workload says.
fn check(trace: &Trace) {
    let jobs = by_name(trace);
    let within = |found: f64, least: f64, most: f64| {
        assert!((least..most).contains(&found), "{found}: {trace:?}");
    };
    let halves = &jobs["half"];
    assert_eq!(halves.len(), 3, "{trace:?}");
    for half in halves {
        within(half.seconds, 0.5, MOST_S);
        within(amount(half, "CPU"), 0.4999, 0.5001);
        within(amount(half, "memory"), 104_857_599.0, 104_857_601.0);
    }
    let (slow, late) = (jobs["slow"][0], jobs["late"][0]);
    within(slow.seconds, 2.0, MOST_S);
    within(amount(slow, "CPU"), 0.9999, 1.0001);
    within(late.seconds, 0.3, MOST_S);
    within(late.at - slow.at, 2.0, MOST_S);
    let parents = |job: &Job| -> Vec<&str> {
        let parents = job.after.iter();
        parents.map(|at| trace.jobs[*at].name.as_str()).collect()
    };
    assert_eq!(
        parents(late),
        ["submits"],
        "that had ended before it was ready"
    );
    let holder = jobs["Holder"][0];
    assert!(matches!(holder.demand, JobDemand::Actor(_)), "{holder:?}");
    within(holder.seconds, 2.0, MOST_S);
    within(amount(holder, "CPU"), 0.9999, 1.0001);
    let is_group = |job: &&Job| matches!(job.demand, JobDemand::PlacementGroup { .. });
    let group = trace.jobs.iter().find(is_group).unwrap();
    within(group.seconds, 2.0, MOST_S);
    let JobDemand::PlacementGroup { strategy, bundles } = &group.demand else {
        unreachable!()
    };
    assert_eq!((*strategy, bundles.len()), (PlacementStrategy::Spread, 2));
    within(amount(group, "CPU"), 1.4999, 1.5001);
    assert_eq!(trace.jobs.len(), 8, "{trace:?}");
}

#[test]
fn mistakes_are_reported_with_what_to_write() {
    for (arguments, says) in [
        (
            vec!["record", "--trace", "ray/demo", "--for", "soon"],
            "such as 90s or 1h",
        ),
        (vec!["record", "ray/demo", "--for", "1h"], "--trace"),
        (
            vec!["record", "ray/demo", "--hash-names"],
            "--hash-names goes with --trace",
        ),
        (
            vec!["record", "--trace", "ray/demo", "-o", "json"],
            "cannot be used with",
        ),
        (
            vec!["record", "--trace", "ray/demo", "--kubeconfig", "/nowhere"],
            "/nowhere",
        ),
    ] {
        let run = rayfit(&arguments);
        assert_eq!((run.code, run.out.as_str()), (2, ""), "{arguments:?}");
        assert!(run.err.contains(says), "{arguments:?}: {}", run.err);
    }
}
