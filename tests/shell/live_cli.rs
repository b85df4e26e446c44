//! `rayfit status` of a live cluster: it shows what is done by whoever scales the cluster, through a proxy as well. The
//! API server is played, and the GCS does not answer.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use axum::Router;
use axum::http::header;
use axum::routing::get;
use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use tokio::process::Command;

use crate::client_support::{kubeconfig, kubeconfig_of, served};

/// An API server that has a cluster with these annotations, one worker of which is on a cordoned Kubernetes node, and a
/// RayPolicy.
fn api_server(annotations: &Value) -> Router {
    let size = json!({"cpu": "2", "memory": "4Gi"});
    let container = json!({"name": "ray", "image": "ray:2.60.0", "resources": {"limits": size, "requests": size}});
    let template = json!({"spec": {"containers": [container]}});
    let cluster = json!({"apiVersion": "ray.io/v1", "kind": "RayCluster",
        "metadata": {"name": "demo", "namespace": "ray", "uid": "u", "annotations": annotations}, "spec": {
            "enableInTreeAutoscaling": true, "autoscalerOptions": {"version": "v2"},
            "headGroupSpec": {"rayStartParams": {"num-cpus": "0"}, "template": template},
            "workerGroupSpecs": [{"groupName": "cpu", "replicas": 1, "minReplicas": 1, "maxReplicas": 9,
                "rayStartParams": {}, "template": template}]}});
    let pod = |name: &str, kind: &str, group: &str| {
        json!({
            "metadata": {"name": name, "namespace": "ray", "uid": name,
                "labels": {"ray.io/cluster": "demo", "ray.io/node-type": kind, "ray.io/group": group},
                "ownerReferences": [{"apiVersion": "ray.io/v1", "kind": "RayCluster", "name": "demo",
                    "uid": "u", "controller": true}]},
            "spec": {"containers": [container], "nodeName": "n1"},
            "status": {"phase": "Running", "podIP": "127.0.0.1", "podIPs": [{"ip": "127.0.0.1"}]}})
    };
    let pods = json!({"apiVersion": "v1", "kind": "PodList", "metadata": {},
        "items": [pod("head", "head", "headgroup"), pod("w", "worker", "cpu")]});
    let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"},
        "spec": {"unschedulable": true}});
    let policies = json!({"apiVersion": "rayfit.dev/v1alpha1", "kind": "RayPolicyList", "metadata": {},
        "items": [{"metadata": {"name": "team-a"}, "spec": {"reconcile": {"drainTimeoutSeconds": 30}}}]});
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "ray"}});
    // Packed, as the API server sends what is large.
    let answer = |value: Value| {
        get(move || async move {
            let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
            serde_json::to_writer(&mut packed, &value).unwrap();
            let headers = [
                (header::CONTENT_TYPE, "application/json"),
                (header::CONTENT_ENCODING, "gzip"),
            ];
            (headers, packed.finish().unwrap())
        })
    };
    let clusters = json!({"apiVersion": "ray.io/v1", "kind": "RayClusterList", "metadata": {}, "items": [cluster]});
    Router::new()
        .route(
            "/apis/ray.io/v1/namespaces/ray/rayclusters/demo",
            answer(cluster),
        )
        .route("/apis/ray.io/v1/rayclusters", answer(clusters))
        .route("/api/v1/pods", answer(pods.clone()))
        .route("/api/v1/namespaces/ray/pods", answer(pods))
        .route("/api/v1/namespaces/ray", answer(namespace))
        .route("/api/v1/nodes/n1", answer(node))
        .route("/apis/rayfit.dev/v1alpha1/raypolicies", answer(policies))
}

/// The file of a test's kubeconfig.
fn file(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("live-kubeconfig-{name}.json"))
}

async fn rayfit(arguments: &[&str], kubeconfig: &Path) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_rayfit"))
        .args(arguments)
        .arg("--kubeconfig")
        .arg(kubeconfig)
        .output()
        .await
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    // A rollout says with its exit code whether an object would be denied.
    assert_ne!(output.status.code(), Some(2), "{errors}");
    String::from_utf8(output.stdout).unwrap()
}

async fn status(kubeconfig: &Path) -> String {
    rayfit(
        &["status", "ray/demo", "--gcs-address", "127.0.0.1:1"],
        kubeconfig,
    )
    .await
}

/// Two CPUs and 4 GiB cost 1.20 an hour.
const PRICE: &str = "--price=cpu-hour=0.5,gib-hour=0.05";

/// Before any install an admin sees what pods have and cost, and whose GCS does not say what of it is in use.
#[tokio::test]
async fn what_could_be_saved_is_shown_in_money_or_why_nobody_knows() {
    let kubeconfig = kubeconfig(api_server(&json!({})), file("savings")).await;
    let words = |text: &str, start: &str| {
        let line = text.lines().find(|line| line.starts_with(start));
        let line = line.unwrap_or_else(|| panic!("no line {start}: {text}"));
        line.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let text = rayfit(&["rollout", "--savings", PRICE], &kubeconfig).await;
    let line = words(&text, "ray/demo ");
    let why = "1 2 CPU, 4 GiB (1.20) - - - no port can be forwarded to pod head";
    assert!(line.starts_with(&format!("ray/demo {why}")), "{line}");
    let page = rayfit(&["rollout", "--savings", PRICE, "-o=html"], &kubeconfig).await;
    assert!(page.contains(r#""perHour":1.2"#), "{page}");
    let text = rayfit(&["status", PRICE], &kubeconfig).await;
    assert!(
        words(&text, "ray ").ends_with("2 CPU, 4 GiB (1.20)"),
        "{text}"
    );
    let one = rayfit(&["status", "ray/demo", PRICE], &kubeconfig).await;
    let line = words(&one, "ray/demo ");
    assert!(
        line.starts_with("ray/demo 1 2 CPU, 4 GiB (1.20) - - - "),
        "{one}"
    );
}

#[tokio::test]
async fn what_a_sidecar_does_not_know_is_not_shown() {
    let central =
        json!({"rayfit.dev/reconcile": "central", "rayfit.dev/scaled-by": "central/rayfit-system"});
    let kubeconfig_of_central = kubeconfig(api_server(&central), file("central")).await;
    let text = status(&kubeconfig_of_central).await;
    assert!(
        text.contains("about to leave: pod w of group cpu"),
        "{text}"
    );
    assert!(!text.contains("the head's container"), "{text}");

    let sidecar = json!({"rayfit.dev/reconcile": "sidecar", "rayfit.dev/scaled-by": "sidecar/1-2"});
    let kubeconfig_of_sidecar = kubeconfig(api_server(&sidecar), file("sidecar")).await;
    let text = status(&kubeconfig_of_sidecar).await;
    assert!(!text.contains("about to leave"), "{text}");
    let why = "the head's container scales it, by the annotation rayfit.dev/settings";
    assert!(text.contains(why), "{text}");
}

/// Reads up to and with `end`.
async fn read_until(stream: &mut TcpStream, end: &[u8]) -> Vec<u8> {
    let mut read = Vec::new();
    while !read.ends_with(end) {
        read.push(stream.read_u8().await.unwrap());
    }
    read
}

/// Answers one client of an HTTP proxy as one that wants a password does.
async fn tunnel(stream: &mut TcpStream) {
    let asked = String::from_utf8(read_until(stream, b"\r\n\r\n").await).unwrap();
    assert!(asked.starts_with("CONNECT api.test:80 "), "{asked}");
    let is_password = |line: &str| {
        let header = line.split_once(": Basic ");
        header.is_some_and(|(name, password)| {
            name.eq_ignore_ascii_case("proxy-authorization") && password == "am86cEBzcw=="
        })
    };
    assert!(asked.lines().any(is_password), "{asked}");
    let agreed = b"HTTP/1.1 200 OK\r\n\r\n";
    stream.write_all(agreed).await.unwrap();
}

/// Answers one client of a SOCKS proxy (RFC 1928) that names the host and wants no password.
async fn socks(stream: &mut TcpStream) {
    let mut greeting = [0; 3];
    stream.read_exact(&mut greeting).await.unwrap();
    stream.write_all(&[5, 0]).await.unwrap();
    read_until(stream, b"api.test\0\x50").await;
    let agreed = [5, 0, 0, 1, 0, 0, 0, 0, 0, 0];
    stream.write_all(&agreed).await.unwrap();
}

/// A proxy, by which alone the name `api.test` leads anywhere.
async fn proxy(scheme: &'static str, to: SocketAddr) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            tokio::spawn(async move {
                match scheme {
                    "socks5" => socks(&mut stream).await,
                    _ => tunnel(&mut stream).await,
                }
                let mut target = TcpStream::connect(to).await.unwrap();
                // Who closes first, and how, is not what is tried.
                let _ = copy_bidirectional(&mut stream, &mut target).await;
            });
        }
    });
    address
}

#[tokio::test]
async fn an_api_server_behind_a_proxy_is_reached() {
    let annotations = json!({"rayfit.dev/reconcile": "central"});
    let to = served(api_server(&annotations)).await;
    for (scheme, password) in [("http", "jo:p%40ss@"), ("socks5", "")] {
        let proxy = proxy(scheme, to).await;
        let cluster = json!({"server": "http://api.test:80", "proxy-url": format!("{scheme}://{password}{proxy}")});
        let text = status(&kubeconfig_of(&cluster, file(scheme))).await;
        assert!(text.contains("pod w of group cpu"), "{text}");
    }
}
