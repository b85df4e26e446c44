//! From a plan to what is done about it, and from what came of it to the next round.
//!
//! In come a [`Snapshot`](crate::snapshot::Snapshot), the [`RoundMemory`] of the rounds before and
//! [`ReconcilerSettings`]; out comes a [`Round`]: [`Chain`]s of [`Effect`]s, and what is to be said.
//! [`round()`] makes it, or [`blind()`] where the cluster cannot be seen. The shell performs the effects,
//! and [`RoundMemory::fold`] takes in what came of them and says what is new to people. Everything
//! here is data and pure functions: the shell asks the API server and the GCS, and has the clock.
//!
//! # The modules
//!
//! - [`ownership`]: may this process scale the cluster at all, and is it its turn
//! - [`observed`]: whether anything moves, whether the cluster can be seen, when to look again
//! - [`effects`]: from a plan to chains of calls; what a call that failed means
//! - [`ray_state`]: what Ray is told of its scaling
//! - [`memory`]: what the next round knows: waits, what was reported, the planner's history
//! - [`recorder`]: which Events and lines for drivers are new; [`events`] has their form
//!
//! Beside them stand `decide` (how a round is made), [`mod@round`] (what it is), [`unchanged`] (whether
//! it can be spared), and [`settings`].
//!
//! # Invariants
//!
//! - Nothing that has to survive is kept in memory alone. A process that is killed between any two
//!   effects leaves objects from which the next round finishes the work.
//! - Nothing is done on missing data.
//! - What breaks a rule of [`plan::check`](crate::plan::check) is left out of a round, and said.
//! - A failure stops only what it is about: one pod, one group, or the patch of the RayCluster.

mod decide;
pub mod effects;
pub mod events;
pub mod memory;
pub mod observed;
pub mod ownership;
pub mod ray_state;
pub mod recorder;
pub mod round;
pub mod settings;
pub mod unchanged;

pub use crate::reconcile::effects::chain::Chain;
pub use crate::reconcile::effects::done::Done;
pub use crate::reconcile::effects::effect::{Effect, EffectTarget, Reply};
pub use crate::reconcile::effects::failure::{Failure, Meaning};
pub use crate::reconcile::events::event::{Announcements, ClusterEvent};
pub use crate::reconcile::observed::blind::{Blind, HeadPod};
pub use crate::reconcile::ownership::eligibility::{
    Eligibility, Ineligible, ScalerRole, eligibility,
};
pub use crate::reconcile::ownership::handover::{Handover, HandoverRecord, HandoverStep};
pub use crate::reconcile::unchanged::UnchangedCheck;
pub use decide::{blind, round};
pub use memory::RoundMemory;
pub use round::{Round, Skipped};
pub use settings::ReconcilerSettings;
