//! Disturbances: calls with wrong answers, a GCS that starts anew, heads, pods and nodes that are lost,
//! reads that are out of date, objects that people change.
//!
//! They take what faults ask for, and change the world as the real thing would; nothing happens here by
//! itself.

mod answers;
mod head;
mod losses;
mod reads;
