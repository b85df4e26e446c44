//! The forms in which workloads come, one file each: descriptions of jobs are made of all of them.

pub(super) mod line;
pub(super) mod lines;
pub(super) mod ray_runs;
pub(super) mod ray_tasks;
pub(super) mod ray_timeline;
pub(super) mod table;
pub(super) mod wfformat;
