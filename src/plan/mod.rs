//! The planner: what is to be done about a RayCluster now, and why.
//!
//! [`decide()`] is a pure function from a [`Snapshot`](crate::snapshot::Snapshot) to a [`Plan`] and
//! a [`PlanReport`]. It packs demand onto nodes as Ray's autoscaler v2 (2.60.0) does; strategy `Ray`
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
pub mod check;
mod conclude;
mod decide;
mod decided;
mod demand;
mod growth;
mod memory;
mod nodes;
mod outcome;
mod packing;
mod removal;
pub mod schema;
mod settings;
pub(crate) mod strategy;

pub use crate::plan::conclude::launch::RAY_CONCURRENT_LAUNCHES;
pub(crate) use crate::plan::growth::pod_size::gap;
pub(crate) use crate::plan::memory::availability::is_overdue;
pub use crate::plan::outcome::cause::RemovalCause;
pub use crate::plan::outcome::plan::{
    Deletion, DemandKind, GroupPlan, NodeDrain, Plan, PodResize, Problem, RayletSync, Unmet,
};
pub use crate::plan::outcome::report::{DemandReport, GroupReport, NodeReport, Placed, PlanReport};
pub use crate::plan::outcome::resize_note::{PodNote, ResizeNote, STATUS_ANNOTATION};
pub use crate::plan::outcome::step::PlacementStep;
pub use crate::plan::strategy::{Improvements, Strategy};
pub use decide::decide;
pub use schema::PlanLine;
pub use settings::{MAX_WORKERS, PlanSettings};
