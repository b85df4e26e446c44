//! Rayfit makes Ray clusters on Kubernetes (KubeRay) scale and resize in place safely.
//!
//! This is the shell: it watches, serves and calls. What is to be done is decided in the crate [`rayfit_core`], which
//! knows nothing of it.
//!
//! # Layout
//!
//! - [`cli`]: the command line, one file per command
//! - [`admission`]: the two webhooks as an HTTP router; pure except for the router and its limits
//! - [`tls`]: the serving certificate of the webhooks
//! - [`apiserver`]: all access to the API server: client, rate limit, the loop that lists and
//!   watches
//! - [`supervisor`]: background tasks that the process cannot do without
//! - [`shares`]: how connections and memory are shared, so that no caller can lock out others
//! - [`fair_semaphore`]: permits for what only a few may do at a time, for which namespaces take turns
//! - [`server`]: listening, time limits, stopping, health; the process of `rayfit serve`
//! - [`audit`]: the background audit, the status of policies, failing closed
//! - [`watch`]: policies and facts, kept up to date from the API server
//! - [`telemetry`]: logs and metrics
//! - [`certs`]: self-managed certificates; its state machine is pure
//! - [`gcs`]: the client of Ray's GCS
//! - [`controller`]: scaling live clusters: watches, Leases, calls to the API server and the GCS
//! - [`sidecar`]: Rayfit as `/bin/bash` of its image, in place of Ray's autoscaler container

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

pub mod admission;
pub mod apiserver;
pub mod audit;
pub mod certs;
pub mod cli;
pub mod controller;
pub mod fair_semaphore;
pub mod gcs;
pub mod server;
pub mod shares;
pub mod sidecar;
pub mod supervisor;
pub mod telemetry;
pub mod tls;
pub mod watch;
