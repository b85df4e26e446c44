//! Which nodes go: those above a maximum, and those that have been idle for too long. Hosts of one
//! replica go together or not at all.

pub(crate) mod limits;
