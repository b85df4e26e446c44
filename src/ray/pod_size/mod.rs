//! What a pod of a group asks for: besides its ray container ([`beside_ray`]), at the most
//! ([`most`]), and how many GPUs ([`devices`]).

pub mod beside_ray;
pub mod devices;
pub mod most;

pub use beside_ray::BesideRay;
pub use most::{ContainerBounds, PodMost, Unbounded};
