//! Flow control: which request to the API server may be sent next, and when. Pure: the time is an
//! argument.
//!
//! Requests wait by flow, which is one cluster's, and leave one after the other. What comes out is
//! whether a request may be sent now, at which time it is worth asking again, or that another request
//! has to end first. The controller acts on it with tasks that sleep; the simulator in virtual time.
//!
//! - [`patience`]: how long requests wait after the API server has asked clients to
//! - [`rate`]: how many requests may be sent in a second
//! - [`requests`]: the requests that wait, the flows' turns, and how many requests are under way
//!
//! Invariant: no flow takes what another one needs: turns are fair, and one flow has only a part of the
//! requests that may be under way.

pub mod patience;
pub mod rate;
pub mod requests;

pub use patience::Flow;
pub use requests::LAST;
