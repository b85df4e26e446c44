//! New worker pods, which get the initial size that their RayCluster says.
//!
//! KubeRay makes a pod as the template of its group says. What scales the cluster may have written a larger size into
//! the RayCluster a moment before, and so that is read from the API server while the review waits:
//!
//! - [`review`]: what a review says about a new pod; pure
//! - [`owners`]: how the RayCluster that owns a pod is asked for, as a trait, and why it could not be read
//! - [`reads`]: how many are asked for at a time, for how long, and in which order
//!
//! In: a review of a pod that is created. Out: a patch, or that the pod stays as KubeRay makes it. Invariants: no pod is ever
//! refused; while one waits for its RayCluster, it takes no place of reviews of Ray objects, and the pods of one
//! namespace delay those of another by one read.

pub mod owners;
pub mod reads;
pub mod review;

pub use owners::{OwnerName, OwnerReader, OwnerUnread};
pub use reads::{OwnerReadLimits, OwnerReads};
