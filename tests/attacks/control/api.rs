//! A played API server on a port of its own: any objects, lists in pages, watches, patches,
//! resource versions, and whatever faults a test gives it.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::http::{Method, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use futures_util::stream;
use rayfit::apiserver::ApiServer;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::sleep;

/// A request, as faults and tests see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    pub verb: &'static str,
    pub resource: String,
    pub namespace: String,
    pub name: String,
    pub subresource: String,
}

/// What happens to a request instead of an answer, or before it.
#[derive(Debug, Clone)]
pub enum Fault {
    /// It is answered so, with `Retry-After`.
    Status(u16, Option<u32>),
    /// It is done, and the answer comes later.
    LateAnswer(Duration),
    /// It is not answered.
    Hang,
    /// A watch that ends as soon as it begins.
    Cut,
    /// A watch that is told that its version is too old.
    Expired,
}

type Rule = Box<dyn FnMut(&Call) -> Option<Fault> + Send>;

#[derive(Default)]
struct Objects {
    version: u64,
    /// By collection and by namespace and name.
    stored: BTreeMap<String, BTreeMap<(String, String), Value>>,
    /// Everything that ever changed: version, collection, kind of the event, the object.
    history: Vec<(u64, String, &'static str, Value)>,
    calls: Vec<Call>,
    /// The number of watches that are open, by collection, namespace and label selector.
    watches: BTreeMap<String, usize>,
    rule: Option<Rule>,
}

#[derive(Clone)]
pub struct Played {
    objects: Arc<Mutex<Objects>>,
    changed: watch::Sender<u64>,
}

/// It listens until it is dropped.
pub struct Api {
    pub played: Played,
    address: std::net::SocketAddr,
    serving: JoinHandle<()>,
}

impl Drop for Api {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

impl Api {
    pub async fn start() -> Self {
        let played = Played {
            objects: Arc::default(),
            changed: watch::Sender::new(0),
        };
        let router = Router::new().fallback(answer).with_state(played.clone());
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let serving = tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self {
            played,
            address,
            serving,
        }
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The real client, as the process makes it.
    pub fn server(&self) -> ApiServer {
        let url = self.url().parse().unwrap();
        ApiServer::with(kube::Config::new(url)).unwrap()
    }
}

impl Played {
    /// What happens to requests from now on.
    pub fn faults(&self, rule: impl FnMut(&Call) -> Option<Fault> + Send + 'static) {
        self.lock().rule = Some(Box::new(rule));
    }

    pub fn no_faults(&self) {
        self.lock().rule = None;
    }

    /// The requests of a verb and a resource so far.
    pub fn calls(&self, verb: &str, resource: &str) -> Vec<Call> {
        let calls = self.lock().calls.clone().into_iter();
        calls
            .filter(|call| call.verb == verb && call.resource == resource)
            .collect()
    }

    /// The number of watches that are open, by collection, namespace and label selector.
    pub fn watches(&self) -> BTreeMap<String, usize> {
        self.lock().watches.clone()
    }

    /// Stores an object, whoever wrote it.
    pub fn put(&self, collection: &str, object: Value) -> Value {
        self.lock().put(collection, object, &self.changed)
    }

    pub fn get(&self, collection: &str, namespace: &str, name: &str) -> Option<Value> {
        let objects = self.lock();
        let key = (namespace.to_owned(), name.to_owned());
        objects.stored.get(collection)?.get(&key).cloned()
    }

    pub fn all(&self, collection: &str) -> Vec<Value> {
        let objects = self.lock();
        let stored = objects.stored.get(collection).into_iter();
        stored.flat_map(BTreeMap::values).cloned().collect()
    }

    pub fn delete(&self, collection: &str, namespace: &str, name: &str) -> bool {
        let mut objects = self.lock();
        let key = (namespace.to_owned(), name.to_owned());
        let Some(mut object) = objects
            .stored
            .get_mut(collection)
            .and_then(|stored| stored.remove(&key))
        else {
            return false;
        };
        objects.version += 1;
        object["metadata"]["resourceVersion"] = json!(objects.version.to_string());
        objects.record(collection, "DELETED", object, &self.changed);
        true
    }

    fn lock(&self) -> MutexGuard<'_, Objects> {
        self.objects.lock().unwrap()
    }
}

impl Objects {
    fn put(&mut self, collection: &str, mut object: Value, changed: &watch::Sender<u64>) -> Value {
        self.version += 1;
        let metadata = &mut object["metadata"];
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let key = (text(&metadata["namespace"]), text(&metadata["name"]));
        if metadata.is_object() {
            metadata["resourceVersion"] = json!(self.version.to_string());
            if metadata.get("uid").is_none() {
                metadata["uid"] = json!(format!("uid-{}", self.version));
            }
        }
        let stored = self.stored.entry(collection.to_owned()).or_default();
        let before = stored.insert(key, object.clone());
        let kind = if before.is_some() {
            "MODIFIED"
        } else {
            "ADDED"
        };
        self.record(collection, kind, object.clone(), changed);
        object
    }

    fn record(
        &mut self,
        collection: &str,
        kind: &'static str,
        object: Value,
        changed: &watch::Sender<u64>,
    ) {
        let change = (self.version, collection.to_owned(), kind, object);
        self.history.push(change);
        changed.send_replace(self.version);
    }
}

/// A request, taken apart.
#[derive(Clone)]
struct Asked {
    call: Call,
    /// `/apis/ray.io/v1/rayclusters`
    collection: String,
    query: BTreeMap<String, String>,
    kind: String,
    body: Bytes,
}

impl Asked {
    fn new(method: &Method, path: &str, query: &str, kind: &str, body: Bytes) -> Self {
        let parts: Vec<&str> = path.trim_matches('/').split('/').collect();
        let (group, rest) = parts.split_at(if parts[0] == "api" { 2 } else { 3 });
        let (namespace, rest) = match rest {
            ["namespaces", namespace, rest @ ..] if !rest.is_empty() => (*namespace, rest),
            rest => ("", rest),
        };
        let part = |at: usize| rest.get(at).copied().unwrap_or_default().to_owned();
        let query: BTreeMap<String, String> = query
            .split('&')
            .filter_map(|pair| pair.split_once('='))
            .map(|(key, value)| {
                let value = value.replace("%2F", "/").replace("%3D", "=");
                (key.to_owned(), value)
            })
            .collect();
        let is_named = rest.len() > 1;
        let verb = match *method {
            Method::GET if is_named => "get",
            Method::GET if query.contains_key("watch") => "watch",
            Method::GET => "list",
            Method::POST => "create",
            Method::PUT => "update",
            Method::DELETE => "delete",
            _ => "patch",
        };
        Self {
            collection: format!("/{}/{}", group.join("/"), part(0)),
            call: Call {
                verb,
                resource: part(0),
                namespace: namespace.to_owned(),
                name: part(1),
                subresource: part(2),
            },
            query,
            kind: kind.to_owned(),
            body,
        }
    }

    fn selects(&self, object: &Value) -> bool {
        let namespace = &self.call.namespace;
        let is_there = namespace.is_empty() || object["metadata"]["namespace"] == **namespace;
        let labels = &object["metadata"]["labels"];
        let mut selector = self.query.get("labelSelector").into_iter();
        is_there
            && selector.all(|selector| match selector.split_once('=') {
                Some((key, value)) => labels[key] == value,
                None => labels.get(selector).is_some(),
            })
    }
}

/// Counted while it is open.
struct OpenWatch(Played, String);

impl OpenWatch {
    fn new(played: &Played, asked: &Asked) -> Self {
        let labels = asked.query.get("labelSelector");
        let labels = labels.map_or("", |labels| labels.as_str());
        let what = [&*asked.collection, &*asked.call.namespace, labels].join(" ");
        let what = what.trim_end().to_owned();
        *played.lock().watches.entry(what.clone()).or_default() += 1;
        Self(played.clone(), what)
    }
}

impl Drop for OpenWatch {
    fn drop(&mut self) {
        *self.0.lock().watches.get_mut(&self.1).unwrap() -= 1;
    }
}

async fn answer(State(played): State<Played>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let body = axum::body::to_bytes(body, usize::MAX).await.unwrap();
    let header = parts.headers.get(header::CONTENT_TYPE);
    let kind = header.map_or("", |value| value.to_str().unwrap());
    let query = parts.uri.query().unwrap_or_default();
    if parts.uri.path() == "/version" {
        return axum::Json(json!({ "major": "1", "minor": "35" })).into_response();
    }
    let asked = Asked::new(&parts.method, parts.uri.path(), query, kind, body);
    let fault = {
        let mut objects = played.lock();
        objects.calls.push(asked.call.clone());
        objects.rule.as_mut().and_then(|rule| rule(&asked.call))
    };
    match fault {
        Some(Fault::Status(code, retry_after)) => {
            let mut answer = status(code, "played");
            if let Some(seconds) = retry_after {
                answer
                    .headers_mut()
                    .insert(header::RETRY_AFTER, seconds.into());
            }
            answer
        }
        Some(Fault::LateAnswer(time)) => {
            let answer = played.done(&asked);
            sleep(time).await;
            answer
        }
        Some(Fault::Hang) => std::future::pending().await,
        Some(Fault::Cut) => Body::empty().into_response(),
        Some(Fault::Expired) => {
            let gone = json!({ "kind": "Status", "code": 410, "reason": "Expired" });
            Body::from(line("ERROR", &gone)).into_response()
        }
        None => played.done(&asked),
    }
}

impl Played {
    fn done(&self, asked: &Asked) -> Response {
        let Call {
            verb,
            namespace,
            name,
            ..
        } = &asked.call;
        match *verb {
            "list" => self.list(asked),
            "watch" => self.watch(asked),
            "get" => found(self.get(&asked.collection, namespace, name)),
            "delete" => {
                self.delete(&asked.collection, namespace, name);
                status(200, "deleted")
            }
            _ => self.write(asked),
        }
    }

    fn list(&self, asked: &Asked) -> Response {
        let objects = self.lock();
        let number = |key: &str| asked.query.get(key).and_then(|value| value.parse().ok());
        let (limit, from) = (number("limit").unwrap_or(usize::MAX), number("continue"));
        let stored = objects.stored.get(&asked.collection).into_iter();
        let all = stored.flat_map(BTreeMap::values);
        let mut rest = all
            .filter(|object| asked.selects(object))
            .skip(from.unwrap_or(0));
        let items: Vec<Value> = rest.by_ref().take(limit).cloned().collect();
        let mut metadata = json!({ "resourceVersion": objects.version.to_string() });
        if rest.next().is_some() {
            metadata["continue"] = json!((from.unwrap_or(0) + limit).to_string());
        }
        let list =
            json!({ "kind": "List", "apiVersion": "v1", "metadata": metadata, "items": items });
        axum::Json(list).into_response()
    }

    fn watch(&self, asked: &Asked) -> Response {
        let from: u64 = asked.query["resourceVersion"].parse().unwrap_or(0);
        let (played, changed) = (self.clone(), self.changed.subscribe());
        let asked = asked.clone();
        let open = OpenWatch::new(self, &asked);
        let lines = stream::unfold((from, changed), move |(seen, mut changed)| {
            let (played, asked) = (played.clone(), asked.clone());
            let _ = &open;
            async move {
                loop {
                    changed.borrow_and_update();
                    let next = {
                        let objects = played.lock();
                        let mut history = objects.history.iter();
                        let is_next =
                            |(version, collection, _, object): &&(u64, String, _, Value)| {
                                *version > seen
                                    && *collection == asked.collection
                                    && asked.selects(object)
                            };
                        history.find(is_next).cloned()
                    };
                    if let Some((version, _, kind, object)) = next {
                        let line = Ok::<_, Infallible>(line(kind, &object));
                        return Some((line, (version, changed)));
                    }
                    changed.changed().await.ok()?;
                }
            }
        });
        Body::from_stream(lines).into_response()
    }

    fn write(&self, asked: &Asked) -> Response {
        let Call {
            verb,
            namespace,
            name,
            ..
        } = &asked.call;
        let mut objects = self.lock();
        // Server-side apply is of YAML, and JSON is YAML.
        let body: Value = serde_json::from_slice(&asked.body).unwrap();
        let name = match *verb {
            "create" => body["metadata"]["name"].as_str().unwrap().to_owned(),
            _ => name.clone(),
        };
        let key = (namespace.clone(), name.clone());
        let stored = objects
            .stored
            .get(&asked.collection)
            .and_then(|stored| stored.get(&key))
            .cloned();
        let seen = body["metadata"]["resourceVersion"].as_str();
        let next = match (*verb, stored) {
            ("create", Some(_)) => return status(409, "AlreadyExists"),
            ("create", None) => {
                let mut made = body;
                if !namespace.is_empty() {
                    made["metadata"]["namespace"] = json!(namespace);
                }
                made
            }
            (_, Some(stored))
                if seen.is_some_and(|seen| stored["metadata"]["resourceVersion"] != seen) =>
            {
                return status(409, "Conflict");
            }
            ("update", Some(_)) => body,
            ("patch", None) if asked.kind.contains("apply") => {
                let mut made = body;
                made["metadata"]["name"] = json!(name);
                made["metadata"]["namespace"] = json!(namespace);
                made
            }
            (_, None) => return status(404, "NotFound"),
            (_, Some(mut stored)) if asked.kind.contains("json-patch") => {
                let patch: json_patch::Patch = serde_json::from_value(body).unwrap();
                if json_patch::patch(&mut stored, &patch).is_err() {
                    let text = "the server rejected our request due to an error in our request";
                    return status(422, text);
                }
                stored
            }
            (_, Some(mut stored)) => {
                json_patch::merge(&mut stored, &body);
                stored
            }
        };
        found(Some(objects.put(&asked.collection, next, &self.changed)))
    }
}

fn line(kind: &str, object: &Value) -> String {
    format!("{}\n", json!({ "type": kind, "object": object }))
}

fn found(object: Option<Value>) -> Response {
    match object {
        Some(object) => axum::Json(object).into_response(),
        None => status(404, "NotFound"),
    }
}

fn status(code: u16, message: &str) -> Response {
    let status = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "message": message, "reason": "Played", "code": code
    });
    (StatusCode::from_u16(code).unwrap(), axum::Json(status)).into_response()
}
