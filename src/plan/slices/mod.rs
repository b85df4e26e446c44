//! The improvements on Ray's decision, one folder or file each: when it acts, what it remembers, and its unit tests.
//! [`pipeline`](crate::plan::pipeline) calls them in their order.

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
