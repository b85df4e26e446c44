//! Announcements as data: [Events](event) on the RayCluster for people, and [messages](driver_log)
//! for Ray's drivers.
//!
//! In: values of the plan and of results. Out: what is announced, without any text of other sources that is not bounded.

pub mod driver_log;
pub mod event;
