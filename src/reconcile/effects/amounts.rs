//! Amounts of resources in the patch of a pod.

use serde_json::{Map, Value};

use crate::snapshot::pod_object::Resources;

/// Patch fragment with the limits and requests of `names`.
pub(crate) fn written(resources: Resources, names: &[&str]) -> Value {
    let parts = [
        ("limits", resources.limits),
        ("requests", resources.requests),
    ];
    let parts = parts.map(|(part, amounts)| {
        let amounts = names.iter().filter_map(|name| {
            let amount = amounts.get(name)?;
            Some(((*name).to_owned(), Value::String(amount.to_string())))
        });
        (part.to_owned(), Value::Object(amounts.collect()))
    });
    let parts = parts.into_iter();
    let parts = parts.filter(|(_, amounts)| amounts.as_object().is_some_and(|all| !all.is_empty()));
    Value::Object(parts.collect::<Map<_, _>>())
}
