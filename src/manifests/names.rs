//! Names that more than one object, or the running program, must agree on.

use serde_json::{Value, json};

/// Deployment, Service and `ServiceAccount` of the webhooks, and the beginning of all other names.
pub const APP: &str = "rayfit";
/// Deployment and `ServiceAccount` of what scales clusters, where it runs apart from the webhooks.
pub const CONTROLLER: &str = "rayfit-controller";
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
/// The Lease that the auditing replica holds.
pub const AUDIT_LEASE: &str = "rayfit-audit";
/// Where `rayfit serve` looks for certificates, and so where cert-manager's Secret is mounted.
pub const CERTIFICATE_FOLDER: &str = "/var/run/rayfit/certs";
/// What a pod that serves webhooks may take of memory, in bytes: 4,096 connections with 40 KiB each,
/// 96 MiB of bodies, 320 MiB of trees and what is found in them, and what is known of the cluster.
pub const WEBHOOK_MEMORY: usize = 1 << 30;

/// A Deployment of an install, with an account of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Component {
    /// Serves the webhooks, keeps their certificates, audits.
    Admission,
    /// Scales clusters.
    Controller,
}

impl Component {
    /// Its Deployment and its account.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Admission => APP,
            Self::Controller => CONTROLLER,
        }
    }

    /// The labels by which its pods are found. They can never change: a Deployment's selector is
    /// immutable.
    pub fn labels(self) -> Value {
        let component = match self {
            Self::Admission => "admission",
            Self::Controller => "controller",
        };
        json!({ "app.kubernetes.io/name": APP, "app.kubernetes.io/component": component })
    }

    /// The metadata of a namespaced object that is there for it.
    pub fn metadata(self, name: &str, namespace: &str) -> Value {
        json!({ "name": name, "namespace": namespace, "labels": self.labels() })
    }

    /// The metadata of a cluster-wide object that is there for it.
    pub fn cluster_metadata(self, name: &str) -> Value {
        json!({ "name": name, "labels": self.labels() })
    }

    /// The name under which API servers know its account.
    pub fn user(self, namespace: &str) -> String {
        format!("system:serviceaccount:{namespace}:{}", self.name())
    }
}

/// Where the authorities of callers' certificates are mounted.
pub const CLIENT_AUTHORITY_FOLDER: &str = "/var/run/rayfit/clients";

/// The labels by which the webhooks' pods are found.
pub fn selector() -> Value {
    Component::Admission.labels()
}

/// The metadata of a namespaced object of the webhooks.
pub fn metadata(name: &str, namespace: &str) -> Value {
    Component::Admission.metadata(name, namespace)
}

/// The metadata of a cluster-wide object of the webhooks.
pub fn cluster_metadata(name: &str) -> Value {
    Component::Admission.cluster_metadata(name)
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
