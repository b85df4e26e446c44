//! What stands in the log after an API server's answers could not be read.

use axum::Router;
use axum::extract::Request;
use axum::http::{StatusCode, header};
use axum::response::IntoResponse as _;
use rustix::process::Signal;
use serde_json::{Value, json};
use tokio::net::TcpListener;

use super::process_support::{Process, soon};
use super::review_support::SECRET;

/// Answers of which none can be read, each with a password where a reader stumbles over it.
fn answer(path: &str) -> Value {
    let metadata = if path.contains("rayfit.dev") {
        json!(SECRET)
    } else {
        json!({ "name": "ray", "namespace": "ml", "labels": { "a": [SECRET] } })
    };
    json!({
        "kind": "List", "apiVersion": "v1", "metadata": { "resourceVersion": "1" },
        "items": [{
            "metadata": metadata,
            "spec": { "gcsFaultToleranceOptions": { "redisPassword": { "value": SECRET } } },
            "data": SECRET,
        }],
    })
}

async fn api_server() -> std::net::SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let router = Router::new().fallback(async |request: Request| {
        let path = request.uri().path().to_owned();
        let kind = [(header::CONTENT_TYPE, "application/json")];
        // Errors of the API server quote what they are about, too.
        let (status, body) = match path.rsplit('/').next() {
            Some("nodes") => (StatusCode::BAD_GATEWAY, format!("no JSON: {SECRET}")),
            Some("limitranges") => (StatusCode::OK, format!("[{SECRET}")),
            _ => (StatusCode::OK, answer(&path).to_string()),
        };
        (status, kind, body).into_response()
    });
    tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
    address
}

#[tokio::test]
async fn a_list_that_cannot_be_read_is_not_logged_at_any_level() {
    let server = api_server().await;
    let folder = tempfile::tempdir().unwrap();
    let kubeconfig = folder.path().join("kubeconfig");
    let config = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "test",
        "clusters": [{ "name": "test", "cluster": { "server": format!("http://{server}") } }],
        "users": [{ "name": "test", "user": { "token": SECRET } }],
        "contexts": [{ "name": "test", "context": { "cluster": "test", "user": "test" } }],
    });
    std::fs::write(&kubeconfig, config.to_string()).unwrap();
    let kubeconfig = kubeconfig.to_str().unwrap();
    let level = "trace,kube_client=trace,hyper=trace,rayfit=trace";
    let flags = [
        "--kubeconfig",
        kubeconfig,
        "--log",
        level,
        "--shutdown-delay",
        "0",
    ];
    let mut process = Process::start(&flags).await;
    let mut faults = 0;
    let mut lines = 0;
    // Until each kind of object has been said not to be readable.
    while faults < 6 {
        let line = soon("faults", process.log.next_line()).await;
        let line = line.expect("the process goes on");
        assert!(!line.contains(SECRET), "{line}");
        let read: Value = serde_json::from_str(&line).unwrap();
        faults += usize::from(read["level"] == "WARN");
        lines += 1;
    }
    process.signal(Signal::TERM);
    while let Some(line) = soon("its end", process.log.next_line()).await {
        assert!(!line.contains(SECRET), "{line}");
        lines += 1;
    }
    assert!(lines >= faults);
}
