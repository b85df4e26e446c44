//! What a pod of a group asks for: beside its ray container ([`beside_ray`]), at the most ([`most`]),
//! and of GPUs ([`devices`]).

pub mod beside_ray;
pub mod devices;
pub mod most;

pub use beside_ray::BesideRay;
pub use most::{Bounds, PodMost, Unbounded};
