//! Faults: simulations in which things go wrong, and the rules that must hold all the same.
//!
//! A simulation takes a [`plan::FaultPlan`]: a scene and a list of faults, which are also lines of JSON that
//! a person can write. It returns the first rule that was broken, with the last entries of the log.
//!
//! - [`plan`]: faults, and when, as data; [`draw`] makes such a plan from a seed,
//!   `draw_last` what it got last
//! - [`scene`]: the cluster, the jobs and the world in which they happen; [`standby`] has what a policy
//!   keeps ready there
//! - `inspect`: what checks see of a world
//! - [`violation`]: the rules; [`checker`] checks them after every event, with `harm` for the work that
//!   runs
//! - [`neighbours`]: several clusters at the same time, whose requests pass one gate; `shared` has what
//!   those of one world share
//! - `hangs`: kubelets that come to no end with a pod
//! - `trouble`: what is wrong with a world now; `answers` and `losses` have what follows, `lies` what a GCS
//!   says that is not so, `head` the loss of a head; `log` is what was done
//! - [`replicas`]: several processes, and the Lease by which one of them scales the cluster
//! - [`gate`]: the requests of several clusters on their way to one API server
//! - [`trial`]: one simulation with faults, and what happens after the last of them; `inject` has what
//!   each fault does, `servable` what must be so in the end
//!
//! Invariant: equal plans give equal results.

mod answers;
pub(crate) mod checker;
pub(crate) mod draw;
mod draw_last;
pub(crate) mod gate;
mod hangs;
mod harm;
pub(crate) mod head;
mod inject;
pub(crate) mod inspect;
mod lies;
mod log;
pub(crate) mod losses;
pub(crate) mod neighbours;
pub(crate) mod plan;
pub(crate) mod replicas;
pub(crate) mod scene;
mod servable;
mod shared;
pub(crate) mod standby;
pub(crate) mod trial;
pub(crate) mod trouble;
pub(crate) mod violation;
