//! Several replicas of the controller in one world, and the Leases by which one of them scales a cluster.
//!
//! `controllers` takes the events of scalers and of Leases, and the faults of replicas. `replica` is one
//! of them: what it knows of the Leases, its requests about them, and its scaler. `store` is what the
//! API server makes of these requests. The steps that are taken with Leases, and whether a write may begin,
//! are those of the controller.
//!
//! Invariant: no two replicas trust that they may scale the cluster at the same moment.

pub mod controllers;
mod replica;
mod store;
