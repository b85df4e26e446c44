//! The forms of recorded workloads, one file each. Every form is read into descriptions of jobs.

pub(super) mod line;
pub(super) mod lines;
pub(super) mod ray_runs;
pub(super) mod ray_tasks;
pub(super) mod ray_timeline;
pub(super) mod table;
pub(super) mod wfformat;
