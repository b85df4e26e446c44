//! The decisions of Rayfit: functions of values, without clock, I/O, client or environment.
//!
//! `tests/core/architecture.rs` of the crate `rayfit`, which is the shell around this one, checks that.
//!
//! # Layout, in reading order
//!
//! - [`json`], [`quantity`], [`path`], [`dns_name`], [`text`], [`schedule`], [`seconds`], [`hash`]: borrowed JSON; exact
//!   quantities; paths into an object; names of objects; how messages show text; recurring hours; times as numbers;
//!   hash tables
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
//! # Invariants
//!
//! - A rule never fails and never sees the network; it reports findings, which are data.
//! - A finding that an object already had never denies an update of it; finalizers can always be
//!   removed from an object that is being deleted.
//! - A default never changes a value that is present, and changes an object from before Rayfit was
//!   installed only when an update of its owner makes the default necessary.

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

pub mod defaults;
pub mod dns_name;
pub mod facts;
pub mod fair_queue;
pub mod finding;
pub mod fix;
pub mod flow_control;
pub mod hash;
pub mod initial_size;
pub mod json;
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
pub mod simulate;
pub mod snapshot;
pub mod text;
pub mod vap;
pub mod yaml;
