//! The improvements on Ray's decision, one folder or file each: when it acts, what it remembers, its unit tests, and,
//! where they take types of their own, its `settings.rs` and its `reason.rs`. [`pipeline`](crate::plan::pipeline) calls
//! them in their order.
//!
//! A `settings.rs` or `reason.rs` imports nothing else of the planner: the table of settings
//! ([`PlanSettings`](crate::plan::PlanSettings)) and the outcome list it. Beside the slices, `read` is the cluster as they
//! find it, `findings` what they leave for the plan and its report, and `remember` for the next decision.

pub(crate) mod blocked;
pub(crate) mod departures;
pub(crate) mod excess;
pub(crate) mod findings;
pub(crate) mod gangs;
pub(crate) mod given_up;
pub(crate) mod growth_backoff;
pub(crate) mod holds;
pub(crate) mod initial_sizes;
pub(crate) mod memory_in_use;
pub(crate) mod objects;
pub(crate) mod raylets;
pub(crate) mod read;
mod remember;
pub(crate) mod resizes;
pub(crate) mod rooms;
pub(crate) mod shrinking;
pub(crate) mod small_pods;
pub(crate) mod standby;
pub(crate) mod whole_replicas;
