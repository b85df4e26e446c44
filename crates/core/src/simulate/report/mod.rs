//! A study as people read it: a table, and a page with charts. Everything here returns text and prints
//! nothing; equal studies give equal bytes.
//!
//! - [`table`]: the results of each simulation, in columns
//! - [`axis`], [`chart`]: axes with round numbers, and what SVG charts have in common
//! - [`lanes`]: several quantities over the same time, one under the other
//! - [`curve`]: demand and capacity of one simulation over time
//! - [`tradeoff`]: cost against waiting, of all simulations
//! - [`page`]: all of this as one HTML page
//! - [`recommendation`]: what a search has found

pub mod axis;
pub mod chart;
pub mod curve;
pub mod lanes;
pub mod page;
pub mod recommendation;
pub mod table;
pub mod tradeoff;
