//! The world: an API server with its objects, KubeRay's operator, scheduler, node autoscaler,
//! kubelets and Ray, in virtual time.
//!
//! It takes a RayCluster, the jobs of a trace and the calls of a scaler. It returns the objects as watches
//! show them, what the GCS reports, and what all of it cost. Nothing here knows the scaler. Invariant:
//! events happen in the order of time, each at a moment that follows from the settings and the seed
//! alone, so equal simulations are equal in everything.
//!
//! A [`World`] is the world around one cluster. Several of them may share their [`Machines`] (nodes and pods):
//! each has them while something happens to it, and leaves notices for the others. Whatever goes wrong in a
//! world is behind its [`Disturbance`].

mod api;
pub mod group;
mod kubelet;
pub mod ledger;
pub mod machines;
mod nodes;
pub mod objects;
mod operator;
mod pod_level;
pub mod queue;
mod settle;
mod state;
mod watch;

pub use machines::Machines;
pub use objects::WorldView;
pub use state::{Disturbance, World, WrongAnswer};
