//! Names that several objects, or the running program, have to agree on.

use serde_json::{Value, json};

/// The Deployment, Service and `ServiceAccount` of the webhooks, and the prefix of all other names.
pub const APP: &str = "rayfit";
/// The Deployment and `ServiceAccount` of the controller, where it runs separately from the
/// webhooks.
pub const CONTROLLER: &str = "rayfit-controller";
/// The default namespace of an installation.
pub const NAMESPACE: &str = "rayfit-system";
/// The Secret that cert-manager fills. It differs from the one that Rayfit fills, because the type
/// of a Secret cannot be changed.
pub const ISSUED_SECRET: &str = "rayfit-webhook-certs";
/// The Secret that Rayfit fills.
pub const OWN_SECRET: &str = "rayfit-self-managed-certs";
/// The `MutatingWebhookConfiguration`, by [`cluster_name()`].
pub const MUTATING: &str = "rayfit-mutating";
/// The `ValidatingWebhookConfiguration`, by [`cluster_name()`].
pub const VALIDATING: &str = "rayfit-validating";
/// The Lease that the auditing replica holds.
pub const AUDIT_LEASE: &str = "rayfit-audit";
/// The Lease that the replica which scales clusters holds.
pub const LEADER_LEASE: &str = "rayfit-leader";
/// The folder in which `rayfit serve` looks for certificates, so that cert-manager's Secret is mounted there.
pub const CERTIFICATE_FOLDER: &str = "/var/run/rayfit/certs";
/// The memory limit of a pod that serves webhooks, in bytes. Half of it are 4,096 connections with 40 KiB each, 64
/// MiB of bodies, 160 MiB of parsed objects and their findings, and facts about the cluster.
pub const WEBHOOK_MEMORY: usize = 1 << 30;

/// A Deployment of an installation, with an account of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Component {
    /// Serves the webhooks, manages their certificates and audits.
    Admission,
    /// Scales clusters.
    Controller,
}

impl Component {
    /// The name of the Deployment and of its account.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Admission => APP,
            Self::Controller => CONTROLLER,
        }
    }

    /// The labels that select its pods.
    pub fn labels(self) -> Value {
        let component = match self {
            Self::Admission => "admission",
            Self::Controller => "controller",
        };
        // They can never change, because a Deployment's selector is immutable.
        json!({ "app.kubernetes.io/name": APP, "app.kubernetes.io/component": component })
    }

    /// The metadata of a namespaced object that belongs to it.
    pub fn metadata(self, name: &str, namespace: &str) -> Value {
        json!({ "name": name, "namespace": namespace, "labels": self.labels() })
    }

    /// The metadata of a cluster-wide object that belongs to it, in an installation in this namespace.
    pub fn cluster_metadata(self, name: &str, namespace: &str) -> Value {
        json!({ "name": cluster_name(name, namespace), "labels": self.labels() })
    }

    /// The user name of its account.
    pub fn user(self, namespace: &str) -> String {
        format!("system:serviceaccount:{namespace}:{}", self.name())
    }
}

/// The folder in which the authorities of client certificates are mounted.
pub const CLIENT_AUTHORITY_FOLDER: &str = "/var/run/rayfit/clients";

/// The name of a cluster-wide object of the installation in this namespace. Outside of the default namespace it ends
/// with the namespace, so that several installations can be in one Kubernetes cluster.
pub fn cluster_name(name: &str, namespace: &str) -> String {
    if namespace == NAMESPACE {
        name.to_owned()
    } else {
        format!("{name}-{namespace}")
    }
}

/// The host name under which the API server calls the webhooks, which certificates must have.
pub fn service_host(namespace: &str) -> String {
    format!("{APP}.{namespace}.svc")
}

/// The object with Rayfit's labels.
pub fn labelled(mut object: Value) -> Value {
    object["metadata"]["labels"] = Component::Admission.labels();
    object
}
