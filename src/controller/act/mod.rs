//! Acting on a cluster: [effects](perform) by requests to the API server ([`writer`]) and calls of the GCS,
//! and the fresh read by which effects on pods are [permitted](permission).

pub mod perform;
pub mod permission;
pub mod writer;
