//! A played API server, in memory: any kind of object, with lists, watches that lose nothing,
//! resource versions, conflicts and patches. It notes every request.

#![allow(
    dead_code,
    unreachable_pub,
    missing_docs,
    reason = "each test binary includes it and uses a part of it"
)]

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::{Arc, Mutex, MutexGuard};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::http::{Method, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use futures_util::stream;
use rayfit::apiserver::ApiServer;
use serde_json::{Value, json};
use tokio::sync::watch;
use tower::ServiceExt as _;

/// A kind's place, such as `/apis/ray.io/v1` and `rayclusters`.
type Kind = (String, String);

#[derive(Default)]
pub struct Objects {
    version: u64,
    /// By kind, namespace and name.
    by_name: BTreeMap<(Kind, String, String), Value>,
    /// What happened, with its version.
    log: Vec<(u64, &'static str, Kind, Value)>,
    /// Method and path, oldest first.
    pub requests: Vec<(Method, String)>,
    /// The ends of paths that nobody may ask for.
    pub forbidden: Vec<String>,
}

#[derive(Clone)]
pub struct PlayedApi {
    objects: Arc<Mutex<Objects>>,
    changed: watch::Sender<u64>,
}

/// What a path names.
struct Target {
    kind: Kind,
    namespace: Option<String>,
    name: Option<String>,
}

impl Target {
    fn read(path: &str) -> Self {
        let mut parts = path.trim_start_matches('/').split('/');
        let group = match parts.next() {
            Some("api") => format!("/api/{}", parts.next().unwrap()),
            _ => format!("/apis/{}/{}", parts.next().unwrap(), parts.next().unwrap()),
        };
        let mut rest: Vec<String> = parts.map(str::to_owned).collect();
        let namespace = (rest.len() > 2 && rest[0] == "namespaces").then(|| {
            rest.remove(0);
            rest.remove(0)
        });
        Self {
            kind: (group, rest[0].clone()),
            namespace,
            name: rest.get(1).cloned(),
        }
    }
}

impl Default for PlayedApi {
    fn default() -> Self {
        Self {
            objects: Arc::default(),
            changed: watch::channel(0).0,
        }
    }
}

impl PlayedApi {
    pub fn client(&self) -> kube::Client {
        self.server().client()
    }

    /// As the process reaches an API server.
    pub fn server(&self) -> ApiServer {
        let router = self.router();
        let service = tower::service_fn(move |request: Request<kube::client::Body>| {
            router.clone().oneshot(request.map(Body::new))
        });
        ApiServer::through(service, "rayfit-system")
    }

    pub fn router(&self) -> Router {
        Router::new().fallback(answer).with_state(self.clone())
    }

    pub fn objects(&self) -> MutexGuard<'_, Objects> {
        self.objects.lock().unwrap()
    }

    /// Creates or replaces what `path` names, whoever else writes it.
    pub fn put(&self, path: &str, object: Value) {
        let target = Target::read(path);
        let name = target.name.clone().unwrap();
        self.store(&target, &name, object);
    }

    pub fn get(&self, path: &str) -> Option<Value> {
        let target = Target::read(path);
        self.find(&target)
    }

    /// Changes what `path` names.
    pub fn change(&self, path: &str, change: impl FnOnce(&mut Value)) {
        let mut object = self.get(path).unwrap();
        change(&mut object);
        self.put(path, object);
    }

    /// All objects of a collection, such as `/apis/events.k8s.io/v1/namespaces/a/events`.
    pub fn all(&self, path: &str) -> Vec<Value> {
        let target = Target::read(path);
        self.objects().of(&target)
    }

    fn find(&self, target: &Target) -> Option<Value> {
        let key = key(target, target.name.as_deref()?);
        self.objects().by_name.get(&key).cloned()
    }

    fn store(&self, target: &Target, name: &str, mut object: Value) -> Value {
        let mut objects = self.objects();
        objects.version += 1;
        let version = objects.version;
        let key = key(target, name);
        object["metadata"]["name"] = json!(name);
        if let Some(namespace) = &target.namespace {
            object["metadata"]["namespace"] = json!(namespace);
        }
        if object["metadata"]["uid"].is_null() {
            object["metadata"]["uid"] = json!(format!("uid-{version}"));
        }
        object["metadata"]["resourceVersion"] = json!(version.to_string());
        let before = objects.by_name.insert(key, object.clone());
        let what = if before.is_some() {
            "MODIFIED"
        } else {
            "ADDED"
        };
        objects
            .log
            .push((version, what, target.kind.clone(), object.clone()));
        drop(objects);
        self.changed.send_replace(version);
        object
    }

    fn remove(&self, target: &Target) -> Option<Value> {
        let mut objects = self.objects();
        let key = key(target, target.name.as_deref()?);
        let mut object = objects.by_name.remove(&key)?;
        objects.version += 1;
        let version = objects.version;
        object["metadata"]["resourceVersion"] = json!(version.to_string());
        objects
            .log
            .push((version, "DELETED", target.kind.clone(), object.clone()));
        drop(objects);
        self.changed.send_replace(version);
        Some(object)
    }

    fn watch(&self, target: Target, since: u64, labels: Option<String>) -> Response {
        let (api, changed) = (self.clone(), self.changed.subscribe());
        let lines = stream::unfold((since, changed), move |(since, mut changed)| {
            let (api, labels) = (api.clone(), labels.clone());
            let (kind, namespace) = (target.kind.clone(), target.namespace.clone());
            async move {
                loop {
                    let next = api
                        .objects()
                        .log
                        .iter()
                        .find_map(|(version, what, of, object)| {
                            let fits = *version > since
                                && *of == kind
                                && in_namespace(object, namespace.as_deref())
                                && has_labels(object, labels.as_deref());
                            fits.then(|| (*version, json!({ "type": what, "object": object })))
                        });
                    if let Some((version, event)) = next {
                        let line = Ok::<_, Infallible>(format!("{event}\n"));
                        return Some((line, (version, changed)));
                    }
                    changed.changed().await.ok()?;
                }
            }
        });
        Body::from_stream(lines).into_response()
    }
}

impl Objects {
    fn of(&self, target: &Target) -> Vec<Value> {
        let objects = self.by_name.iter();
        objects
            .filter(|((kind, ..), object)| {
                *kind == target.kind && in_namespace(object, target.namespace.as_deref())
            })
            .map(|(_, object)| object.clone())
            .collect()
    }
}

fn key(target: &Target, name: &str) -> (Kind, String, String) {
    let namespace = target.namespace.clone().unwrap_or_default();
    (target.kind.clone(), namespace, name.to_owned())
}

fn in_namespace(object: &Value, namespace: Option<&str>) -> bool {
    namespace.is_none_or(|namespace| object["metadata"]["namespace"] == namespace)
}

/// Selectors as we send them: a label that is there, or one with a value.
fn has_labels(object: &Value, selector: Option<&str>) -> bool {
    selector.is_none_or(|selector| {
        let (key, value) = selector.split_once('=').unwrap_or((selector, ""));
        let label = object["metadata"]["labels"][key].as_str();
        label.is_some_and(|label| value.is_empty() || label == value)
    })
}

pub fn status(code: StatusCode, reason: &str) -> Response {
    let status = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "message": reason, "reason": reason, "code": code.as_u16()
    });
    (code, axum::Json(status)).into_response()
}

fn found(object: Option<Value>) -> Response {
    match object {
        Some(object) => axum::Json(object).into_response(),
        None => status(StatusCode::NOT_FOUND, "NotFound"),
    }
}

async fn answer(State(api): State<PlayedApi>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let body: Bytes = axum::body::to_bytes(body, usize::MAX).await.unwrap();
    let path = parts.uri.path().to_owned();
    let entry = (parts.method.clone(), path.clone());
    let mut objects = api.objects();
    objects.requests.push(entry);
    if objects.forbidden.iter().any(|end| path.ends_with(end)) {
        return status(StatusCode::FORBIDDEN, "Forbidden");
    }
    drop(objects);
    let query: BTreeMap<String, String> = parts
        .uri
        .query()
        .unwrap_or_default()
        .split('&')
        .filter_map(|pair| pair.split_once('='))
        .map(|(key, value)| {
            (
                key.to_owned(),
                value.replace("%2F", "/").replace("%3D", "="),
            )
        })
        .collect();
    let target = Target::read(&path);
    let read = || serde_json::from_slice::<Value>(&body).unwrap();
    match (parts.method, &target.name) {
        (Method::GET, None) => {
            let labels = query
                .get("labelSelector")
                .filter(|labels| !labels.is_empty());
            if query.contains_key("watch") {
                let since = query.get("resourceVersion").and_then(|v| v.parse().ok());
                return api.watch(target, since.unwrap_or(0), labels.cloned());
            }
            let objects = api.objects();
            let mut items = objects.of(&target);
            items.retain(|object| has_labels(object, labels.map(String::as_str)));
            found(Some(json!({
                "kind": "List", "apiVersion": "v1", "items": items,
                "metadata": { "resourceVersion": objects.version.to_string() },
            })))
        }
        (Method::GET, Some(_)) => found(api.find(&target)),
        (Method::POST, _) => {
            let object = read();
            let name = object["metadata"]["name"].as_str().unwrap().to_owned();
            if api.objects().by_name.contains_key(&key(&target, &name)) {
                return status(StatusCode::CONFLICT, "AlreadyExists");
            }
            found(Some(api.store(&target, &name, object)))
        }
        (Method::PUT, Some(name)) => {
            let object = read();
            let version = &object["metadata"]["resourceVersion"];
            match api.find(&target) {
                None => found(None),
                Some(stored) if stored["metadata"]["resourceVersion"] != *version => {
                    status(StatusCode::CONFLICT, "Conflict")
                }
                Some(_) => found(Some(api.store(&target, name, object))),
            }
        }
        (Method::PATCH, Some(name)) => {
            let Some(mut object) = api.find(&target) else {
                return found(None);
            };
            let is_json = parts.headers[header::CONTENT_TYPE] == "application/json-patch+json";
            if is_json {
                let operations: json_patch::Patch = serde_json::from_slice(&body).unwrap();
                if json_patch::patch(&mut object, &operations).is_err() {
                    let text = "the server rejected our request due to an error in our request";
                    return status(StatusCode::UNPROCESSABLE_ENTITY, text);
                }
            } else {
                json_patch::merge(&mut object, &read());
            }
            found(Some(api.store(&target, name, object)))
        }
        (Method::DELETE, Some(_)) => found(api.remove(&target)),
        (method, _) => status(StatusCode::METHOD_NOT_ALLOWED, method.as_str()),
    }
}
