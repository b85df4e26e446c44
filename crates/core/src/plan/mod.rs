//! The planner: what is to be done about a RayCluster now, and why.
//!
//! [`decide()`] takes a [`Snapshot`](crate::snapshot::Snapshot) and [`PlanSettings`], and returns a
//! [`Plan`] and a [`PlanReport`]. It is a pure function: equal snapshots give equal plans. It packs
//! demand onto nodes as Ray's autoscaler v2 (2.60.0) does; strategy `Ray` decides as that does,
//! strategy `Rayfit` improves on that.
//!
//! # The modules
//!
//! `base` decides as Ray does, `pipeline` with the slices, one of them for each improvement; both go through these phases.
//!
//! - `nodes`: from the RayCluster, its pods and its Ray nodes to groups and nodes, each node once
//! - `demand`: from what the GCS reports as pending to batches of equal requests, in Ray's order
//! - `growth`: how far a pod can grow in place, given its group's resize limits and the headroom of
//!   its Kubernetes node
//! - `packing`: which demand goes to which node, and which new nodes are needed
//! - `removal`: which nodes are removed: those above a maximum before packing, idle ones after it
//! - `conclude`: from packed nodes to the plan and its reasons
//! - `outcome`: plan and report as data, and how people read them
//!
//! The files beside them: `decide` (from a snapshot to a plan), `situation` (what a decision is about), `decided` (its results) and `remember` (what it stores for the next one),
//! `serve` (the order of demands), `list` (lists with typed positions), `strategy`, `slice` and `settings` (how to decide),
//! [`check`] (what every plan must satisfy), and [`schema`] (JSON schemas).
//!
//! # Invariants
//!
//! - A fault in one object is a [`Problem`] and concerns that object alone.
//! - A decision has a budget of steps. One that takes more is abandoned: nothing is done, and the
//!   history is kept.
//! - While the head does not run, no pod is created, resized or removed.

mod assemble;
mod base;
pub mod check;
mod conclude;
mod decide;
mod decided;
mod demand;
mod growth;
mod list;
mod nodes;
mod outcome;
mod packing;
mod pipeline;
mod remember;
mod removal;
pub mod schema;
mod serve;
mod settings;
mod situation;
mod slice;
mod slices;
pub(crate) mod strategy;

pub use crate::plan::conclude::launch::RAY_CONCURRENT_LAUNCHES;
pub(crate) use crate::plan::growth::pod_size::gap;
pub use crate::plan::outcome::amounts::mebibytes;
pub use crate::plan::outcome::cause::RemovalCause;
pub use crate::plan::outcome::plan::{
    ClusterEnd, ClusterEndPolicy, CountedUsers, Deletion, ExcessNode, GroupPlan, GrowthDemand,
    MemoryReason, NodeDrain, NodeHold, Plan, PlanWait, PodResize, RayletSync,
};
pub use crate::plan::outcome::problem::{Problem, ProblemPlace, ProblemReason};
pub use crate::plan::outcome::remark::NodeRemark;
pub use crate::plan::outcome::report::{
    CpuAndMemory, DemandReport, GroupReport, GroupSizes, NodeReport, Placed, PlanReport,
    StandbyReport,
};
pub use crate::plan::outcome::resize_note::{ResizeNote, STATUS_ANNOTATION};
pub use crate::plan::outcome::step::PlacementStep;
pub use crate::plan::outcome::unmet::{DemandKind, Shortfall, Unmet, UnmetReason};
pub(crate) use crate::plan::remember::is_overdue;
pub use crate::plan::slice::Slice;
pub use crate::plan::slices::blocked::reason::BlockReason;
pub use crate::plan::slices::departures::reason::{Departure, DepartureReason};
pub use crate::plan::slices::gangs::reason::NextTry;
pub use crate::plan::slices::growth_backoff::reason::CountedAtBase;
pub(crate) use crate::plan::slices::initial_sizes::initial_sizes;
pub use crate::plan::slices::memory_in_use::followed_groups;
pub use crate::plan::slices::small_pods::reason::KeptSmall;
pub use crate::plan::slices::standby::reason::{StandbyLaunch, StandbyReason};
pub use crate::plan::slices::standby::settings::{Headroom, HeadroomRequest, ScheduledStandby};
pub use crate::plan::strategy::Strategy;
pub use decide::decide;
pub use schema::PlanLine;
pub use settings::{PlanSettings, ScaleUp, SizedFor};
