//! A trace: what a workload asked of Ray, and when.
//!
//! Out comes one [`Trace`] whose parts are all checked: amounts are those that Ray can hold, parents
//! come before their children, times are finite.

mod job;

pub use job::{Demand, Job, MemoryUse, Shape, Strategy, Trace};
