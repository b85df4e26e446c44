//! A request to an API server, taken apart.

use std::collections::BTreeMap;

use axum::body::Bytes;
use axum::http::request::Parts;
use axum::http::{Method, header};
use serde_json::Value;

/// A request, as faults and tests see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    pub verb: &'static str,
    pub path: String,
    pub resource: String,
    pub namespace: String,
    pub name: String,
    pub subresource: String,
}

/// What a path names.
pub(super) struct Target {
    /// `/apis/ray.io/v1/rayclusters`
    pub(super) collection: String,
    pub(super) resource: String,
    /// Empty where there is none, or where it is about all.
    pub(super) namespace: String,
    pub(super) name: String,
    subresource: String,
}

impl Target {
    pub(super) fn read(path: &str) -> Self {
        let parts: Vec<&str> = path.trim_matches('/').split('/').collect();
        let (group, rest) = parts.split_at(if parts[0] == "api" { 2 } else { 3 });
        let (namespace, rest) = match rest {
            ["namespaces", namespace, rest @ ..] if !rest.is_empty() => (*namespace, rest),
            rest => ("", rest),
        };
        let part = |at: usize| rest.get(at).copied().unwrap_or_default().to_owned();
        Self {
            collection: format!("/{}/{}", group.join("/"), part(0)),
            resource: part(0),
            namespace: namespace.to_owned(),
            name: part(1),
            subresource: part(2),
        }
    }

    /// Whether an object is in the namespace that is meant.
    pub(super) fn is_around(&self, object: &Value) -> bool {
        self.namespace.is_empty() || object["metadata"]["namespace"] == *self.namespace
    }
}

/// A whole request.
pub(super) struct Asked {
    pub(super) call: Call,
    pub(super) target: Target,
    pub(super) query: BTreeMap<String, String>,
    /// The type of the body.
    pub(super) kind: String,
    pub(super) body: Bytes,
}

impl Asked {
    pub(super) fn new(parts: &Parts, body: Bytes) -> Self {
        let path = parts.uri.path();
        let target = Target::read(path);
        let query: BTreeMap<String, String> = parts
            .uri
            .query()
            .unwrap_or_default()
            .split('&')
            .filter_map(|pair| pair.split_once('='))
            .map(|(key, value)| {
                let value = value.replace("%2F", "/").replace("%3D", "=");
                let value = value.replace("%2C", ",");
                (key.to_owned(), value)
            })
            .collect();
        let is_named = !target.name.is_empty();
        let verb = match parts.method {
            Method::GET if is_named => "get",
            Method::GET if query.contains_key("watch") => "watch",
            Method::GET => "list",
            Method::POST => "create",
            Method::PUT => "update",
            Method::DELETE => "delete",
            _ => "patch",
        };
        let selector = query.get("fieldSelector");
        let selected = selector.and_then(|selector| selector.strip_prefix("metadata.name="));
        let kind = parts.headers.get(header::CONTENT_TYPE);
        Self {
            call: Call {
                verb,
                path: path.to_owned(),
                resource: target.resource.clone(),
                namespace: target.namespace.clone(),
                name: selected.unwrap_or(&target.name).to_owned(),
                subresource: target.subresource.clone(),
            },
            target,
            kind: kind.map_or("", |kind| kind.to_str().unwrap()).to_owned(),
            query,
            body,
        }
    }

    /// Whether a list or a watch has an object. Selectors are as Rayfit sends them: a name, and labels
    /// that are there or have a value.
    pub(super) fn selects(&self, object: &Value) -> bool {
        let (metadata, labels) = (&object["metadata"], &object["metadata"]["labels"]);
        let is_named = self.call.name.is_empty() || metadata["name"] == *self.call.name;
        let selector = self.query.get("labelSelector").into_iter();
        let parts = selector.flat_map(|selector| selector.split(','));
        let mut parts = parts.filter(|part| !part.is_empty());
        is_named
            && self.target.is_around(object)
            && parts.all(|part| match part.split_once('=') {
                Some((key, value)) => labels[key] == value,
                None => labels.get(part).is_some(),
            })
    }
}
