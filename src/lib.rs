//! Rayfit makes Ray clusters on Kubernetes (KubeRay) scale and resize in place safely.
//!
//! # Layout, in reading order
//!
//! The core is pure: functions of values, without clock, I/O, client or environment.
//! `tests/core/architecture.rs` keeps it so.
//!
//! - [`quantity`], [`path`], [`text`]: exact amounts; places in an object; texts as messages show them
//! - [`ray`]: a borrowed view of RayCluster, RayJob, RayService and RayCronJob
//! - [`facts`]: what is known of the Kubernetes cluster around an object
//! - [`rule_id`], [`finding`], [`rules`]: what can be wrong, one documented unit per rule
//! - [`defaults`]: what admission fills in, as a minimal JSON patch
//! - [`policy`], [`raypolicy`]: how far each rule is turned on, and the objects that say so
//! - [`judge`]: the one function that judges an object, and folds what it finds into a verdict
//! - [`yaml`]: manifests as kubectl reads them, with the place of every value
//! - [`objects`]: the Ray objects in a document, and what admission makes of one
//! - [`report`]: findings and the catalogue as people and programs read them
//! - [`object_audit`]: what is stored, judged as if it was made anew, and added up
//! - [`manifests`]: what has to be applied to install Rayfit
//! - [`vap`]: the rules that the API server can judge by itself, as its policies
//! - [`snapshot`], [`plan`]: one RayCluster's state, and what is to be done about it
//! - [`reconcile`]: from a plan to calls, and from their answers to the next round
//!
//! Around it lies the shell:
//!
//! - [`cli`]: the command line, one file per command
//! - [`admission`]: the two webhooks as a router; pure but for the router and its limits
//! - [`tls`]: the certificate that webhooks are served with
//! - [`apiserver`]: the one way to the API server: client, rate, the loop that lists and watches
//! - [`supervisor`]: background tasks that the process cannot do without
//! - [`fair_queue`]: what waits by flow, with flows served in turn
//! - [`shares`]: connections and memory, of which no stranger can hold so much that others are locked out
//! - [`server`]: listening, time limits, stopping, health; the process of `rayfit serve`
//! - [`audit`]: the background audit, the status of policies, failing closed
//! - [`watch`]: policies and facts, kept up to date from the API server
//! - [`telemetry`]: logs and metrics
//! - [`certs`]: certificates of our own; its state machine is pure
//! - [`gcs`]: the client of Ray's GCS
//! - [`controller`]: what scales live clusters: watches, Leases, calls of the API server and the GCS
//! - [`sidecar`]: Rayfit as `/bin/bash` of its image, in the place of Ray's autoscaler container
//!
//! # Invariants
//!
//! - A rule never fails and never sees the network; it reports findings, which are data.
//! - No finding that an object already had denies an update of it; an object that is being
//!   deleted can always lose its finalizers.
//! - A default touches nothing that is present, and nothing at all of an object that was there
//!   before Rayfit until its owner gives a reason.

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

pub mod admission;
pub mod apiserver;
pub mod audit;
pub mod certs;
pub mod cli;
pub mod controller;
pub mod defaults;
pub mod facts;
pub mod fair_queue;
pub mod finding;
pub mod gcs;
pub mod judge;
pub mod manifests;
pub mod object_audit;
pub mod objects;
pub mod path;
pub mod plan;
pub mod policy;
pub mod quantity;
pub mod ray;
pub mod raypolicy;
pub mod reconcile;
pub mod report;
pub mod rule_id;
pub mod rules;
pub mod server;
pub mod shares;
pub mod sidecar;
pub mod snapshot;
pub mod supervisor;
pub mod telemetry;
pub mod text;
pub mod tls;
pub mod vap;
pub mod watch;
pub mod yaml;
