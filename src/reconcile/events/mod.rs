//! What people and drivers are told, as data: [Events](event) on the RayCluster, and
//! [lines for drivers](driver_log).

pub mod driver_log;
pub mod event;
