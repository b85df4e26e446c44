//! The planner: what is to be done about a RayCluster now, and why.
//!
//! [`decide()`] is a pure function from a [`Snapshot`](crate::snapshot::Snapshot) to a [`Plan`] and
//! a [`Report`]. It packs demand onto nodes as Ray's autoscaler v2 (2.60.0) does; strategy `Ray`
//! decides exactly as that, strategy `Rayfit` has the [named improvements](Improvements).
//!
//! Reading order: `decide` (the phases), `group` (the configuration), `faults` (what is wrong with
//! it), `rows` and `view` (the nodes), `demand` and `shape` (the requests), `pack`, `placing` and
//! `steps` (packing), `candidates`, `states` and `rank` (picking the best node), `fit` (one node),
//! `work` (what it may cost), `resize`, `pod_size`, `suggestion`, `room` and `stunted` (growing in
//! place), `note` (what of it stands on the pod), `limits` (minima, maxima, idleness), `conclude`,
//! `launch`, `orphans` and `remember` (the plan), `explain` and `reasons` (the report), [`check`]
//! (what every plan must satisfy), [`schema`] (all of it as JSON schemas).

pub mod apply;
mod availability;
mod candidates;
mod cause;
pub mod check;
mod conclude;
mod container;
mod decide;
mod decided;
mod demand;
mod explain;
mod faults;
mod fit;
mod group;
mod grow;
mod growth_wait;
mod improvements;
mod launch;
mod limits;
mod names;
mod node;
mod nodes;
mod note;
mod orphans;
mod outcome;
mod pack;
mod placing;
mod pod_size;
mod rank;
mod raylet;
mod reasons;
mod remember;
mod report;
mod resize;
mod room;
mod rows;
mod run;
pub mod schema;
mod settings;
mod shape;
mod size;
mod states;
mod step;
mod steps;
mod stunted;
mod suggestion;
mod view;
mod words;
mod work;
mod world;

pub(crate) use availability::is_overdue;
pub use cause::Cause;
pub use decide::decide;
pub use improvements::{Improvements, Strategy};
pub use launch::RAY_CONCURRENT_LAUNCHES;
pub use note::{PodNote, ResizeNote, STATUS_ANNOTATION};
pub use outcome::{
    Deletion, DemandKind, Drain, GroupPlan, Plan, PodResize, Problem, RayletSync, Unmet,
};
pub(crate) use pod_size::gap;
pub use report::{DemandReport, GroupReport, NodeReport, Placed, Report};
pub use schema::Line;
pub use settings::{MAX_WORKERS, Settings};
pub use step::Step;
