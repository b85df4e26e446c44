//! Decides whether the webhooks fail closed; reading and writing are done elsewhere.

use serde_json::{Value, json};

use rayfit_core::path::FieldPath;
use rayfit_core::policy::resource::Condition;

/// The number of webhooks that have to be ready before Ray objects are refused without them: with
/// fewer, the restart of a single one would already cause refusals.
pub const ENOUGH: usize = 2;

/// The annotation on the webhook configuration that names the policy because of which it fails
/// closed.
pub const CLOSED_BY: &str = "rayfit.dev/fail-closed-by";

/// The current or intended state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Closing {
    /// The webhooks fail closed, because of this policy.
    Closed(String),
    /// The webhooks are to fail closed once enough of them are ready; this is how many are.
    Waiting(usize),
    /// The webhooks fail open.
    Open,
}

/// The action, and the state after it: `Some(true)` makes the webhooks fail closed, `Some(false)`
/// makes them fail open, and `None` changes nothing. `request` is the deciding policy with the state that it asks
/// for, `ready` the number of webhooks that answer, `by_us` true if it was the audit that made them fail closed.
pub fn decide(
    request: Option<(&str, bool)>,
    ready: usize,
    is_closed: bool,
    by_us: bool,
) -> (Option<bool>, Closing) {
    match request {
        // Also where no webhook is available any more: to refuse while none answers is what the
        // policy asked for.
        Some((policy, true)) if is_closed => (None, Closing::Closed(policy.to_owned())),
        Some((policy, true)) if ready >= ENOUGH => (Some(true), Closing::Closed(policy.to_owned())),
        Some((_, true)) => (None, Closing::Waiting(ready)),
        Some((_, false)) if is_closed => (Some(false), Closing::Open),
        // A state that the install made fail closed ends only where a policy says `failClosed: false`.
        None if is_closed && by_us => (Some(false), Closing::Open),
        _ => (None, Closing::Open),
    }
}

impl Closing {
    /// The condition for the status of the policy that asks for failing closed.
    pub fn condition(&self) -> Condition {
        let (status, reason, message) = match self {
            Self::Closed(policy) => (
                "True",
                "Closed",
                format!("Ray objects are refused while no webhook answers, as {policy} asks"),
            ),
            Self::Waiting(ready) => (
                "False",
                "TooFewReady",
                format!("{ready} of the {ENOUGH} webhooks that it needs are ready"),
            ),
            Self::Open => (
                "False",
                "Open",
                "Ray objects are stored without validation while no webhook answers".to_owned(),
            ),
        };
        Condition {
            type_: "FailClosed".to_owned(),
            status: status.to_owned(),
            reason: reason.to_owned(),
            message,
            ..Condition::default()
        }
    }
}

/// Recognizes a webhook that may fail closed: only those for Ray objects may.
fn can_close(webhook: &Value) -> bool {
    let name = webhook["name"].as_str().unwrap_or_default();
    rayfit_core::ray::Kind::ALL
        .into_iter()
        .any(|kind| name == format!("validate.{}.rayfit.dev", kind.name().to_lowercase()))
}

/// Recognizes a validating webhook configuration that fails closed for Ray objects.
pub fn is_closed(configuration: &Value) -> bool {
    let webhooks = configuration["webhooks"].as_array();
    webhooks
        .into_iter()
        .flatten()
        .any(|webhook| can_close(webhook) && webhook["failurePolicy"] == "Fail")
}

/// Recognizes a configuration that the audit made fail closed.
pub fn is_by_us(configuration: &Value) -> bool {
    configuration["metadata"]["annotations"]
        .get(CLOSED_BY)
        .is_some()
}

/// The JSON patch that makes a configuration fail closed because of `policy`, or fail open. It only
/// applies to the version that was read.
pub fn patch(configuration: &Value, policy: Option<&str>) -> Value {
    let metadata = &configuration["metadata"];
    let mut operations = vec![json!({
        "op": "test", "path": "/metadata/resourceVersion", "value": metadata["resourceVersion"],
    })];
    let webhooks = configuration["webhooks"].as_array().into_iter().flatten();
    let value = if policy.is_some() { "Fail" } else { "Ignore" };
    for (index, _) in webhooks
        .enumerate()
        .filter(|(_, webhook)| can_close(webhook))
    {
        let path = format!("/webhooks/{index}/failurePolicy");
        operations.push(json!({ "op": "add", "path": path, "value": value }));
    }
    let annotation = FieldPath::annotation(CLOSED_BY).pointer();
    match policy {
        Some(policy) => {
            // JSON Patch does not create parents, and a configuration may have no annotation yet.
            if metadata.get("annotations").is_none() {
                operations.push(json!({
                    "op": "add", "path": "/metadata/annotations", "value": {},
                }));
            }
            operations.push(json!({ "op": "add", "path": annotation, "value": policy }));
        }
        None if is_by_us(configuration) => {
            operations.push(json!({ "op": "remove", "path": annotation }));
        }
        None => {}
    }
    Value::Array(operations)
}

#[cfg(test)]
mod tests {
    use rayfit_core::manifests::{ManifestOptions, webhooks};

    use super::*;

    fn act(request: Option<bool>, ready: usize, is_closed: bool, by_us: bool) -> Option<bool> {
        let request = request.map(|closed| ("a", closed));
        decide(request, ready, is_closed, by_us).0
    }

    #[test]
    fn it_closes_only_once_enough_are_ready_and_stays_closed() {
        assert_eq!(act(Some(true), 1, false, false), None);
        assert_eq!(act(Some(true), ENOUGH, false, false), Some(true));
        assert_eq!(act(Some(true), 0, true, true), None);
    }

    #[test]
    fn one_field_opens_it_and_the_installs_own_choice_is_left_alone() {
        assert_eq!(act(Some(false), 0, true, false), Some(false));
        assert_eq!(act(None, 3, true, true), Some(false));
        assert_eq!(act(None, 3, true, false), None);
        assert_eq!(act(None, 3, false, false), None);
    }

    #[test]
    fn a_patch_closes_ray_objects_only_and_another_opens_them() {
        let installed = webhooks::validating(&ManifestOptions::default());
        let mut closed = installed.clone();
        closed["metadata"]["resourceVersion"] = "7".into();
        let apply = |configuration: &mut Value, patch: Value| {
            let patch: json_patch::Patch = serde_json::from_value(patch).unwrap();
            json_patch::patch(configuration, &patch).unwrap();
        };
        let close = patch(&closed, Some("strict"));
        apply(&mut closed, close);
        assert!(is_closed(&closed) && is_by_us(&closed));
        for webhook in closed["webhooks"].as_array().unwrap() {
            let expected = if can_close(webhook) { "Fail" } else { "Ignore" };
            assert_eq!(webhook["failurePolicy"], expected, "{}", webhook["name"]);
        }
        let open = patch(&closed, None);
        apply(&mut closed, open);
        assert!(!is_closed(&closed) && !is_by_us(&closed));
        assert_eq!(closed["webhooks"], installed["webhooks"]);
    }
}
