//! Why Ray cannot derive what a node has.

use super::tpu;
use crate::quantity::QuantityError;
use crate::ray::start_params::StartResourcesError;

/// Why Ray cannot derive a group's resources.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ResourceError {
    /// The template has no container, or its first is no object.
    #[error("the template has no container: add the ray container as its first")]
    NoContainer,
    /// No source says how many CPUs there are; Ray insists on knowing.
    #[error("no CPU count can be derived: set a CPU limit on the ray container")]
    CpuUnknown,
    /// A start parameter that is no integer.
    #[error("rayStartParams.{key} is no integer: write a whole number in quotes")]
    NotAnInteger {
        /// The parameter.
        key: &'static str,
    },
    /// A value that is no quantity.
    #[error("the amount of {resource} is no quantity: {error}")]
    NotAQuantity {
        /// The resource.
        resource: String,
        /// Why not.
        error: QuantityError,
    },
    /// `rayStartParams.resources` that cannot be read.
    #[error("rayStartParams.resources: {0}")]
    StartResources(#[from] StartResourcesError),
    /// The pod's TPU topology cannot be read.
    #[error(transparent)]
    Topology(#[from] tpu::BadTopology),
    /// Less than nothing of a resource.
    #[error("the amount of {0} is negative: write 0 or more")]
    Negative(String),
}
