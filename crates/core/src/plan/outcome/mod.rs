//! The outcome of a decision: the [plan], the [report] with its reasons, and both in
//! words for people ([`display`]).
//!
//! Reasons are types too, whose texts are made where they are declared: here, or in the `reason.rs` of the slice that
//! alone gives them.
//!
//! This module only holds data. Other modules of the planner make it, and the controller carries it
//! out. Nothing is decided here.
//!
//! In: nothing but values. Invariant: whatever a plan does or leaves has a reason here that a person can read.

pub(crate) mod amounts;
pub(crate) mod cause;
pub(crate) mod display;
pub(crate) mod plan;
pub(crate) mod problem;
pub(crate) mod remark;
pub(crate) mod report;
pub(crate) mod resize_note;
pub(crate) mod step;
pub(crate) mod unmet;
