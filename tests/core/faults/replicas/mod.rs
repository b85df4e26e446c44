//! Several replicas of the controller in one world, and the Lease by which one of them scales a cluster.
//!
//! `trust` is until when a process may write. `controllers` takes the events of scalers and of the Lease, and the faults of replicas. `replica` is one
//! of them: what it knows of the Lease, its requests about it, its scaler, and its `clock`. The requests that are sent, and
//! whether a write may begin, are those of the controller.
//!
//! Invariant: no two replicas trust that they may scale the cluster at the same moment.

mod clock;
pub(crate) mod controllers;
mod replica;
pub(crate) mod trust;
