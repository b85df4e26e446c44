//! From a review to a decision, by the functions of the core.

use k8s_openapi::jiff::Timestamp;
use serde_json::Value;
use serde_json::value::RawValue;

use super::new_pods::OwnerUnread;
use super::objects::{objects, read};
use super::review::{Review, ReviewError};
use super::skip::{self, Skip};
use super::tree::{Detail, TreeBudget};
use super::{Webhook, resize};
use crate::defaults::{self, Defaulted};
use crate::facts::Facts;
use crate::initial_size::{self, Enlarged, LeftAsMade, NewPod, OwnerCluster};
use crate::judge::Verdict;
use crate::policy::{EffectivePolicy, Settings};
use crate::ray::{Kind, RayObject};
use crate::raypolicy::compile;
use crate::raypolicy::review::PolicyReview;
use crate::{judge, raypolicy};

/// The signature of [`judge::judge`].
pub type Judge =
    fn(&RayObject<'_>, Option<&RayObject<'_>>, Option<&str>, &Facts, &Settings) -> Verdict;

/// The signature of [`defaults::patch`].
pub type Patch = fn(&RayObject<'_>, Option<&RayObject<'_>>, &Settings) -> Defaulted;

/// The two functions of the core that webhooks call; tests put others in their place.
#[derive(Debug, Clone, Copy)]
pub struct Engine {
    /// Checks an object.
    pub judge: Judge,
    /// Fills in defaults.
    pub patch: Patch,
}

impl Default for Engine {
    fn default() -> Self {
        Self {
            judge: judge::judge,
            patch: defaults::patch,
        }
    }
}

/// The decision about a request.
#[derive(Debug)]
pub enum Decision {
    /// Allowed without reading the object.
    Skipped(Skip),
    /// Denied unread, because its tree would be too large (validating webhook).
    TooMuch(ReviewError),
    /// Checked (validating webhook).
    Judged(Verdict),
    /// Filled in (mutating webhook).
    Defaulted(Defaulted),
    /// A RayPolicy, which was itself validated.
    Policy(PolicyReview),
    /// A new pod, which gets the initial size that its RayCluster says.
    Enlarged(Enlarged),
    /// A new pod, which stays as it is made.
    LeftAsMade(LeftAsMade),
    /// A new pod, which stays as it is made because its RayCluster was not read.
    OwnerUnread(OwnerUnread),
}

/// Decides about one review, which arrived at `now`.
pub fn decide(
    webhook: Webhook,
    review: &Review<'_>,
    policy: &EffectivePolicy,
    now: Timestamp,
    engine: Engine,
    budget: &TreeBudget,
) -> Result<Decision, ReviewError> {
    if webhook == Webhook::Validate && is_policy(review) {
        return review_policy(review, policy, now, budget).map(Decision::Policy);
    }
    if webhook == Webhook::Validate && resize::is_one(review) {
        return Ok(Decision::Judged(resize::judge(
            review, policy, now, budget,
        )?));
    }
    let kind = match skip::kind_to_judge(review) {
        Ok(kind) => kind,
        Err(skip) => return Ok(Decision::Skipped(skip)),
    };
    let (object, old) = objects(review)?;
    if let Some(skip) = old.and_then(|old| skip::skip_update(webhook, object, old)) {
        return Ok(Decision::Skipped(skip));
    }
    let read = |raw: &RawValue, field| read(raw, field, Detail::Judged, budget);
    let trees = read(object, "object").and_then(|object| {
        let old = old.map(|old| read(old, "oldObject")).transpose()?;
        Ok((object, old))
    });
    let (object, old) = match trees {
        // A failed call would have it stored unchecked where the webhooks fail open, and its author can add to it
        // until it fails.
        Err(error @ ReviewError::TooMuch(_)) if webhook == Webhook::Validate => {
            return Ok(Decision::TooMuch(error));
        }
        read => read?,
    };
    let object = view(kind, &object, "object")?;
    let old = old
        .as_ref()
        .map(|old| view(kind, old, "oldObject"))
        .transpose()?;
    let settings = policy.settings_for(&object, now);
    Ok(match webhook {
        Webhook::Mutate => Decision::Defaulted((engine.patch)(&object, old.as_ref(), &settings)),
        Webhook::Validate => Decision::Judged((engine.judge)(
            &object,
            old.as_ref(),
            Some(&review.user_info.username),
            &policy.facts,
            &settings,
        )),
    })
}

/// Decides about a new pod at `now`, in seconds since 1970, by what its RayCluster says.
pub fn of_new_pod(
    pod: &NewPod,
    owner: Result<Option<OwnerCluster>, OwnerUnread>,
    now: f64,
) -> Decision {
    let owner = match owner {
        Ok(owner) => owner.ok_or(LeftAsMade::AnotherOwner),
        Err(unread) => return Decision::OwnerUnread(unread),
    };
    owner
        .and_then(|owner| initial_size::enlarged(pod, &owner, now))
        .map_or_else(Decision::LeftAsMade, Decision::Enlarged)
}

/// A RayPolicy is created or updated.
fn is_policy(review: &Review<'_>) -> bool {
    review.kind.group == "rayfit.dev"
        && review.kind.kind == "RayPolicy"
        && review.sub_resource.is_empty()
        && matches!(&*review.operation, "CREATE" | "UPDATE")
}

/// Validates a RayPolicy. If only the stored one cannot be read, all problems count as new.
fn review_policy(
    review: &Review<'_>,
    policy: &EffectivePolicy,
    now: Timestamp,
    budget: &TreeBudget,
) -> Result<PolicyReview, ReviewError> {
    let (object, old) = objects(review)?;
    let read = |raw: &RawValue, field| read(raw, field, Detail::Whole, budget);
    let new = compile::read(&read(object, "object")?);
    let old = old.map(|old| read(old, "oldObject")).transpose()?;
    let old = old.map(|old| compile::read(&old));
    let new = match new {
        Ok(new) => new,
        Err(fault) => {
            let stored = old.as_ref().and_then(|old| old.as_ref().err());
            return Ok(PolicyReview::of_unreadable(fault, stored));
        }
    };
    let old = old.and_then(Result::ok);
    let EffectivePolicy {
        facts, policies, ..
    } = policy;
    Ok(raypolicy::review::review(
        &new,
        old.as_ref(),
        policies,
        facts,
        now,
    ))
}

fn view<'a>(
    kind: Kind,
    value: &'a Value,
    field: &'static str,
) -> Result<RayObject<'a>, ReviewError> {
    let root = value.as_object().ok_or(ReviewError::NotAnObject(field))?;
    Ok(RayObject::of_kind(kind, root))
}
