//! A trace: what a workload asked of Ray, and when, read from files of several forms.
//!
//! The result is one [`Trace`] whose parts are all checked: Ray can represent its amounts, parents come
//! before their children, times are finite.

mod assemble;
mod draft;
mod error;
mod forms;
mod hashed;
mod job;
mod loss;
mod read;
mod recording;
mod summary;

pub use error::{Place, TraceError};
pub use forms::line::{lines, schema};
pub use forms::ray_runs::{RayGroup, RayKind, RayRun};
pub use hashed::hash_names;
pub use job::{Job, JobDemand, JobShape, MemoryUse, PlacementStrategy, Trace};
pub use loss::Loss;
pub use read::{import, read};
pub use recording::{MOST_RUNS, RayHistory, Recording};
pub use summary::{JobChain, ShapeTotal, Summary, Widest};
