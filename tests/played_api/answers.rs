//! What a played API server answers.

use std::convert::Infallible;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use futures_util::stream;
use serde_json::{Value, json};

use super::call::Asked;
use super::{Change, Fault, PlayedApi};

pub(super) async fn answer(State(api): State<PlayedApi>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let body = axum::body::to_bytes(body, usize::MAX).await.unwrap();
    if parts.uri.path() == "/version" {
        return axum::Json(json!({ "major": "1", "minor": "35" })).into_response();
    }
    let asked = Arc::new(Asked::new(&parts, body));
    let fault = {
        let mut objects = api.objects();
        objects.requests.push(asked.call.clone());
        objects.rule.as_mut().and_then(|rule| rule(&asked.call))
    };
    match fault {
        Some(Fault::Status(code, retry_after)) => {
            let mut answer = status(StatusCode::from_u16(code).unwrap(), "Played");
            if let Some(seconds) = retry_after {
                let headers = answer.headers_mut();
                headers.insert(header::RETRY_AFTER, seconds.into());
            }
            answer
        }
        Some(Fault::LateAnswer(mut comes)) => {
            let answer = api.done(&asked);
            let _ = comes.wait_for(|comes| *comes).await;
            answer
        }
        Some(Fault::Hang) => std::future::pending().await,
        Some(Fault::Cut) => Body::empty().into_response(),
        Some(Fault::Expired) => {
            let gone = json!({ "kind": "Status", "code": 410, "reason": "Expired" });
            Body::from(line("ERROR", &gone)).into_response()
        }
        None => api.done(&asked),
    }
}

/// Counted while it is open.
struct OpenWatch(PlayedApi, String);

impl OpenWatch {
    fn new(api: &PlayedApi, asked: &Asked) -> Self {
        let selector = |kind: &str| asked.query.get(kind).map_or("", String::as_str);
        let selectors = ["labelSelector", "fieldSelector"].map(selector).concat();
        let target = &asked.target;
        let what = [&*target.collection, &*target.namespace, &*selectors].join(" ");
        let what = what.trim_end().to_owned();
        *api.objects().watches.entry(what.clone()).or_default() += 1;
        Self(api.clone(), what)
    }
}

impl Drop for OpenWatch {
    fn drop(&mut self) {
        *self.0.objects().watches.get_mut(&self.1).unwrap() -= 1;
    }
}

impl PlayedApi {
    fn done(&self, asked: &Arc<Asked>) -> Response {
        match asked.call.verb {
            "list" => self.list(asked),
            "watch" => self.watch(asked),
            "get" => found(self.objects().find(&asked.target).cloned()),
            "delete" => {
                let removed = self.objects().remove(&asked.target);
                self.tell();
                found(removed)
            }
            _ => self.write(asked),
        }
    }

    fn list(&self, asked: &Asked) -> Response {
        let objects = self.objects();
        let number = |key: &str| asked.query.get(key).and_then(|value| value.parse().ok());
        let (limit, from) = (number("limit").unwrap_or(usize::MAX), number("continue"));
        let all = objects.of(&asked.target.collection);
        let mut rest = all
            .filter(|object| asked.selects(object))
            .skip(from.unwrap_or(0));
        let items: Vec<Value> = rest.by_ref().take(limit).cloned().collect();
        let mut metadata = json!({ "resourceVersion": objects.version.to_string() });
        if rest.next().is_some() {
            metadata["continue"] = json!((from.unwrap_or(0) + limit).to_string());
        }
        found(Some(json!({
            "kind": "List", "apiVersion": "v1", "metadata": metadata, "items": items
        })))
    }

    fn watch(&self, asked: &Arc<Asked>) -> Response {
        let version = asked.query.get("resourceVersion");
        let from: u64 = version
            .and_then(|version| version.parse().ok())
            .unwrap_or(0);
        let (api, changed) = (self.clone(), self.changed.subscribe());
        let asked = Arc::clone(asked);
        let open = OpenWatch::new(self, &asked);
        let lines = stream::unfold((from, changed), move |(seen, mut changed)| {
            let (api, asked) = (api.clone(), Arc::clone(&asked));
            let _ = &open;
            async move {
                loop {
                    changed.borrow_and_update();
                    let next = {
                        let objects = api.objects();
                        let mut history = objects.history.iter();
                        let is_next = |change: &&Change| {
                            change.version > seen
                                && change.collection == asked.target.collection
                                && asked.selects(&change.object)
                        };
                        history.find(is_next).cloned()
                    };
                    if let Some(Change {
                        version,
                        kind,
                        object,
                        ..
                    }) = next
                    {
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
        let (verb, target) = (asked.call.verb, &asked.target);
        let mut objects = self.objects();
        // Server-side apply is of YAML, and JSON is YAML.
        let mut body: Value = serde_json::from_slice(&asked.body).unwrap();
        let stored = match verb {
            "create" => {
                let name = body["metadata"]["name"].as_str().unwrap();
                let key = (target.namespace.clone(), name.to_owned());
                let stored = objects.stored.get(&target.collection);
                stored.and_then(|stored| stored.get(&key)).cloned()
            }
            _ => objects.find(target).cloned(),
        };
        let seen = body["metadata"]["resourceVersion"].as_str();
        let next = match (verb, stored) {
            ("create", Some(_)) => return status(StatusCode::CONFLICT, "AlreadyExists"),
            ("create", None) => {
                if !target.namespace.is_empty() {
                    body["metadata"]["namespace"] = json!(target.namespace);
                }
                body
            }
            (_, Some(stored))
                if seen.is_some_and(|seen| stored["metadata"]["resourceVersion"] != seen) =>
            {
                return status(StatusCode::CONFLICT, "Conflict");
            }
            ("update", Some(_)) => body,
            ("patch", None) if asked.kind.contains("apply") => {
                body["metadata"]["name"] = json!(target.name);
                body["metadata"]["namespace"] = json!(target.namespace);
                body
            }
            (_, None) => return status(StatusCode::NOT_FOUND, "NotFound"),
            (_, Some(mut stored)) if asked.kind.contains("json-patch") => {
                let patch: json_patch::Patch = serde_json::from_value(body).unwrap();
                if json_patch::patch(&mut stored, &patch).is_err() {
                    let text = "the server rejected our request due to an error in our request";
                    return status(StatusCode::UNPROCESSABLE_ENTITY, text);
                }
                stored
            }
            (_, Some(mut stored)) => {
                json_patch::merge(&mut stored, &body);
                stored
            }
        };
        let written = objects.put(&target.collection, next);
        drop(objects);
        self.tell();
        found(Some(written))
    }
}

fn line(kind: &str, object: &Value) -> String {
    format!("{}\n", json!({ "type": kind, "object": object }))
}

fn found(object: Option<Value>) -> Response {
    match object {
        Some(object) => axum::Json(object).into_response(),
        None => status(StatusCode::NOT_FOUND, "NotFound"),
    }
}

pub fn status(code: StatusCode, reason: &str) -> Response {
    let status = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "message": reason, "reason": reason, "code": code.as_u16()
    });
    (code, axum::Json(status)).into_response()
}
