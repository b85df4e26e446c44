//! Decisions about reviews, by the functions of the core.

use k8s_openapi::jiff::Timestamp;
use rayfit_core::defaults::{self, DefaultPatch};
use rayfit_core::initial_size::{Enlarged, LeftAsMade};
use rayfit_core::judge::{self, Verdict};
use rayfit_core::policy::EffectivePolicy;
use rayfit_core::ray::{Kind, RayObject};
use rayfit_core::raypolicy;
use rayfit_core::raypolicy::compile;
use rayfit_core::raypolicy::review::PolicyReview;

use super::new_pods::OwnerUnread;
use super::review::{Review, ReviewError};
use super::skip::skip_update;
use super::tree::{self, Detail, TreeArena};
use super::{Webhook, resize};
use crate::telemetry::reviews::ReviewOutcome;

/// The decision about a request.
#[derive(Debug)]
pub enum ReviewDecision {
    /// Allowed without reading the object, with this outcome.
    Skipped(ReviewOutcome),
    /// Denied unread, because its tree would be too large (validating webhook).
    TooMuch(ReviewError),
    /// Checked (validating webhook).
    Judged(Verdict),
    /// Filled in (mutating webhook).
    Defaulted(DefaultPatch),
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
    arena: &TreeArena,
) -> Result<ReviewDecision, ReviewError> {
    let is_stored = matches!(&*review.operation, "CREATE" | "UPDATE");
    let (group, kind) = (&*review.kind.group, &*review.kind.kind);
    let kind = match (webhook, group, kind, &*review.sub_resource) {
        (Webhook::Validate, "rayfit.dev", "RayPolicy", "") if is_stored => {
            return review_policy(review, policy, now, arena).map(ReviewDecision::Policy);
        }
        (Webhook::Validate, "", "Pod", "resize") if review.operation == "UPDATE" => {
            return resize::judge(review, policy, now, arena).map(ReviewDecision::Judged);
        }
        (_, "ray.io", kind, "") if is_stored => Kind::from_name(kind),
        _ => None,
    };
    let Some(kind) = kind else {
        return Ok(ReviewDecision::Skipped(ReviewOutcome::NotJudged));
    };
    let (object, old) = review.objects()?;
    if let Some(outcome) = old.and_then(|old| skip_update(webhook, object, old)) {
        return Ok(ReviewDecision::Skipped(outcome));
    }
    let read = |raw, field| tree::read_fields(raw, field, Detail::Judged, arena);
    let trees = read(object, "object").and_then(|object| {
        let old = old.map(|old| read(old, "oldObject")).transpose()?;
        Ok((object, old))
    });
    let (object, old) = match trees {
        // A failed call would have it stored unchecked where the webhooks fail open, and its author can add to it
        // until it fails.
        Err(error @ ReviewError::TooMuch(_)) if webhook == Webhook::Validate => {
            return Ok(ReviewDecision::TooMuch(error));
        }
        trees => trees?,
    };
    let object = RayObject::of_kind(kind, object);
    let old = old.map(|old| RayObject::of_kind(kind, old));
    let settings = policy.settings_for(&object, now);
    Ok(match webhook {
        Webhook::Mutate => {
            ReviewDecision::Defaulted(defaults::patch(&object, old.as_ref(), &settings))
        }
        Webhook::Validate => ReviewDecision::Judged(judge::judge(
            &object,
            old.as_ref(),
            Some(&review.user_info.username),
            &policy.facts,
            &settings,
        )),
    })
}

/// Validates a RayPolicy. If only the stored one cannot be read, all problems count as new.
fn review_policy(
    review: &Review<'_>,
    policy: &EffectivePolicy,
    now: Timestamp,
    arena: &TreeArena,
) -> Result<PolicyReview, ReviewError> {
    let (object, old) = review.objects()?;
    let read = |raw, field| tree::read(raw, field, Detail::Whole, arena);
    // Unknown keys are found in values. A copy takes less than what reading was counted with and has given back.
    let new = compile::read(&read(object, "object")?.to_value());
    let old = old.map(|old| read(old, "oldObject")).transpose()?;
    let old = old.map(|old| compile::read(&old.to_value()));
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
