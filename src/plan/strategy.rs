//! Where strategy `Rayfit` decides better than Ray, by name. Strategy `Ray` has none of them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How to decide.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Strategy {
    /// Ray's packing with the named [`Improvements`].
    #[default]
    Rayfit,
    /// Exactly as Ray 2.60.0's autoscaler v2.
    Ray,
}

/// The named improvements, each on or off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "independent switches, one per improvement"
)]
pub struct Improvements {
    /// Demand is met first by free room, then by growth in flight, then by growing running pods,
    /// then by pods on their way at the size they will have, and only then by new pods. Ray mixes
    /// running and pending nodes, and counts launches without a pod at base size, so it launches
    /// again for the same demand every round.
    pub settled_first: bool,
    /// No resize that the Kubernetes node cannot hold: straight to the largest that fits, or to
    /// a new pod. Ray asks for the cap and learns the rest by refusals.
    pub node_room: bool,
    /// A suggestion from a refused resize never goes below the base size or what is in use, and
    /// is forgotten: the first after a minute, then two, up to ten. Ray takes any number, negative ones too, for ever.
    pub bounded_suggestions: bool,
    /// What a node says that it can never do, and not what it could, is taken back at once. Ray
    /// waits for the timeout, and the demand with it.
    pub believed_refusals: bool,
    /// After a failed resize a pod may grow again: after a minute, then two, up to an hour. Ray
    /// bars it for life.
    pub retried_resizes: bool,
    /// When a pod goes for being idle because it could not grow to what it was made for, new pods
    /// of its group count at their first size: for a minute, then two, up to an hour. Ray counts
    /// them at their cap, and makes one after the other in vain.
    pub no_vain_pods: bool,
    /// A raylet whose size is not its pod's is told, in either direction. Ray only tells raylets
    /// of resizes that it remembers.
    pub mended_raylets: bool,
    /// Nodes that a maximum forces out are drained, idle ones first, and take no new demand. Ray
    /// stops them at once, with their work.
    pub gentle_removal: bool,
    /// A removed group drains and a pod without labels is reported. Ray's loop aborts on both.
    pub isolated_faults: bool,
    /// Everything that is needed is launched at once. Ray launches ten nodes per round.
    pub no_launch_cap: bool,
    /// Of nodes that are equally good the first by name wins, and a full resource counts in scores,
    /// so that a round decides as the one before it. With Ray the order of its reports decides, and
    /// a node's score falls the moment it is full.
    pub steady_choices: bool,
    /// Replicas are settled in every round, whole slices only, and those of failed launches are
    /// given back. Ray's drift up.
    pub settled_replicas: bool,
}

impl Strategy {
    /// What this strategy does better than Ray.
    pub fn improvements(self) -> Improvements {
        let on = self == Self::Rayfit;
        Improvements {
            settled_first: on,
            node_room: on,
            bounded_suggestions: on,
            believed_refusals: on,
            retried_resizes: on,
            no_vain_pods: on,
            mended_raylets: on,
            gentle_removal: on,
            isolated_faults: on,
            no_launch_cap: on,
            steady_choices: on,
            settled_replicas: on,
        }
    }
}
