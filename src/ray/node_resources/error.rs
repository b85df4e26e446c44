//! The errors that keep Ray from deriving the resources of a node.

use super::tpu;
use crate::quantity::QuantityError;
use crate::ray::start_params::StartResourcesError;

/// The error of a group whose resources Ray cannot derive.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
pub enum ResourceError {
    /// The template has no container, or its first one is not an object.
    #[error("the template has no container: add the ray container as its first")]
    NoContainer,
    /// No source says how many CPUs there are, and Ray insists on knowing.
    #[error("no CPU count can be derived: set a CPU limit on the ray container")]
    CpuUnknown,
    /// A start parameter is not an integer.
    #[error("rayStartParams.{key} is not an integer: write a whole number in quotes")]
    NotAnInteger {
        /// The name of the parameter.
        key: &'static str,
    },
    /// A value is not a quantity.
    #[error("the amount of {resource} is not a quantity: {error}")]
    NotAQuantity {
        /// The name of the resource.
        resource: String,
        /// The error of the value.
        error: QuantityError,
    },
    /// `rayStartParams.resources` cannot be read.
    #[error("rayStartParams.resources: {0}")]
    StartResources(#[from] StartResourcesError),
    /// The pod's TPU topology cannot be read.
    #[error(transparent)]
    Topology(#[from] tpu::BadTopology),
    /// The amount of a resource is negative.
    #[error("the amount of {0} is negative: write 0 or more")]
    Negative(String),
}
