//! Listening: connections, their time limits, stopping without losing a call, and health.
//!
//! The routers are independent of this. [`listener`] accepts connections, [`connection`] serves one
//! within the time limits of [`guard`], [`shutdown`] tells them when to stop, [`health`] has the
//! endpoints for kubelets and Prometheus, [`probes`] serves these in a separate thread, and [`run`]
//! assembles a process.
//!
//! [`home_cluster`] is the way to the API server that the parts of a process share, and by which `owners` reads the
//! RayCluster that owns a new pod.
//!
//! A port accepts a bounded number of connections. When there are more, connections that wait for
//! their client give way ([`crate::shares`]): those in a handshake, with incomplete headers or
//! bodies, or idle.
//!
//! In: connections. Out: requests for a router. Invariant: a request that was begun is answered before the process ends,
//! or its time is over.

pub mod connection;
pub mod facts;
pub mod guard;
pub mod health;
pub mod home_cluster;
pub mod listener;
mod owners;
pub mod probes;
pub mod pulse;
pub mod run;
pub mod shutdown;

pub use connection::ConnectionTimeouts;
pub use listener::Listener;
pub use shutdown::{Phase, Shutdown};
