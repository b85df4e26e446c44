//! Questions about a group or a value that several rules ask.

use crate::json::Json;
use crate::path::FieldPath;
use crate::quantity::Quantity;
use crate::ray::{Container, Group, Resource};
use crate::text::shown;

/// The containers of a group's template, then its init containers, each with what makes its path.
pub(super) fn all_containers<'a>(
    group: &Group<'a>,
) -> impl Iterator<Item = (Container<'a>, impl Fn() -> FieldPath)> {
    let init = group.init_containers().map(|container| (container, true));
    let all = group.containers().map(|container| (container, false));
    all.chain(init).map(move |(container, is_init)| {
        let path = move || {
            if is_init {
                group.init_container_path(&container)
            } else {
                group.container_path(&container)
            }
        };
        (container, path)
    })
}

/// Claims devices for a container, by dynamic resource allocation.
pub(super) fn has_claims(container: &Container<'_>) -> bool {
    let resources = container.spec.below("resources");
    !resources.list("claims").is_empty()
}

/// The number of pods of each replica of a group. KubeRay takes a `numOfHosts` of 0 for 1.
pub(super) fn hosts(group: &Group<'_>) -> i64 {
    let hosts = group.integer("numOfHosts");
    hosts.filter(|hosts| *hosts > 0).unwrap_or(1)
}

/// The priority of a group, unless it is the same as none.
pub(super) fn priority<'a>(group: &Group<'a>) -> Option<Json<'a>> {
    let priority = group.spec.get("priority")?;
    (!priority.is_null() && priority.as_f64() != Some(0.0)).then_some(priority)
}

/// A quantity as a manifest writes it, without quotes.
pub(super) fn plain(value: Json<'_>) -> String {
    value.as_str().map_or_else(|| shown(value), str::to_owned)
}

/// The intended quantity of `32GB`, `4gb` or `512MB`.
pub(super) fn meant(text: &str, resource: Resource) -> Option<String> {
    let text = text.trim();
    let at = text.find(|c: char| c.is_ascii_alphabetic())?;
    let (number, unit) = text.split_at(at);
    let letter = match unit.to_ascii_lowercase().as_str() {
        "kb" | "kib" | "k" | "ki" => "Ki",
        "mb" | "mib" | "mi" => "Mi",
        "gb" | "gib" | "g" | "gi" => "Gi",
        "tb" | "tib" | "t" | "ti" => "Ti",
        _ => return None,
    };
    let meant = format!("{}{letter}", number.trim());
    let quantity = Quantity::parse(&meant).ok()?;
    let fits = resource == Resource::Memory && quantity <= resource.beyond_reason();
    (fits && quantity > Quantity::ZERO).then_some(meant)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn guesses_what_was_meant() {
        let memory = |text| meant(text, Resource::Memory);
        assert_eq!(memory("32GB").as_deref(), Some("32Gi"));
        assert_eq!(memory("512 mb").as_deref(), Some("512Mi"));
        assert_eq!(memory("eight"), None);
        assert_eq!(memory("-1GB"), None);
        assert_eq!(memory("9999TB"), None);
        assert_eq!(meant("32GB", Resource::Cpu), None);
    }
}
