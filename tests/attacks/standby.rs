//! The central replica is lost, in each way in which a process can be lost: the sidecar that stands by scales the
//! cluster, gives it back when the replica is there again, and at no time do both write.
//!
//! Both are real processes. Each reaches the played API server by a link of its own, which can be cut, and which
//! checks every write.

use std::fs::File;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{Method, StatusCode};
use axum::response::Response;
use futures_util::StreamExt as _;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tokio::process::{Child, Command};
use tokio::sync::watch;
use tower::ServiceExt as _;

use super::events::{cluster_path, gcs, put_cluster, replicas, state, until, with_reason};
use crate::played_api::{PlayedApi, status};

const LEASE: &str = "/apis/coordination.k8s.io/v1/namespaces/rayfit-system/leases/rayfit-heartbeat";

/// A process's way to the API server.
#[derive(Clone)]
struct Link {
    /// Whose it is, as the hand-over record begins.
    who: &'static str,
    router: Router,
    api: PlayedApi,
    namespace: &'static str,
    cut: watch::Sender<bool>,
    /// Whether lists and watches of pods get no answer.
    holds_pods: watch::Sender<bool>,
    /// Whether the heartbeat may not be read.
    forbids_heartbeat: Arc<AtomicBool>,
    noted: Arc<Mutex<Noted>>,
    /// One write at a time, of both processes, so that the record is known in which it arrives.
    turn: Arc<tokio::sync::Mutex<()>>,
}

#[derive(Default)]
struct Noted {
    heartbeat_reads: usize,
    writes: Vec<String>,
    /// Writes of a process that the record did not name.
    faults: Vec<String>,
}

fn record(cluster: Option<&Value>) -> String {
    let record = cluster.map(|cluster| &cluster["metadata"]["annotations"]["rayfit.dev/scaled-by"]);
    record
        .and_then(Value::as_str)
        .unwrap_or_default()
        .to_owned()
}

impl Link {
    async fn open(&self) {
        let mut cut = self.cut.subscribe();
        let _ = cut.wait_for(|cut| !cut).await;
    }

    fn record(&self) -> String {
        record(self.api.get(&cluster_path(self.namespace)).as_ref())
    }

    async fn pass(self, request: Request) -> Response {
        self.open().await;
        let (method, path) = (request.method().clone(), request.uri().path().to_owned());
        if path == LEASE && method == Method::GET {
            self.noted.lock().unwrap().heartbeat_reads += 1;
            if self.forbids_heartbeat.load(Ordering::Acquire) {
                return status(StatusCode::FORBIDDEN, "Forbidden");
            }
        }
        if path.ends_with("/pods") && method == Method::GET {
            let mut held = self.holds_pods.subscribe();
            let _ = held.wait_for(|held| !held).await;
        }
        let response = if method == Method::PATCH && !path.contains("/events") {
            let _turn = self.turn.lock().await;
            let before = self.record();
            let response = self.router.clone().oneshot(request).await.unwrap();
            let is_record = self.record() != before;
            if response.status().is_success() && !path.ends_with("/pods/ray-head") {
                let mut noted = self.noted.lock().unwrap();
                noted.writes.push(format!("{path} as {before}"));
                if !is_record && !before.starts_with(self.who) {
                    let fault = format!("{} wrote {path}, and the record said {before}", self.who);
                    noted.faults.push(fault);
                }
            }
            response
        } else {
            self.router.clone().oneshot(request).await.unwrap()
        };
        let (parts, body) = response.into_parts();
        // What a watch has to say does not arrive either.
        let frames = body.into_data_stream().then(move |frame| {
            let link = self.clone();
            async move {
                link.open().await;
                frame
            }
        });
        Response::from_parts(parts, Body::from_stream(frames))
    }
}

async fn answer(State(link): State<Link>, request: Request) -> Response {
    link.pass(request).await
}

/// A kubeconfig that leads over a link.
async fn kubeconfig(link: &Link) -> PathBuf {
    let router = Router::new().fallback(answer).with_state(link.clone());
    let file = file(&format!("{}-{}.json", link.namespace, link.who));
    crate::client_support::kubeconfig(router, file).await
}

fn file(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("standby-{}", name.replace('/', "")))
}

struct Scene {
    api: PlayedApi,
    namespace: &'static str,
    central: Link,
    sidecar: Link,
    replicas: usize,
}

impl Scene {
    fn new(namespace: &'static str, gcs_port: u16) -> Self {
        let api = PlayedApi::default();
        put_cluster(&api, namespace, gcs_port);
        api.change(&cluster_path(namespace), |cluster| {
            cluster["metadata"]["annotations"]["rayfit.dev/standby"] = json!("rayfit-system");
        });
        let turn = Arc::<tokio::sync::Mutex<()>>::default();
        let link = |who| Link {
            who,
            router: api.router(),
            api: api.clone(),
            namespace,
            cut: watch::Sender::new(false),
            holds_pods: watch::Sender::new(false),
            forbids_heartbeat: Arc::default(),
            noted: Arc::default(),
            turn: turn.clone(),
        };
        let (central, sidecar) = (link("central"), link("sidecar/"));
        Self {
            api,
            namespace,
            central,
            sidecar,
            replicas: 0,
        }
    }

    fn spawn(&self, name: &str, mut command: Command) -> Child {
        let log = File::create(file(&format!("{}-{name}.log", self.namespace))).unwrap();
        command
            .stderr(Stdio::from(log))
            .stdout(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .unwrap()
    }

    async fn start_central(&mut self) -> Child {
        self.replicas += 1;
        let name = format!("replica-{}", self.replicas);
        let mut command = Command::new(env!("CARGO_BIN_EXE_rayfit"));
        command
            .args(["serve", "--no-webhooks", "--bind", "127.0.0.1"])
            .args(["--health-port", "0", "--log", "debug", "--replica", &name])
            .arg("--kubeconfig")
            .arg(kubeconfig(&self.central).await)
            .env_clear();
        self.spawn(&name, command)
    }

    async fn start_sidecar(&self) -> Child {
        let mut command = Command::new(env!("CARGO_BIN_EXE_rayfit"));
        command
            .args(["sidecar", "--cluster-name", "ray", "--log", "debug"])
            .args(["--cluster-namespace", self.namespace, "--kubeconfig"])
            .arg(kubeconfig(&self.sidecar).await)
            .env_clear()
            .env("RAY_HEAD_POD_NAME", "ray-head");
        self.spawn("sidecar", command)
    }

    fn record(&self) -> String {
        self.central.record()
    }

    /// Waits until the central replica has scaled the cluster once, and the sidecar stands by.
    async fn stands_by(&self) {
        until("the central replica scales it", || {
            replicas(&self.api, self.namespace) == 1 && self.record() == "central"
        })
        .await;
        until("the sidecar stands by", || self.heartbeat_reads() > 3).await;
    }

    fn heartbeat_reads(&self) -> usize {
        self.sidecar.noted.lock().unwrap().heartbeat_reads
    }
}

fn signal(child: &Child, signal: Signal) {
    let pid = i32::try_from(child.id().unwrap()).unwrap();
    kill_process(Pid::from_raw(pid).unwrap(), signal).unwrap();
}

/// How the central replica is lost.
#[derive(Clone, Copy, PartialEq)]
enum Loss {
    Killed,
    Frozen,
    CutOff,
}

async fn is_lost_and_comes_back(namespace: &'static str, loss: Loss) {
    let gcs = gcs(&[]).await;
    let mut scene = Scene::new(namespace, gcs.address().port());
    let mut central = scene.start_central().await;
    let _sidecar = scene.start_sidecar().await;
    let wants = |count| gcs.played().state = state(&[(1.0, count)]);
    wants(1);
    scene.stands_by().await;
    let written = scene.sidecar.noted.lock().unwrap().writes.clone();
    assert_eq!(written, [""; 0], "a sidecar that stands by writes nothing");

    match loss {
        Loss::Killed => central.kill().await.unwrap(),
        Loss::Frozen => signal(&central, Signal::STOP),
        Loss::CutOff => drop(scene.central.cut.send_replace(true)),
    }
    wants(3);
    until("the sidecar scales it", || {
        replicas(&scene.api, namespace) == 3
    })
    .await;
    assert!(scene.record().starts_with("sidecar/"), "{}", scene.record());

    match loss {
        Loss::Killed => central = scene.start_central().await,
        Loss::Frozen => signal(&central, Signal::CONT),
        Loss::CutOff => drop(scene.central.cut.send_replace(false)),
    }
    until("the sidecar gives it back", || scene.record() == "central").await;
    wants(5);
    until("the central replica scales it again", || {
        replicas(&scene.api, namespace) == 5
    })
    .await;
    assert_eq!(scene.record(), "central");
    for reason in ["SidecarStandsIn", "SidecarStandsBy"] {
        until(reason, || with_reason(&scene.api, namespace, reason) > 0).await;
    }
    for link in [&scene.central, &scene.sidecar] {
        let faults = link.noted.lock().unwrap().faults.clone();
        assert_eq!(faults, [""; 0]);
    }
    drop(central);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_central_replica_that_is_killed() {
    is_lost_and_comes_back("killed", Loss::Killed).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_central_replica_that_is_frozen() {
    is_lost_and_comes_back("frozen", Loss::Frozen).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_central_replica_that_is_cut_off() {
    is_lost_and_comes_back("cut-off", Loss::CutOff).await;
}

/// Somebody who writes another namespace into the RayCluster, where no Rayfit is, reaches no cluster but that one,
/// and gains nothing there: a heartbeat that nobody ever renewed proves nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_heartbeat_that_does_not_exist_is_no_reason_to_stand_in() {
    let gcs = gcs(&[]).await;
    let mut scene = Scene::new("elsewhere", gcs.address().port());
    scene.api.change(&cluster_path("elsewhere"), |cluster| {
        cluster["metadata"]["annotations"]["rayfit.dev/standby"] = json!("no-such-rayfit");
    });
    let _central = scene.start_central().await;
    let _sidecar = scene.start_sidecar().await;
    let asked = |path: &str| {
        let requests = &scene.api.objects().requests;
        requests.iter().filter(|call| call.path == path).count()
    };
    let lease = LEASE.replace("rayfit-system", "no-such-rayfit");
    // Reads over far longer than a heartbeat may be silent.
    until("the sidecar has asked often", || asked(&lease) > 8).await;
    gcs.played().state = state(&[(1.0, 2)]);
    until("the central replica scales it", || {
        replicas(&scene.api, "elsewhere") == 2
    })
    .await;
    assert_eq!(scene.record(), "central");
    let written = scene.sidecar.noted.lock().unwrap().writes.clone();
    assert_eq!(written, [""; 0]);
    assert_eq!(asked(LEASE), 0, "no heartbeat for which nobody asks");
}

/// A replica that has just started holds its shards long before a large cluster has been listed. Until then nobody but
/// the sidecar can scale, so that it has to go on.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_central_replica_that_cannot_scale_yet_is_not_there() {
    let namespace = "held-back";
    let gcs = gcs(&[]).await;
    let mut scene = Scene::new(namespace, gcs.address().port());
    let mut central = scene.start_central().await;
    let _sidecar = scene.start_sidecar().await;
    let wants = |count| gcs.played().state = state(&[(1.0, count)]);
    wants(1);
    scene.stands_by().await;
    central.kill().await.unwrap();
    wants(3);
    until("the sidecar scales it", || {
        replicas(&scene.api, namespace) == 3
    })
    .await;

    scene.central.holds_pods.send_replace(true);
    let heartbeat = scene.api.get(LEASE);
    let _central = scene.start_central().await;
    let is_held = || {
        let lease = LEASE.replace("heartbeat", "shard-0");
        let lease = scene.api.get(&lease).unwrap_or_default();
        lease["spec"]["holderIdentity"] == "replica-2"
    };
    until("the new replica holds its shards", is_held).await;
    // Far longer than the replica needs for the heartbeat, and the sidecar to hear of it.
    let reads = scene.heartbeat_reads();
    until("the sidecar has read often", || {
        scene.heartbeat_reads() > reads + 4
    })
    .await;
    assert_eq!(scene.api.get(LEASE), heartbeat, "nobody renews it");
    wants(4);
    until("the sidecar scales it", || {
        replicas(&scene.api, namespace) == 4
    })
    .await;
    assert!(scene.record().starts_with("sidecar/"), "{}", scene.record());

    scene.central.holds_pods.send_replace(false);
    until("the sidecar gives it back", || scene.record() == "central").await;
    for link in [&scene.central, &scene.sidecar] {
        let faults = link.noted.lock().unwrap().faults.clone();
        assert_eq!(faults, [""; 0]);
    }
}

/// Somebody made a Lease of the heartbeat's name, which the replicas do not see by its label.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_heartbeat_that_somebody_else_made_is_renewed_all_the_same() {
    let gcs = gcs(&[]).await;
    let mut scene = Scene::new("handmade", gcs.address().port());
    scene.api.put(
        LEASE,
        json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
            "metadata": {"name": "rayfit-heartbeat", "namespace": "rayfit-system"},
            "spec": {"holderIdentity": "somebody"}}),
    );
    let _central = scene.start_central().await;
    until("it is renewed", || {
        let lease = scene.api.get(LEASE).unwrap();
        lease["spec"]["holderIdentity"] == "replica-1"
            && lease["metadata"]["labels"]["rayfit.dev/lease"] == "heartbeat"
    })
    .await;
}

/// What cannot be read is no reason to stand in, and the log says what to do about it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_heartbeat_that_may_not_be_read_is_no_reason_to_stand_in() {
    let gcs = gcs(&[]).await;
    let mut scene = Scene::new("forbidden", gcs.address().port());
    scene
        .sidecar
        .forbids_heartbeat
        .store(true, Ordering::Release);
    let mut central = scene.start_central().await;
    gcs.played().state = state(&[(1.0, 1)]);
    until("the central replica scales it", || {
        replicas(&scene.api, "forbidden") == 1 && scene.record() == "central"
    })
    .await;
    central.kill().await.unwrap();
    let _sidecar = scene.start_sidecar().await;
    until("the sidecar has asked often", || {
        scene.heartbeat_reads() > 6
    })
    .await;
    assert_eq!(scene.record(), "central");
    let said = |text: &str| {
        let log = std::fs::read_to_string(file("forbidden-sidecar.log")).unwrap();
        log.matches(text).count()
    };
    assert_eq!(said("it may not be read in namespace rayfit-system"), 1);
    // A value that names no namespace is never asked for.
    scene.api.change(&cluster_path("forbidden"), |cluster| {
        cluster["metadata"]["annotations"]["rayfit.dev/standby"] = json!("Rayfit/..");
    });
    until("the sidecar says so", || {
        said("is not the name of a namespace") > 0
    })
    .await;
    let looks = || {
        let (path, objects) = (cluster_path("forbidden"), scene.api.objects());
        let requests = objects.requests.iter();
        requests.filter(|call| call.path == path).count()
    };
    let before = looks();
    until("it has read the RayCluster again", || looks() > before + 1).await;
    let reads = scene.heartbeat_reads();
    scene.api.change(&cluster_path("forbidden"), |cluster| {
        cluster["metadata"]["annotations"]["rayfit.dev/standby"] = json!("rayfit-system");
    });
    until("it is asked for again", || {
        scene.heartbeat_reads() > reads + 1
    })
    .await;
    assert_eq!(said("is not the name of a namespace"), 1, "once");
}
