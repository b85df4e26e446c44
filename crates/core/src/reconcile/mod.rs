//! From a plan to effects, and from their results to the next round.
//!
//! [`round()`] takes a [`Snapshot`](crate::snapshot::Snapshot), the [`RoundMemory`] of earlier rounds and
//! [`RoundSettings`], and returns a [`Round`]: [`Chain`]s of [`Effect`]s, and the conditions to
//! announce. [`blind()`] does so where the cluster cannot be observed. The shell performs the effects,
//! and [`RoundMemory::fold`] takes their results and returns the Events and messages that are new.
//! Everything here is data and pure functions: the shell asks the API server and the GCS, and reads the
//! clock.
//!
//! # The modules
//!
//! - [`ownership`]: whether this process may scale the cluster, and whether it owns it now
//! - [`observed`]: whether anything is in progress, whether the cluster can be observed, when to look again
//! - [`effects`]: from a plan to chains of calls; what a failed call means
//! - [`ray_state`]: what is reported to Ray about its scaling
//! - [`memory`]: what the next round knows: delays, what was reported, the planner's history
//! - [`recorder`]: which Events and messages for drivers are new; [`events`] has their form
//!
//! The files beside them: [`look`] (one look at a cluster from beginning to end), `decide` (how a round is made,
//! with an observation or without one), [`mod@round`] (its result), [`unchanged`] (whether a round can be skipped), and [`settings`].
//!
//! # Invariants
//!
//! - Nothing that has to survive is kept in memory alone. A process that is killed between any two
//!   effects leaves objects from which the next round finishes the work.
//! - Nothing is done on missing data.
//! - The parts of a plan that break a rule of [`plan::check`](crate::plan::check) are left out of a round,
//!   and reported.
//! - A failure stops only what it concerns: one pod, one group, or the patch of the RayCluster.

mod decide;
pub mod effects;
pub mod events;
pub mod look;
pub mod memory;
pub mod observed;
pub mod ownership;
pub mod ray_state;
pub mod recorder;
pub mod round;
pub mod settings;
pub mod unchanged;

pub use crate::reconcile::effects::chain::{Chain, Done};
pub use crate::reconcile::effects::effect::{Effect, EffectTarget, Reply};
pub use crate::reconcile::effects::failure::{Failure, Meaning};
pub use crate::reconcile::events::event::{Announcements, ClusterEvent};
pub use crate::reconcile::observed::blind::{Blind, HeadPod};
pub use crate::reconcile::ownership::eligibility::{Ineligible, eligibility};
pub use crate::reconcile::ownership::handover::{Handover, HandoverStep};
pub use crate::reconcile::ownership::record::{HandoverRecord, ScalerRole};
pub use crate::reconcile::unchanged::UnchangedCheck;
pub use decide::{blind, round};
pub use memory::RoundMemory;
pub use round::{Round, Skipped};
pub use settings::RoundSettings;
