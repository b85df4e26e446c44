//! Requests of a pod of a group: besides its ray container ([`beside_ray`]), at the most
//! ([`most`]), its GPUs ([`devices`]), and how far it may grow within its pod ([`pod_level`]).

pub mod beside_ray;
pub mod devices;
pub mod most;
pub mod pod_level;

pub use beside_ray::BesideRay;
pub use most::{ContainerBounds, PodMost, Unbounded};
pub use pod_level::{PodLevelAmount, PodLevelBound};
