//! Limits of a namespace: limit ranges and resource quotas.

use crate::json::Fields;
use crate::quantity::Quantity;
use crate::ray::resource::Amounts;

/// The amounts of a resource list whose names begin with `prefix`; an absent amount limits nothing.
fn amounts_of(list: Fields<'_>, prefix: &str) -> Amounts {
    Amounts::each(|resource| {
        let name = format!("{prefix}{}", resource.name());
        Quantity::from_json(list.get(&name)?).ok()
    })
}

fn name_of(object: Fields<'_>) -> String {
    let metadata = object.below("metadata");
    metadata.text("name").unwrap_or_default().to_owned()
}

/// The maxima of a LimitRange, and the limits that it gives.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LimitRange {
    /// Its name.
    pub name: String,
    /// The most that a container's limit may be.
    pub container_max: Amounts,
    /// The limits that a container gets if it names none itself.
    pub container_default: Amounts,
    /// The most that all limits of a pod may be together.
    pub pod_max: Amounts,
}

impl LimitRange {
    /// Reads a LimitRange object; an absent limit reads as no limit.
    pub fn read(object: Fields<'_>) -> Self {
        let amounts = |kind: &'static str, key: &'static str| {
            let limits = object.below("spec").list("limits");
            limits
                .objects()
                .filter(move |item| item.text("type") == Some(kind))
                .filter_map(move |item| item.object(key))
                .map(|map| amounts_of(map, ""))
        };
        let max_of = |kind| amounts(kind, "max").fold(Amounts::default(), Amounts::min);
        Self {
            name: name_of(object),
            container_max: max_of("Container"),
            // Kubernetes does not promise which of several defaults a container gets; rules ask for
            // the most that it may use.
            container_default: amounts("Container", "default")
                .fold(Amounts::default(), Amounts::max),
            pod_max: max_of("Pod"),
        }
    }
}

/// The bounds of a ResourceQuota for all pods of the namespace together.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ResourceQuota {
    /// Its name.
    pub name: String,
    /// The most that all requests may be together.
    pub requests: Amounts,
    /// The most that all limits may be together.
    pub limits: Amounts,
    /// The quota counts only some pods; which ones depends on more than their size.
    pub is_scoped: bool,
}

impl ResourceQuota {
    /// Reads a ResourceQuota object; an absent limit reads as no limit.
    pub fn read(object: Fields<'_>) -> Self {
        let spec = object.below("spec");
        let amounts = |prefix| amounts_of(spec.below("hard"), prefix);
        let mut scopes = spec.list("scopes").iter();
        let selector = spec.below("scopeSelector");
        Self {
            name: name_of(object),
            // `cpu` is short for `requests.cpu`.
            requests: amounts("requests.").min(amounts("")),
            limits: amounts("limits."),
            // Every pod that can be resized has requests, so `NotBestEffort` leaves none of them out.
            is_scoped: scopes.any(|scope| scope != "NotBestEffort")
                || !selector.list("matchExpressions").is_empty(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    #[test]
    fn reads_the_maxima_of_a_limit_range() {
        let object = json!({"metadata": {"name": "l"}, "spec": {"limits": [
            {"type": "Container", "max": {"cpu": "8", "memory": "16Gi"}, "min": {"cpu": "1"}},
            {"type": "Container", "max": {"cpu": "4"}, "default": {"cpu": "2"}},
            {"type": "Pod", "max": {"cpu": 10}},
            {"type": "PersistentVolumeClaim", "max": {"storage": "1Gi"}}, "x"]}});
        let range = LimitRange::read((&object).into());
        assert_eq!(range.container_max.cpu, Some(Quantity::from_units(4)));
        assert_eq!(range.container_max.memory, Quantity::parse("16Gi").ok());
        assert_eq!(range.container_default.cpu, Some(Quantity::from_units(2)));
        assert_eq!(range.pod_max.cpu, Some(Quantity::from_units(10)));
        assert_eq!(range.pod_max.memory, None);
        assert_eq!(LimitRange::read(Fields::default()), LimitRange::default());
    }

    #[test]
    fn reads_the_hard_limits_of_a_quota() {
        let object = json!({"metadata": {"name": "q"}, "spec": {
            "hard": {"cpu": "10", "requests.cpu": "8", "limits.memory": "1Ti", "pods": "5"}}});
        let quota = ResourceQuota::read((&object).into());
        assert_eq!(quota.requests.cpu, Some(Quantity::from_units(8)));
        assert_eq!(quota.limits.memory, Quantity::parse("1Ti").ok());
        assert_eq!((quota.limits.cpu, quota.requests.memory), (None, None));
        assert!(!quota.is_scoped);
    }

    #[test]
    fn knows_which_quotas_count_only_some_pods() {
        let scoped = |spec: Value| {
            let quota = json!({ "spec": spec });
            ResourceQuota::read((&quota).into()).is_scoped
        };
        assert!(!scoped(json!({"scopes": ["NotBestEffort"]})));
        assert!(scoped(json!({"scopes": ["Terminating"]})));
        assert!(scoped(
            json!({"scopeSelector": {"matchExpressions": [{"scopeName": "PriorityClass"}]}})
        ));
    }
}
