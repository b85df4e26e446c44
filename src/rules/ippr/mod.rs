//! RF1xx: in-place resize, for objects that carry `ray.io/ippr`.

pub mod start_params;
