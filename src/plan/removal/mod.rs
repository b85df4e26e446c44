//! Which nodes are removed: nodes above a maximum, and nodes that have been idle for too long. The
//! hosts of one replica are removed together or not at all.

pub(crate) mod limits;
