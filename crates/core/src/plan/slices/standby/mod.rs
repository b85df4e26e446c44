//! Standby: what is kept ready though no demand needs it yet, which is headroom and the minima of schedules
//! ([`settings`]).
//!
//! It is demand of least priority. It is placed when all other demand has been; it takes no node, no
//! launch and no growth from that demand, and gives way to it. No pod grows because of it: room to
//! grow into counts as free, because it costs nothing until somebody needs it.
//!
//! `goals` says what is to be kept ready at a moment, `ready` finds the nodes for it (by `placement`), and `claims` what
//! demand still waits for, and which idle nodes go for that.

pub(crate) mod claims;
pub(crate) mod goals;
pub(crate) mod placement;
pub(crate) mod ready;
pub(crate) mod reason;
pub(crate) mod settings;
