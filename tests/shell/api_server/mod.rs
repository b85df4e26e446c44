//! A small API server in memory: the objects that certificates need, with resource versions,
//! conflicts, watches, and rights.

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::http::{Method, StatusCode};
use axum::response::{IntoResponse as _, Response};
use futures_util::stream;
use rayfit::manifests::access::certificates::NEEDED;
use serde_json::{Value, json};
use tokio::sync::broadcast;
use tower::ServiceExt as _;

#[derive(Default)]
struct Objects {
    version: u64,
    by_path: BTreeMap<String, Value>,
    used: BTreeSet<(String, String)>,
}

#[derive(Clone)]
pub(crate) struct ApiServer {
    objects: Arc<Mutex<Objects>>,
    changes: broadcast::Sender<(String, Value)>,
}

impl ApiServer {
    pub(crate) fn new() -> Self {
        let (changes, _) = broadcast::channel(1024);
        Self {
            objects: Arc::default(),
            changes,
        }
    }

    pub(crate) fn client(&self) -> kube::Client {
        let router = Router::new().fallback(answer).with_state(self.clone());
        let service = tower::service_fn(move |request: Request<kube::client::Body>| {
            router.clone().oneshot(request.map(Body::new))
        });
        kube::Client::new(service, "rayfit-system")
    }

    /// What may have happened behind our back.
    pub(crate) fn put(&self, path: &str, mut object: Value) {
        let mut objects = self.objects.lock().unwrap();
        objects.version += 1;
        object["metadata"]["resourceVersion"] = json!(objects.version.to_string());
        if object["webhooks"].is_array() {
            object["metadata"]["generation"] = json!(objects.version);
        }
        objects.by_path.insert(path.to_owned(), object.clone());
        let _ = self.changes.send((path.to_owned(), object));
    }

    pub(crate) fn get(&self, path: &str) -> Option<Value> {
        self.objects.lock().unwrap().by_path.get(path).cloned()
    }

    /// Verbs and resources that were asked for.
    pub(crate) fn used(&self) -> BTreeSet<(String, String)> {
        self.objects.lock().unwrap().used.clone()
    }

    fn update(&self, path: &str, object: Value) -> Response {
        let seen = &object["metadata"]["resourceVersion"];
        let stored = self.get(path);
        if stored.is_none_or(|stored| &stored["metadata"]["resourceVersion"] != seen) {
            return status(StatusCode::CONFLICT, "Conflict");
        }
        self.put(path, object);
        found(self.get(path))
    }

    fn patch(&self, path: &str, body: &Bytes) -> Response {
        let operations: json_patch::Patch = serde_json::from_slice(body).unwrap();
        let mut object = self.get(path).unwrap();
        json_patch::patch(&mut object, &operations).unwrap();
        self.update(path, object)
    }

    fn watch(&self, path: String) -> Response {
        let changes = self.changes.subscribe();
        let first = self
            .get(&path)
            .into_iter()
            .map(|object| line("ADDED", &object));
        let later = stream::unfold((changes, path), |(mut changes, path)| async move {
            loop {
                let (at, object) = changes.recv().await.ok()?;
                if at == path {
                    return Some((line("MODIFIED", &object), (changes, path)));
                }
            }
        });
        let lines = futures_util::StreamExt::chain(stream::iter(first.collect::<Vec<_>>()), later);
        Body::from_stream(lines).into_response()
    }

    fn list(&self, path: &str) -> Response {
        let objects = self.objects.lock().unwrap();
        let below =
            |(key, object): (&String, &Value)| key.starts_with(path).then(|| object.clone());
        let items: Vec<Value> = objects.by_path.iter().filter_map(below).collect();
        found(Some(
            json!({ "kind": "List", "apiVersion": "v1", "metadata": {}, "items": items }),
        ))
    }
}

/// A line of a watch; the stream it goes into wants a `Result`.
#[allow(clippy::unnecessary_wraps)]
fn line(kind: &str, object: &Value) -> Result<String, Infallible> {
    Ok(format!("{}\n", json!({ "type": kind, "object": object })))
}

fn found(object: Option<Value>) -> Response {
    match object {
        Some(object) => axum::Json(object).into_response(),
        None => status(StatusCode::NOT_FOUND, "NotFound"),
    }
}

fn status(code: StatusCode, reason: &str) -> Response {
    let status = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "message": reason, "reason": reason, "code": code.as_u16()
    });
    (code, axum::Json(status)).into_response()
}

async fn answer(State(server): State<ApiServer>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let body = axum::body::to_bytes(body, usize::MAX).await.unwrap();
    let path = parts.uri.path().to_owned();
    let query = parts.uri.query().unwrap_or_default().to_owned();
    let selected = query
        .split('&')
        .find_map(|part| part.strip_prefix("fieldSelector=metadata.name%3D"));
    let watch = query.contains("watch=true");
    let rest: Vec<&str> = path
        .split('/')
        .skip(if path.starts_with("/api/") { 5 } else { 4 })
        .collect();
    let (resource, name) = (rest[0], rest.get(1).copied().or(selected));
    let verb = match (&parts.method, watch, rest.len()) {
        (&Method::GET, true, _) => "watch",
        (&Method::GET, false, 1) => "list",
        (&Method::GET, false, _) => "get",
        (&Method::PUT, ..) => "update",
        (&Method::PATCH, ..) => "patch",
        _ => "other",
    };
    let allowed = NEEDED.iter().any(|need| {
        need.resource == resource
            && need.verbs.contains(&verb)
            && need.name.is_none_or(|only| name == Some(only))
    });
    if !allowed {
        return status(
            StatusCode::FORBIDDEN,
            &format!("{verb} {resource} {name:?}"),
        );
    }
    let use_of = (verb.to_owned(), resource.to_owned());
    server.objects.lock().unwrap().used.insert(use_of);
    match verb {
        "watch" => server.watch(format!("{path}/{}", name.unwrap())),
        "list" => server.list(&path),
        "get" => found(server.get(&path)),
        "update" => server.update(&path, serde_json::from_slice(&body).unwrap()),
        _ => server.patch(&path, &body),
    }
}
