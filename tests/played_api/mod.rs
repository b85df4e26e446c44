//! A played API server: any kind of object, lists in pages, watches that lose nothing, resource
//! versions, conflicts, patches, and whatever faults a test gives it. It notes every request.
//!
//! It is reached in memory, where time may be paused, or on a port of its own by the client of the
//! process. `call` takes a request apart, `answers` has what follows from it.

#![allow(
    dead_code,
    unused_imports,
    unreachable_pub,
    missing_docs,
    reason = "each test binary includes it and uses a part of it"
)]

mod answers;
mod call;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};

use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use kube::client::ClientBuilder;
use rayfit::apiserver::ApiServer;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tower::ServiceExt as _;

pub use self::answers::status;
pub use self::call::Call;
use self::call::Target;

/// What happens to a request instead of an answer, or before it.
#[derive(Debug, Clone)]
pub enum Fault {
    /// It is answered so, with `Retry-After`.
    Status(u16, Option<u32>),
    /// It is done, and the answer comes once the test says so.
    LateAnswer(watch::Receiver<bool>),
    /// It is not answered.
    Hang,
    /// A watch that ends as soon as it begins.
    Cut,
    /// A watch that is told that its version is too old.
    Expired,
}

type Rule = Box<dyn FnMut(&Call) -> Option<Fault> + Send>;

/// Something that happened to an object.
#[derive(Clone)]
struct Change {
    version: u64,
    /// Such as `/apis/ray.io/v1/rayclusters`.
    collection: String,
    /// As watches call it.
    kind: &'static str,
    object: Value,
}

#[derive(Default)]
pub struct Objects {
    version: u64,
    /// By collection, and by namespace and name.
    stored: BTreeMap<String, BTreeMap<(String, String), Value>>,
    /// Everything that ever happened, oldest first.
    history: Vec<Change>,
    /// All requests, oldest first.
    pub requests: Vec<Call>,
    /// How many watches are open, by collection, namespace and selectors.
    watches: BTreeMap<String, usize>,
    rule: Option<Rule>,
}

#[derive(Clone)]
pub struct PlayedApi {
    objects: Arc<Mutex<Objects>>,
    changed: watch::Sender<u64>,
}

impl Default for PlayedApi {
    fn default() -> Self {
        Self {
            objects: Arc::default(),
            changed: watch::Sender::new(0),
        }
    }
}

/// It is listened to until this is dropped.
pub struct Listening {
    address: std::net::SocketAddr,
    serving: JoinHandle<()>,
}

impl Drop for Listening {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

impl Listening {
    /// The real client, as the process makes it.
    pub fn server(&self) -> ApiServer {
        let url = format!("http://{}", self.address).parse().unwrap();
        ApiServer::with(kube::Config::new(url)).unwrap()
    }
}

impl PlayedApi {
    pub fn client(&self) -> kube::Client {
        self.server().client
    }

    /// As the process reaches an API server, but in memory.
    pub fn server(&self) -> ApiServer {
        let router = self.router();
        let service = tower::service_fn(move |request: Request<kube::client::Body>| {
            router.clone().oneshot(request.map(Body::new))
        });
        ApiServer::of_builder(ClientBuilder::new(service, "rayfit-system"))
    }

    pub fn router(&self) -> Router {
        Router::new()
            .fallback(answers::answer)
            .with_state(self.clone())
    }

    /// Serves it on a free port of the loopback interface.
    pub async fn listen(&self) -> Listening {
        let router = self.router();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let serving = tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        Listening { address, serving }
    }

    pub fn objects(&self) -> MutexGuard<'_, Objects> {
        self.objects.lock().unwrap()
    }

    /// What happens to requests from now on.
    pub fn faults(&self, rule: impl FnMut(&Call) -> Option<Fault> + Send + 'static) {
        self.objects().rule = Some(Box::new(rule));
    }

    pub fn no_faults(&self) {
        self.objects().rule = None;
    }

    /// The requests of a verb and a resource so far.
    pub fn calls(&self, verb: &str, resource: &str) -> Vec<Call> {
        let objects = self.objects();
        let calls = objects.requests.iter();
        calls
            .filter(|call| call.verb == verb && call.resource == resource)
            .cloned()
            .collect()
    }

    /// How many watches are open, by collection, namespace and selectors.
    pub fn watches(&self) -> BTreeMap<String, usize> {
        self.objects().watches.clone()
    }

    /// Creates or replaces what `path` names, whoever else writes it.
    pub fn put(&self, path: &str, mut object: Value) {
        let target = Target::read(path);
        object["metadata"]["name"] = json!(target.name);
        if !target.namespace.is_empty() {
            object["metadata"]["namespace"] = json!(target.namespace);
        }
        self.store(&target.collection, object);
    }

    /// Creates or replaces an object of a collection, such as `/apis/ray.io/v1/rayclusters`.
    pub fn store(&self, collection: &str, object: Value) -> Value {
        let stored = self.objects().put(collection, object);
        self.tell();
        stored
    }

    pub fn get(&self, path: &str) -> Option<Value> {
        let target = Target::read(path);
        self.objects().find(&target).cloned()
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
        let objects = self.objects();
        let all = objects.of(&target.collection);
        all.filter(|object| target.is_around(object))
            .cloned()
            .collect()
    }

    pub fn delete(&self, path: &str) {
        let target = Target::read(path);
        self.objects().remove(&target);
        self.tell();
    }

    /// Wakes the watches.
    fn tell(&self) {
        self.changed.send_replace(self.objects().version);
    }
}

impl Objects {
    fn of(&self, collection: &str) -> impl Iterator<Item = &Value> {
        let stored = self.stored.get(collection);
        stored.into_iter().flat_map(BTreeMap::values)
    }

    fn find(&self, target: &Target) -> Option<&Value> {
        let key = (target.namespace.clone(), target.name.clone());
        self.stored.get(&target.collection)?.get(&key)
    }

    fn put(&mut self, collection: &str, mut object: Value) -> Value {
        self.version += 1;
        let is_configuration = object["webhooks"].is_array();
        let metadata = &mut object["metadata"];
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let key = (text(&metadata["namespace"]), text(&metadata["name"]));
        if metadata.is_object() {
            metadata["resourceVersion"] = json!(self.version.to_string());
            if metadata["uid"].is_null() {
                metadata["uid"] = json!(format!("uid-{}", self.version));
            }
            if is_configuration {
                metadata["generation"] = json!(self.version);
            }
        }
        let stored = self.stored.entry(collection.to_owned()).or_default();
        let before = stored.insert(key, object.clone());
        let kind = before.map_or("ADDED", |_| "MODIFIED");
        self.record(collection, kind, object.clone());
        object
    }

    fn remove(&mut self, target: &Target) -> Option<Value> {
        let key = (target.namespace.clone(), target.name.clone());
        let stored = self.stored.get_mut(&target.collection)?;
        let mut object = stored.remove(&key)?;
        self.version += 1;
        object["metadata"]["resourceVersion"] = json!(self.version.to_string());
        self.record(&target.collection, "DELETED", object.clone());
        Some(object)
    }

    fn record(&mut self, collection: &str, kind: &'static str, object: Value) {
        self.history.push(Change {
            version: self.version,
            collection: collection.to_owned(),
            kind,
            object,
        });
    }
}
