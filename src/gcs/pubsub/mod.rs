//! Messages published by way of the GCS: reports of the dashboard agents of Ray nodes, which say how much
//! memory is really in use, and the output of drivers.
//!
//! Each agent reports every five seconds to the GCS (`REPORTER_UPDATE_INTERVAL_MS`), by which
//! Ray's own dashboard gets it. Of all that a raylet, the GCS and the agents say, it is the only thing
//! that has the memory in use by the count of Ray's memory monitor, and KubeRay's probes need the
//! agents, so every cluster has them. A subscription names the nodes that it is about, so that the GCS
//! sends nothing else, and needs no connection to any other pod.

mod driver_lines;
mod parse;
mod subscription;

pub use parse::MemoryReport;
pub use subscription::Subscription;
