//! From a plan to what is done about it, and from what came of it to the next round.
//!
//! A round is: see (a [`Snapshot`](crate::snapshot::Snapshot)), decide whether this cluster is
//! ours to scale ([`mod@standing`], [`tenure`]), plan, turn the plan into [`Effect`]s ([`mod@round`]),
//! let the shell perform them, and fold what came of them into the [`RoundMemory`] of the next round.
//! Everything here is data and pure functions: the shell asks the API server and the GCS, and
//! has the clock.
//!
//! Nothing that has to survive is kept in memory alone. A process that is killed between any two
//! effects finds in the objects what it needs to finish the work: the next round starts from
//! them.
//!
//! Reading order: [`settings`], [`mod@standing`] and [`tenure`] (may we act), [`effect`] and
//! [`chain`] (what can be done, and in which order), [`mod@round`] (one round, from a snapshot to
//! chains), `replicas`, `settling`, `resize`, `size` and `drain` (its parts), [`outcome`] (what a failure
//! means), [`memory`] and [`backoff`] (what the next round knows of it), `activity`, [`cadence`] and
//! [`stillness`] (when it is, and whether it can be spared), [`blind`] and [`outage`] (a cluster that
//! cannot be seen, and for how long), [`ray_status`], `failed_launches`,
//! `told` and [`driver_log`] (what Ray and its users see of it), [`news`], `deeds` and `states`
//! (what Kubernetes' users see).

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
pub use crate::reconcile::ownership::eligibility::{Eligibility, Ineligible, ScalerRole, standing};
pub use crate::reconcile::ownership::handover::{Handover, HandoverStep, OwnershipRecord};
pub use crate::reconcile::unchanged::UnchangedCheck;
pub use decide::{blind, round};
pub use memory::RoundMemory;
pub use round::{Round, Skipped};
pub use settings::ReconcilerSettings;
