//! The one way to the API server, for everything that runs in the background.
//!
//! There is one policy for all of them, so that none can be forgotten:
//!
//! - [`client`]: a client that repeats no request by itself, and waits for no answer for ever
//! - [`patience`]: `Retry-After` in one answer holds for every request of the client
//! - [`server_time`]: the API server's clock, as its answers show it
//! - [`gate`]: requests about clusters keep to one rate, and namespaces and clusters take turns
//! - [`informers`]: what the process watches, each collection of objects once for all who read it
//! - `informer`, [`pages`]: the one loop that lists and watches; objects are read one by one
//! - [`health`]: which watches are well, since when they are not, and why
//!
//! In: requests of the controller, the audit and the certificates. Out: answers, and lists that are kept up to date.
//! Invariant: nobody sends past the gate what others have to wait for there.

pub mod client;
pub mod error_chain;
pub mod gate;
pub mod health;
mod informer;
pub mod informers;
pub mod pages;
pub mod patience;
mod readers;
pub mod selection;
pub mod server_time;

pub use client::ApiServer;
pub use gate::{Gate, Pass};
pub use health::{Beacon, Watches};
pub use informers::{Informers, Reading};
pub use pages::ObjectName;
pub use patience::Patience;
pub use selection::{Selection, WatchEvent};
pub use server_time::ServerTime;
