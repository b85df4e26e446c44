//! New pods as an attack: whoever may create pods can label one as a worker, and name any RayCluster as its owner; and
//! who may change a RayCluster can write anything into its annotations.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::http::{Request, Response, StatusCode, header};
use kube::client::ClientBuilder;
use rayfit::admission::AdmissionLimits;
use rayfit::apiserver::{ApiServer, Informers, Watches};
use rayfit::server::home_cluster::HomeCluster;
use rayfit::telemetry::logs::{self, LogFormat};
use serde_json::{Value, json};
use tokio::sync::OnceCell;
use tokio::time::Instant;
use tracing::subscriber::NoSubscriber;

use crate::played_api::{Fault, PlayedApi};
use crate::review_support;
use review_support::{
    SECRET, Server, cluster, create, create_pod, made, owner, post, with_owners, worker,
};

const DEMO: &str = "/apis/ray.io/v1/namespaces/ml/rayclusters/demo";

fn now() -> f64 {
    let now = std::time::SystemTime::now();
    let since = now.duration_since(std::time::UNIX_EPOCH).unwrap();
    since.as_secs_f64()
}

fn serving(api: ApiServer) -> Server {
    let watches = Watches::default();
    let informers = Informers::new(api.client.clone(), watches.clone());
    let owners = HomeCluster {
        kubeconfig: None,
        watches,
        reached: OnceCell::new_with(Some((api, informers))),
    };
    with_owners(Arc::new(owners), AdmissionLimits::default())
}

fn played(cores: i64, gibibytes: i64) -> (PlayedApi, Server) {
    let api = PlayedApi::default();
    api.put(DEMO, json!({"metadata": owner(cores, gibibytes, now())}));
    let server = serving(api.server());
    (api, server)
}

async fn resources(server: &Server, pod: &Value) -> Value {
    let response = server.ask("/mutate", &create_pod(pod, "ml")).await;
    made(pod, &response)
}

fn as_made() -> Value {
    worker()["spec"]["containers"][0]["resources"].clone()
}

fn with_size(cpu: &str, memory: &str) -> Value {
    let size = json!({"cpu": cpu, "memory": memory});
    json!({"requests": size, "limits": size})
}

/// The annotation is anybody's who may change the RayCluster: it gives no more than resizes of its pods would.
#[tokio::test(start_paused = true)]
async fn an_annotation_gives_a_pod_no_more_than_it_may_grow_to() {
    let (api, server) = played(3, 4);
    let got = resources(&server, &worker()).await;
    assert_eq!(got, with_size("3", &(4_i64 << 30).to_string()));
    api.put(
        DEMO,
        json!({"metadata": owner(1_000_000, 1_000_000, now())}),
    );
    let got = resources(&server, &worker()).await;
    assert_eq!(got, with_size("4", &(8_i64 << 30).to_string()));
    let annotation = "rayfit.dev/initial-sizes";
    let until = |seconds: f64| {
        #[expect(clippy::cast_possible_truncation, reason = "whole seconds")]
        let until = (now() + seconds) as i64;
        json!({"small": {"cpu": "3", "memory": "4Gi", "until": until}}).to_string()
    };
    for text in [
        "[".repeat(200_000),
        until(1e8),
        until(60.0).replace("\"3\"", "\"-3\""),
        until(60.0).replace("\"3\"", "\"9e400\""),
        until(60.0).replace("\"3\"", "3e400"),
        until(60.0).replace("small", &"x".repeat(200_000)),
    ] {
        api.change(DEMO, |cluster| {
            cluster["metadata"]["annotations"][annotation] = text.clone().into();
        });
        assert_eq!(resources(&server, &worker()).await, as_made(), "{text:.80}");
    }
}

/// The owner of a pod becomes a part of the path of a request under our account.
#[tokio::test(start_paused = true)]
async fn an_owner_reference_asks_for_nothing_but_a_ray_cluster_of_the_same_namespace() {
    let (api, server) = played(3, 4);
    let other = "/apis/ray.io/v1/namespaces/other/rayclusters/demo";
    api.put(other, json!({"metadata": owner(3, 4, now())}));
    let api_requests = || api.objects().requests.clone();
    for name in [
        "../../../../../../api/v1/namespaces/rayfit-system/secrets/rayfit-self-managed-certs",
        "../../other/rayclusters/demo",
        "..%2f..%2fother%2frayclusters%2fdemo",
        "demo?watch=true",
        "demo/status",
        "demo#",
        ".",
        "",
    ] {
        let mut pod = worker();
        pod["metadata"]["ownerReferences"][0]["name"] = name.into();
        assert_eq!(resources(&server, &pod).await, as_made(), "{name}");
        for namespace in ["ml/rayclusters/x", "../ml", ""] {
            let review = create_pod(&worker(), namespace);
            let response = server.ask("/mutate", &review).await;
            assert_eq!(made(&worker(), &response), as_made(), "{namespace}");
        }
    }
    assert_eq!(api_requests(), [], "nothing is asked for");
    // A pod says itself which namespace it is in, and only the request's counts.
    let mut pod = worker();
    pod["metadata"]["namespace"] = "other".into();
    resources(&server, &pod).await;
    let paths: Vec<String> = api_requests().into_iter().map(|call| call.path).collect();
    assert_eq!(paths, [DEMO]);
}

/// Metadata that is too large, and pods that are costly to read, cost their owner the size, and nobody else anything.
#[tokio::test(start_paused = true)]
async fn what_is_too_large_stays_as_it_is_made() {
    let (api, server) = played(3, 4);
    let managed = |bytes: usize| {
        let entry = json!({"manager": "x".repeat(1000), "fieldsV1": {}});
        vec![entry; bytes / 1000]
    };
    for (bytes, is_read) in [(900 << 10, true), (1100 << 10, false)] {
        api.change(DEMO, |cluster| {
            cluster["metadata"]["managedFields"] = managed(bytes).into();
        });
        let got = resources(&server, &worker()).await;
        assert_eq!(got != as_made(), is_read, "{bytes} bytes");
    }
    api.change(DEMO, |cluster| {
        cluster["metadata"]["managedFields"] = json!([]);
    });
    for (part, open, close) in [("[[]],", "[", "0]"), ("[", "", ""), ("{\"a\":", "", "")] {
        let text = format!("{open}{}{close}", part.repeat(1 << 20));
        let review = create_pod(&worker(), "ml").to_string();
        let review = review.replace("\"containers\":", &format!("\"x\":{text},\"containers\":"));
        let (status, body) = server.send(post("/mutate", review)).await;
        // What fails is a failed call, after which the API server makes the pod as it is.
        assert!(
            status.is_client_error() || status == StatusCode::OK,
            "{status}"
        );
        assert!(body.len() < 1000);
    }
    assert_ne!(resources(&server, &worker()).await, as_made(), "as before");
}

/// Without the right to read RayClusters, or without an answer, pods are made as ever, and all else is served.
#[tokio::test(start_paused = true)]
async fn without_the_right_or_without_an_answer_nothing_stands_still() {
    let (api, server) = played(3, 4);
    let mut of_none = worker();
    of_none["metadata"]["ownerReferences"][0]["name"] = "none".into();
    assert_eq!(resources(&server, &of_none).await, as_made());
    let unread = |server: &Server| {
        let series = "rayfit_admission_requests_total{webhook=\"mutate\",kind=\"other\",operation=\"CREATE\",outcome=\"owner_unread\"}";
        server.metric(series)
    };
    assert_eq!(unread(&server), None, "that there is none is an answer");
    api.faults(|call| (call.name == "demo").then_some(Fault::Status(403, None)));
    assert_eq!(resources(&server, &worker()).await, as_made());
    assert_eq!(unread(&server), Some("1".to_owned()));
    let silent = tower::service_fn(|_: Request<kube::client::Body>| {
        std::future::pending::<Result<Response<axum::body::Body>, std::io::Error>>()
    });
    let silent = serving(ApiServer::of_builder(ClientBuilder::new(
        silent,
        "rayfit-system",
    )));
    let (pod, start) = (worker(), Instant::now());
    let pods = async {
        (0..40)
            .map(|_| resources(&silent, &pod))
            .collect::<Vec<_>>()
    };
    let pods = futures_util::future::join_all(pods.await);
    let judged = async {
        let response = silent.ask("/validate", &create(&cluster())).await;
        assert_eq!(response["allowed"], true);
        start.elapsed()
    };
    let (pods, took) = tokio::join!(pods, judged);
    assert_eq!(took, Duration::ZERO);
    assert!(pods.iter().all(|got| *got == as_made()));
    // Each waited a second, and all of them the same one; timers count whole milliseconds.
    assert_eq!(start.elapsed().as_secs(), 1);
}

/// Of a RayCluster only its metadata is asked for, as it is stored now: no spec, in which secrets can stand.
#[tokio::test(start_paused = true)]
async fn nothing_but_the_metadata_as_it_is_now_is_asked_for() {
    let asked = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&asked);
    let service = tower::service_fn(move |request: Request<kube::client::Body>| {
        let accept = request.headers()[header::ACCEPT].to_str().unwrap();
        let line = format!("{} {} {accept}", request.method(), request.uri());
        seen.lock().unwrap().push(line);
        let body = json!({"metadata": owner(3, 4, now())}).to_string();
        async move { Ok::<_, std::io::Error>(Response::new(axum::body::Body::from(body))) }
    });
    let server = serving(ApiServer::of_builder(ClientBuilder::new(
        service,
        "rayfit-system",
    )));
    assert_ne!(resources(&server, &worker()).await, as_made());
    let accept = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
    assert_eq!(*asked.lock().unwrap(), [format!("GET {DEMO} {accept}")]);
}

/// Who may not read RayClusters any more makes pods as ever, and does not fill the log with that.
#[tokio::test(start_paused = true)]
async fn who_lost_the_right_says_so_once() {
    let log = LogLines::default();
    let lines = log.clone();
    let subscriber = logs::subscriber(LogFormat::Json, "trace", move || lines.clone()).unwrap();
    let _logged = tracing::subscriber::set_default(subscriber);
    // Where there is only one subscriber, whether a line is wanted at all is asked of the thread that comes to it first,
    // which may be another test's.
    let _second = tracing::Dispatch::new(NoSubscriber::default());
    let (api, server) = played(3, 4);
    for is_forbidden in [false, true] {
        if is_forbidden {
            api.faults(|call| (call.name == "demo").then_some(Fault::Status(403, None)));
        }
        for _ in 0..20 {
            let got = resources(&server, &worker()).await;
            assert_eq!(got == as_made(), is_forbidden, "{got}");
        }
    }
    let text = log.text();
    assert!(!text.contains(SECRET), "{text}");
    let of_right = |line: &&str| line.contains("made as their templates say");
    let said: Vec<&str> = text.lines().filter(of_right).collect();
    assert_eq!(said.len(), 1, "{text}");
    assert!(said[0].contains("HTTP 403"), "{said:?}");
}

/// What was logged, in memory.
#[derive(Clone, Default)]
struct LogLines(Arc<Mutex<Vec<u8>>>);

impl LogLines {
    fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }
}

impl std::io::Write for LogLines {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}
