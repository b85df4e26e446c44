//! The outcome of a decision: the [plan], the [report] with its reasons, and both in
//! words for people ([`display`]).
//!
//! This module only holds data. Other modules of the planner make it, and the controller carries it
//! out. Nothing is decided here.

pub(crate) mod cause;
pub(crate) mod display;
pub(crate) mod plan;
pub(crate) mod report;
pub(crate) mod resize_note;
pub(crate) mod step;
