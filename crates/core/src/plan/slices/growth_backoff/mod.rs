//! Growth back-off: new pods of a group count at their base size for a while after one did not grow ([backoff]), or
//! where pods that start are on full Kubernetes nodes. [`sizes`] are those at which nodes count that are to grow or
//! shrink.

pub(crate) mod backoff;
pub(crate) mod reason;
pub(crate) mod sizes;
