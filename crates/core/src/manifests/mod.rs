//! The manifests that install Rayfit: Kubernetes objects as plain data. Pure.
//!
//! One function, [`objects()`], serves both ways to install: the YAML of `rayfit manifests`, and
//! the kustomize folder, whose components are the differences between two such descriptions
//! ([`kustomize`]). So `kubectl apply -k` and `rayfit manifests | kubectl apply -f -` agree.
//!
//! Webhooks and controller are two Deployments with two accounts: the controller, which reads the
//! answers of tenants' GCSs, has no permissions for webhook configurations or the authority's key,
//! and the webhooks have none to scale clusters or to read their Secrets.
//!
//! Invariant: equal options give equal objects.

pub mod access;
pub mod certificates;
pub mod guard;
pub mod kustomize;
pub mod names;
pub mod network;
mod objects;
pub mod options;
pub mod webhooks;
pub mod workload;

pub use objects::{objects, to_yaml};
pub use options::{Certificates, FailurePolicy, ManifestOptions};
