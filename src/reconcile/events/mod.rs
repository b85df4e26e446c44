//! What is announced, as data: [Events](event) on the RayCluster for people, and
//! [messages](driver_log) for Ray's drivers.

pub mod driver_log;
pub mod event;
