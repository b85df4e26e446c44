//! The cluster as its objects have it, whatever Ray nodes report of themselves: [rows], groups as they are [started],
//! [faults] that concern one object alone, and pods that [hang](hanging) in termination.

pub(crate) mod faults;
pub(crate) mod hanging;
pub(crate) mod rows;
pub(crate) mod started;
