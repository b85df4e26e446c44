//! Small pods stay: what idle pods below their resize limits cost less is spent on [keeping](keep) few of them for
//! long, by the [bursts] of work that were seen.

pub(crate) mod bursts;
pub(crate) mod keep;
pub(crate) mod reason;
