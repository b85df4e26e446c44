//! Names that more than one object, or the running program, must agree on.

use serde_json::{Value, json};

/// Deployment, Service, `ServiceAccount` and most others.
pub const APP: &str = "rayfit";
/// The namespace of an install, unless told otherwise.
pub const NAMESPACE: &str = "rayfit-system";
/// The Secret that cert-manager fills. Another one than ours: a Secret's type cannot be changed.
pub const ISSUED_SECRET: &str = "rayfit-webhook-certs";
/// The Secret that Rayfit fills.
pub const OWN_SECRET: &str = "rayfit-self-managed-certs";
/// The `MutatingWebhookConfiguration`.
pub const MUTATING: &str = "rayfit-mutating";
/// The `ValidatingWebhookConfiguration`.
pub const VALIDATING: &str = "rayfit-validating";
/// Where `rayfit serve` looks for certificates, and so where cert-manager's Secret is mounted.
pub const CERTIFICATE_FOLDER: &str = "/var/run/rayfit/certs";
/// What a pod that serves webhooks may take of memory, in bytes: 4,096 connections with 40 KiB each,
/// 96 MiB of bodies, 320 MiB of trees and what is found in them, and what is known of the cluster.
pub const WEBHOOK_MEMORY: usize = 1 << 30;

/// The labels by which our pods are found. They can never change: a Deployment's selector is
/// immutable.
pub fn selector() -> Value {
    json!({ "app.kubernetes.io/name": APP, "app.kubernetes.io/component": "admission" })
}

/// The metadata of a namespaced object of ours.
pub fn metadata(name: &str, namespace: &str) -> Value {
    json!({ "name": name, "namespace": namespace, "labels": selector() })
}

/// The metadata of a cluster-wide object of ours.
pub fn cluster_metadata(name: &str) -> Value {
    json!({ "name": name, "labels": selector() })
}

/// The name under which the API server calls the webhooks; certificates must carry it.
pub fn service_host(namespace: &str) -> String {
    format!("{APP}.{namespace}.svc")
}

/// The object with our labels.
pub fn labelled(mut object: Value) -> Value {
    object["metadata"]["labels"] = selector();
    object
}
