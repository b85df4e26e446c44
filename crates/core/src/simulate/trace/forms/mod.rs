//! The forms of recorded workloads, one file each. Every form is read into descriptions of jobs.
//!
//! In: the text of a recording. Out: descriptions of jobs, or an error with the line. Invariant: a recording that is
//! not understood gives no jobs.

pub(super) mod line;
pub(super) mod lines;
pub(super) mod ray_runs;
pub(super) mod ray_tasks;
pub(super) mod table;
