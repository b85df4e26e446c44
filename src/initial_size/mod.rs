//! New pods that are made larger than the template of their group.
//!
//! A pod that is resized in place starts with the size of its template, and grows once it runs. Where
//! Kubernetes nodes have little room, the scheduler puts the small pod where it fits, and there it
//! cannot grow to what a single large request asks for. So what scales the cluster can say how large
//! new pods of a group are to be made: with `replicas` it writes the annotation
//! [`ANNOTATION`](crate::ray::initial_sizes::ANNOTATION), and a
//! mutating webhook gives pods that size as KubeRay makes them.
//!
//! - `new_pod`: a pod that is made, and why it may stay as it is
//! - `enlarge`: what its RayCluster says about it, and the patch that follows
//!
//! # Invariants
//!
//! - A pod is never made smaller than its template, nor larger than `ray.io/ippr` lets its group grow.
//! - The gap between limits and requests stays, and with it the quality-of-service class.
//! - Whatever is not as expected leaves the pod as it is.

mod enlarge;
mod new_pod;

pub(crate) use enlarge::resized;
pub use enlarge::{Enlarged, OwnerCluster, enlarged};
pub use new_pod::{LeftAsMade, NewPod};
