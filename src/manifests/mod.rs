//! What has to be applied to install Rayfit: Kubernetes objects as plain data. Pure.
//!
//! One description, [`objects()`], serves both ways to install: the YAML of `rayfit manifests`, and
//! the kustomize folder, whose components are the differences between two such descriptions
//! ([`kustomize`]). So `kubectl apply -k` and `rayfit manifests | kubectl apply -f -` agree.
//!
//! Webhooks and controller are two Deployments with two accounts: what reads the answers of tenants'
//! GCSs has no right to webhook configurations or to the authority's key, and what serves webhooks
//! has none to scale clusters or to read their Secrets.

pub mod access;
pub mod certificates;
pub mod chart;
pub mod guard;
pub mod kustomize;
pub mod names;
pub mod network;
mod objects;
pub mod options;
pub mod webhooks;
pub mod workload;
mod yaml;

pub use objects::objects;
pub use options::{Certificates, FailurePolicy, ManifestOptions, ManifestOptionsError};
pub use yaml::to_yaml;
