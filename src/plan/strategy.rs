//! The strategies: Ray's own decisions, and those by which Rayfit decides better.
//!
//! Strategy `Rayfit` differs from Ray in these improvements, which hold together and only together:
//!
//! - **settled first**: Demand is placed first on free resources, then on resizes in progress, then
//!   on running pods that grow, then on pending nodes at the size that they will have, and only
//!   then on new nodes. Ray mixes running and pending nodes, and counts launches without a pod at
//!   their base size, so it launches again for the same demand in every round.
//! - **node headroom**: A pod is never asked to grow beyond the headroom of its Kubernetes node, or
//!   beyond the resources of the pod as a whole: it grows to the largest size that fits, or a new
//!   pod is launched. A pod that starts counts as large as its node lets it become, and at its base
//!   size once the scheduler has had no node for it for long. Ray asks for the resize limits and
//!   learns the rest by refusals.
//! - **bounded suggestions**: The size that a refused resize suggests never goes below the base
//!   size or the resources in use, and it is forgotten: the first suggestion after one minute,
//!   the next one in a row after two, up to ten. Ray takes any number, even a negative one, and
//!   keeps it for ever.
//! - **believed refusals**: A resize that the kubelet calls infeasible without saying how much it
//!   could give is taken back at once. Ray waits for the resize timeout, and the demand waits
//!   with it.
//! - **retried resizes**: A pod may grow again after a failed resize: after one minute, then two,
//!   up to an hour. Ray bars it for the rest of its life.
//! - **no vain pods**: When an idle pod is removed because it could not grow to the size that it
//!   was launched for, its group goes into growth back-off: new pods of the group count at their
//!   base size for one minute, then two, up to an hour, and those without a node that are of no
//!   use at that size are given up. Where all demand fits at the base size, it does so as soon as a
//!   pod that starts is on a Kubernetes node without room. Ray counts them at their resize limits,
//!   and launches one after the other in vain.
//! - **mended raylets**: A raylet whose size differs from its pod's size is told the pod's size,
//!   in either direction. Ray only tells the raylets of resizes that it remembers.
//! - **shrinking in place**: A pod that has grown gives up what it has not used for a while. Ray
//!   leaves it at its size.
//! - **memory in use**: A pod whose work uses nearly all of its memory grows before that is killed,
//!   and gives back later what it does not use. Ray goes by what work has asked for.
//! - **initial sizes**: Where a single request needs more than the template of its group has, and a
//!   RayPolicy says so, new pods are made as large as that. Ray leaves it to the growth of pods,
//!   wherever the scheduler has put them.
//! - **small pods stay**: Half of what idle pods below their resize limits cost less is spent on
//!   keeping few of them for long. Ray removes all after the same time.
//! - **room for what waits**: Idle nodes go before their timeout where demand that waits can run
//!   in their room. Ray keeps them for their timeout.
//! - **blocked groups**: What pods, `scaleGate` and KubeRay say about a group that cannot be served
//!   now is read, and other groups are used first. Ray tries another group after an hour.
//! - **sizes as started**: New nodes count with what KubeRay passes to `ray start`: group resources in
//!   any case, MIG slices, Neuron cores. Ray derives less or more from the template.
//! - **pods that never come**: Pods that hang in termination, or that do not become Ray nodes in time,
//!   stand for nothing, and others are made where that helps. Ray waits for them, and gives up one
//!   whose raylet never joined after an hour.
//! - **whole placement groups**: The pods of a placement group of which not all get a Kubernetes
//!   node are given up after a while, and it is tried again later, one at a time. Ray keeps those
//!   that did, so that two placement groups may hold each other up.
//! - **nodes that leave**: Workers whose Kubernetes node is about to leave, or that are evicted,
//!   take no new work, room for their work is found elsewhere, and their Ray nodes are told by when
//!   they are gone. Ray finds out when the Ray node is dead.
//! - **used clusters stay**: A detached actor counts as use of a cluster that ends when nobody uses
//!   it. Ray counts drivers only.
//! - **gentle removal**: Nodes that a maximum forces out are drained, idle nodes first, and no
//!   new demand is placed on them. They are stopped after a time that a RayPolicy sets. Ray stops
//!   them at once, together with their work.
//! - **isolated faults**: The nodes of a removed group are drained, and a pod without the labels
//!   that Ray needs is reported as a problem. Ray's loop aborts on both.
//! - **no launch limit**: All nodes that are needed are launched at once. Ray launches ten nodes
//!   per round.
//! - **steady choices**: Of several nodes that are equally good the first one by name wins, and a
//!   resource that is used up still counts in scores, so that a round decides as the round before
//!   it. With Ray the order of its reports decides, and the score of a node falls the moment that
//!   one of its resources is used up.
//! - **settled replicas**: `replicas` is set to what is there and still needed in every round, in
//!   whole multi-host replicas, and the replicas of failed launches are given back. Ray's number
//!   drifts up.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The rules by which the planner decides.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Strategy {
    /// Decides with Ray's packing and the improvements on it that `docs/planner.md` lists.
    #[default]
    Rayfit,
    /// Decides exactly as Ray 2.60.0's autoscaler v2.
    Ray,
}

impl Strategy {
    /// True where the improvements on Ray hold.
    pub fn is_rayfit(self) -> bool {
        self == Self::Rayfit
    }
}
