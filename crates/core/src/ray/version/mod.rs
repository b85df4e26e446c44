//! Versions of Ray ([`release`]), and since when it does what rules and defaults are about ([`since`]).

pub mod release;
pub mod since;

pub use release::RayVersion;
