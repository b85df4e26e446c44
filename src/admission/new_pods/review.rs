//! Reviews of new pods.

use serde_json::Value;

use super::owners::OwnerName;
use crate::admission::Webhook;
use crate::admission::objects::{objects, read};
use crate::admission::review::{Review, ReviewError};
use crate::admission::tree::{Detail, TreeBudget};
use crate::initial_size::{LeftAsMade, NewPod};

/// A pod whose RayCluster has to be read.
#[derive(Debug)]
pub struct OwnedPod {
    /// The pod, from the review.
    pub pod: NewPod,
    /// Its RayCluster.
    pub owner: OwnerName,
}

/// The longest UID of a review, in bytes: API servers send 36.
const LONGEST_UID: usize = 128;

/// A pod is created, and may be changed.
pub fn is_one(webhook: Webhook, review: &Review<'_>) -> bool {
    webhook == Webhook::Mutate
        && review.kind.group.is_empty()
        && review.kind.kind == "Pod"
        && review.sub_resource.is_empty()
        && review.operation == "CREATE"
}

/// The new pod of a review, or why it stays as it is made, whatever its RayCluster says.
pub fn new_pod(
    review: &Review<'_>,
    budget: &TreeBudget,
) -> Result<Result<OwnedPod, LeftAsMade>, ReviewError> {
    let (object, _) = objects(review)?;
    let pod = read(object, "object", Detail::Whole, budget)?;
    let Value::Object(pod) = pod else {
        return Err(ReviewError::NotAnObject("object"));
    };
    Ok(NewPod::read(&pod).and_then(|pod| {
        // The namespace is the request's: a pod is in that one whatever it says itself.
        let owner = OwnerName::new(&review.namespace, &pod.cluster);
        let owner = owner.ok_or(LeftAsMade::NoWorker)?;
        // It is held while the RayCluster is read, as the names are.
        if review.uid.len() > LONGEST_UID {
            return Err(LeftAsMade::NoWorker);
        }
        Ok(OwnedPod { pod, owner })
    }))
}
