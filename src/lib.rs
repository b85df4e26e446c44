//! Rayfit makes Ray clusters on Kubernetes (KubeRay) scale and resize in place safely.
//!
//! # Layout, in reading order
//!
//! The core is pure: functions of values, without clock, I/O, client or environment.
//! `tests/core/architecture.rs` checks that.
//!
//! - [`quantity`], [`path`], [`dns_name`], [`text`], [`schedule`], [`seconds`], [`hash`]: exact quantities; paths
//!   into an object; names of objects; how messages show text; recurring hours; times as numbers; hash tables
//! - [`ray`]: a borrowed view of RayCluster, RayJob, RayService and RayCronJob
//! - [`schema`]: where a manifest deviates from KubeRay's CRDs
//! - [`facts`]: facts about the Kubernetes cluster around an object
//! - [`rule_id`], [`rule_page`], [`finding`], [`rules`]: the rules, one documented module per rule, and what they
//!   report
//! - [`defaults`]: what admission fills in, as a minimal JSON patch
//! - [`policy`], [`raypolicy`]: the mode of each rule, and the objects that set it
//! - [`judge`]: the one function that checks an object, and combines its findings into a verdict
//! - [`yaml`]: manifests as kubectl reads them, with the position of every value
//! - [`objects`]: the Ray objects in a document, and how admission stores one
//! - [`fix`]: the text of manifests with findings mended
//! - [`report`]: findings and the catalogue as people and programs read them
//! - [`object_audit`]: stored objects, checked as if they were created now, and counted
//! - [`manifests`]: the manifests that install Rayfit
//! - [`vap`]: the rules that the API server can check by itself, as ValidatingAdmissionPolicies
//! - [`initial_size`]: new pods that are made larger than the template of their group
//! - [`snapshot`], [`plan`]: the state of one RayCluster, and what to do about it
//! - [`reconcile`]: from a plan to calls, and from their answers to the next round
//! - [`fair_queue`], [`flow_control`]: items that wait by flow, with flows served in turn; which request
//!   to the API server may be sent next, and when
//! - [`simulate`]: a world in virtual time, in which all of this acts on a user's workload
//!
//! Around it lies the shell:
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
//!
//! # Invariants
//!
//! - A rule never fails and never sees the network; it reports findings, which are data.
//! - A finding that an object already had never denies an update of it; finalizers can always be
//!   removed from an object that is being deleted.
//! - A default never changes a value that is present, and changes an object from before Rayfit was
//!   installed only when an update of its owner makes the default necessary.

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

pub mod admission;
pub mod apiserver;
pub mod audit;
pub mod certs;
pub mod cli;
pub mod controller;
pub mod defaults;
pub mod dns_name;
pub mod facts;
pub mod fair_queue;
pub mod fair_semaphore;
pub mod finding;
pub mod fix;
pub mod flow_control;
pub mod gcs;
pub mod hash;
pub mod initial_size;
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
pub mod rule_page;
pub mod rules;
pub mod schedule;
pub mod schema;
pub mod seconds;
pub mod server;
pub mod shares;
pub mod sidecar;
pub mod simulate;
pub mod snapshot;
pub mod supervisor;
pub mod telemetry;
pub mod text;
pub mod tls;
pub mod vap;
pub mod watch;
pub mod yaml;
