//! The resources by which Ray ties tasks to a placement group: `CPU_group_<id>`, of one of its bundles
//! `CPU_group_<number>_<id>`. A node has them once the placement group is placed on it, as much of them as
//! its bundles there asked for. (Ray, `placement_group_util.h`, `FormatPlacementGroupResource`.)

use crate::plan::demand::names::{Name, Names};
use crate::plan::demand::shape::Shape;

/// The length of a placement group's id, in hexadecimal digits.
const DIGITS: usize = 36;

/// The id of the placement group that a resource belongs to, if it belongs to one.
fn of_resource(name: &str) -> Option<&str> {
    let (_, rest) = name.rsplit_once("_group_")?;
    let (bundle, id) = rest.split_once('_').unwrap_or(("0", rest));
    let is_id = id.len() == DIGITS && id.bytes().all(|digit| digit.is_ascii_hexdigit());
    (is_id && bundle.bytes().all(|digit| digit.is_ascii_digit())).then_some(id)
}

/// The resource by which a shape is tied to a placement group, with the id of that, if it is.
pub(crate) fn of_shape<'n>(names: &'n Names, shape: &Shape) -> Option<(Name, &'n str)> {
    let mut needs = shape.positive();
    needs.find_map(|(name, _)| Some((name, of_resource(names.text(name))?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_resources_of_placement_groups_belong_to_one() {
        let id = "0123456789abcdef0123456789abcdef0123";
        for name in [
            "CPU_group_",
            "bundle_group_12_",
            "my_group_x_group_",
            "memory_group_0_",
        ] {
            assert_eq!(of_resource(&format!("{name}{id}")), Some(id), "{name}");
        }
        let others = [
            "CPU",
            "a_group_b",
            "CPU_group_0123",
            "_group_",
            "CPU_group_x_",
        ];
        for name in others {
            assert_eq!(of_resource(name), None, "{name}");
        }
        assert_eq!(of_resource(&format!("CPU_group_x_{id}")), None);
        assert_eq!(of_resource(&format!("CPU_group_{id}f")), None);
    }
}
