//! Requests of a pod of a group: besides its ray container ([`parts`]), at the most
//! ([`most`]), its GPUs ([`devices`]), and how far it may grow within its pod ([`pod_level`]).

pub mod devices;
pub mod most;
pub mod parts;
pub mod pod_level;

pub use most::{ContainerBounds, PodMost, Unbounded};
pub use parts::BesideRay;
pub use pod_level::{PodLevelAmount, PodLevelBound};
