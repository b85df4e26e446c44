//! What a decision says: the [plan](plan), the [report](report) with its reasons, and how people read
//! them ([`display`]).
//!
//! Data only, which the other rooms make and the shell carries out. Nothing here decides.

pub(crate) mod cause;
pub(crate) mod display;
pub(crate) mod plan;
pub(crate) mod report;
pub(crate) mod resize_note;
pub(crate) mod step;
