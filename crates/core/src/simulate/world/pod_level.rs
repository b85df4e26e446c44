//! The resources of a pod as a whole (`spec.resources`), as the API server fills them in and checks them.

use crate::quantity::Quantity;
use crate::ray::resource::Amounts;
use crate::snapshot::pod_object::{PodSpec, Resources};
use crate::snapshot::requests::containers_want;

const NAMES: [&str; 2] = ["cpu", "memory"];

/// Fills in what a new pod with a limit as a whole requests as a whole: what its containers do, or else
/// the limit. (Kubernetes, `defaults.go`, `defaultPodRequests`.)
pub(super) fn fill_in(spec: &mut PodSpec) {
    let Resources { requests, limits } = spec.resources;
    if !limits.is_empty() {
        spec.resources.requests = requests.or(containers_want(spec)).or(limits);
    }
}

/// The API server's reason to refuse this spec for a pod that had another one.
pub(super) fn refusal(stored: &PodSpec, spec: &PodSpec) -> Option<String> {
    let whole = spec.resources;
    if whole.is_empty() {
        return None;
    }
    let sum = containers_want(spec);
    for name in NAMES {
        let above = |amount: Amounts, bound: Amounts| {
            let pair = amount.get(name).zip(bound.get(name));
            pair.is_some_and(|(amount, bound)| amount > bound)
        };
        // (Kubernetes, `validation.go`, `validatePodResourceConsistency`.)
        if above(sum, whole.requests) {
            let at = format!("spec.resources.requests[{name}]");
            return Some(format!(
                "{at}: must be greater than or equal to aggregate container requests"
            ));
        }
        let mut containers = spec.containers.iter().enumerate();
        let larger = containers.find(|(_, one)| above(one.resources.limits, whole.limits));
        if let Some((index, _)) = larger {
            let at = format!("spec.resources.containers[{index}][{name}].limits");
            return Some(format!("{at}: must be less than or equal to pod limits"));
        }
        if above(whole.requests, whole.limits) {
            let at = format!("spec.resources.requests[{name}]");
            return Some(format!("{at}: must be less than or equal to {name} limit"));
        }
    }
    // (`ValidatePodResize`.)
    let changes_class = is_guaranteed(stored.resources) != is_guaranteed(whole);
    changes_class.then(|| "spec: Pod QOS Class may not change as a result of resizing".to_owned())
}

/// Checks whether a pod with these resources as a whole is of the quality-of-service class Guaranteed. (`qos.go`.)
/// The reconciler's own function for that is not used here: a fault in it has to show in what is refused.
fn is_guaranteed(whole: Resources) -> bool {
    NAMES.into_iter().all(|name| {
        let request = whole.requests.get(name).unwrap_or_default();
        request > Quantity::ZERO && Some(request) == whole.limits.get(name)
    })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn spec(whole: &Value, ray: &Value) -> PodSpec {
        serde_json::from_value(json!({"resources": whole, "containers": [
            {"name": "ray", "resources": ray},
            {"name": "logs", "resources": {"requests": {"cpu": "500m"}}},
        ]}))
        .unwrap()
    }

    #[test]
    fn requests_are_filled_in_only_beside_limits() {
        let ray = json!({"limits": {"cpu": "1"}});
        let filled = |whole: Value| {
            let mut spec = spec(&whole, &ray);
            fill_in(&mut spec);
            spec.resources
        };
        let limits = json!({"cpu": "4", "memory": "2Gi"});
        let both = json!({"limits": limits, "requests": {"cpu": "1500m", "memory": "2Gi"}});
        let requests = json!({"requests": {"memory": "2Gi"}});
        for (whole, expected) in [
            (json!({ "limits": limits }), both),
            (json!({}), json!({})),
            (requests.clone(), requests),
        ] {
            assert_eq!(filled(whole), spec(&expected, &ray).resources);
        }
    }

    #[test]
    fn a_resize_is_held_to_the_pod_as_a_whole() {
        let of = |request: &str, ray: &str| {
            let whole = json!({"requests": {"cpu": request, "memory": "2Gi"}, "limits": {"cpu": "4", "memory": "2Gi"}});
            spec(
                &whole,
                &json!({"limits": {"cpu": ray}, "requests": {"cpu": ray}}),
            )
        };
        let before = of("1500m", "1");
        for (request, ray, why) in [
            ("3", "2500m", None),
            ("2999m", "2500m", Some("aggregate container requests")),
            ("5", "4500m", Some("less than or equal to pod limits")),
            ("4500m", "4", Some("less than or equal to cpu limit")),
            ("4", "3", Some("QOS Class")),
        ] {
            let refusal = refusal(&before, &of(request, ray));
            match why {
                Some(why) => assert!(
                    refusal.as_ref().is_some_and(|said| said.contains(why)),
                    "{request}, {ray}: {refusal:?}"
                ),
                None => assert_eq!(refusal, None, "{request}, {ray}"),
            }
        }
    }
}
