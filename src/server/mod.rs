//! Listening: connections, their time limits, stopping without losing a call, and health.
//!
//! The routers know nothing of this. [`listener`] accepts, [`connection`] serves one connection
//! within [`guard`]'s time limits, [`shutdown`] tells them when to stop, [`health`] is what kubelet
//! and Prometheus ask, [`probes`] answers them in a thread of its own, [`run`] puts a process together.
//!
//! A port takes a bounded number of connections. When there are more, those give way that wait for
//! their client ([`crate::shares`]): handshakes, heads and bodies on their way, idle connections.

pub mod connection;
pub mod facts;
pub mod guard;
pub mod health;
pub mod listener;
pub mod probes;
pub mod pulse;
pub mod run;
pub mod shutdown;

pub use connection::Times;
pub use listener::Listener;
pub use shutdown::{Phase, Shutdown};
