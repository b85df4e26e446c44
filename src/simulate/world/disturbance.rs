//! The seam by which tests let things go wrong in a world. By default nothing does.

use std::fmt::Debug;
use std::rc::Rc;

use serde::{Deserialize, Serialize};

use crate::reconcile::{Effect, Failure, Reply};
use crate::simulate::world::queue::WorldEvent;
use crate::snapshot::cluster_object::ClusterObject;
use crate::snapshot::gcs::ClusterResourceState;
use crate::snapshot::pod_object::PodObject;

/// The faults of a world.
pub trait Disturbance: Debug {
    /// Gives a wrong answer to a call; without an effect the call writes the hand-over record.
    fn answer(&self, _effect: Option<&Effect>) -> Option<WrongAnswer> {
        None
    }

    /// Hears how a call was answered.
    fn answered(&self, _result: &Result<Reply, Failure>) {}

    /// Takes a request to the API server, so that it does not arrive by itself. Returns whether it did.
    fn holds(&self, _event: WorldEvent) -> bool {
        false
    }

    /// Whether the GCS does not answer.
    fn is_gcs_away(&self) -> bool {
        false
    }

    /// Changes what the GCS says. `head` is the name of the head's pod.
    fn falsify(&self, _state: &mut ClusterResourceState, _head: &str) {}

    /// Whether watchers hear of objects of a kind at once.
    fn hears(&self, _of: WatchedKind) -> bool {
        true
    }

    /// The RayCluster as reads show it, where they are out of date.
    fn read(&self) -> Option<Rc<ClusterObject>> {
        None
    }

    /// The kubelets' refusal of every resize, if they do not try.
    fn resize_refusal(&self) -> Option<ResizeRefusal> {
        None
    }

    /// Pods that carry the cluster's labels and are somebody else's.
    fn strangers(&self) -> Vec<PodObject> {
        Vec::new()
    }
}

/// Nothing goes wrong.
#[derive(Debug)]
pub struct Undisturbed;

impl Disturbance for Undisturbed {}

/// An answer that a call should not get.
#[derive(Debug, Clone)]
pub struct WrongAnswer {
    /// The answer.
    pub failure: Failure,
    /// Whether the call is carried out all the same.
    pub is_done: bool,
}

/// The kinds of watched objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WatchedKind {
    /// The RayCluster.
    RayCluster,
    /// Its pods.
    Pods,
    /// The Kubernetes nodes.
    Nodes,
}

/// A kubelet's refusal of a resize.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ResizeRefusal {
    /// The node has no room for it now.
    Deferred,
    /// The node can never hold it.
    Infeasible,
}
