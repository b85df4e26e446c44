//! The one way to the API server, for all that run in the background.
//!
//! There is one policy for all of them, so that none can be forgotten:
//!
//! - [`client`]: a client that repeats nothing by itself and waits for no answer for ever
//! - [`patience`]: `Retry-After` of one answer holds for every request of the client
//! - [`gate`], [`queue`]: requests about clusters keep to one rate, each cluster in its turn
//! - [`informer`], [`pages`]: the one loop that lists and watches; objects are read one by one
//! - [`backoff`]: how long it waits after a failure
//! - [`health`]: which watches are well, since when they are not, and why

pub mod backoff;
pub mod client;
pub mod error_chain;
pub mod gate;
pub mod health;
pub mod informer;
pub mod pages;
pub mod patience;
pub mod queue;

pub use client::ApiServer;
pub use gate::{Gate, NotAdmitted, Pass};
pub use health::{Beacon, Watches};
pub use informer::{Event, ObjectName, Selection, follow};
pub use patience::Patience;

/// Where objects are watched, and where it is told how the watches are.
#[derive(Clone)]
pub struct Source {
    /// The client.
    pub client: kube::Client,
    /// The watches of the process.
    pub watches: Watches,
}
