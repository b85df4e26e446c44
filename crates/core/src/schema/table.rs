//! The fields of KubeRay's custom resources, one table for each version of KubeRay.
//!
//! `tests/fields/` writes the tables from KubeRay's CRDs. A line is a type, whose number is that of the line;
//! types refer to others by number: `object name=0 image=0!` (the exclamation mark: required), `list 3`, `map 0`,
//! `string Always Never` (only these values), `integer 0` (the least value), `int32 0` (of 32 bits, too), `any`
//! (not checked). The last lines name the types of whole objects.

use std::sync::LazyLock;

use crate::path::{FieldPath, Segment};
use crate::ray::RayVersion;

/// The types of values.
#[derive(Debug)]
pub(super) enum SchemaType {
    Any,
    /// One of these texts; any text if there are none.
    Text(Vec<&'static str>),
    Integer {
        least: Option<i64>,
        /// KubeRay reads it into 32 bits.
        is_short: bool,
    },
    Number,
    Boolean,
    /// A text or an integer.
    Quantity,
    List(usize),
    Map(usize),
    Object(Vec<SchemaField>),
}

/// A field of an object.
#[derive(Debug)]
pub(super) struct SchemaField {
    pub(super) name: &'static str,
    pub(super) value: usize,
    pub(super) is_required: bool,
}

/// The types of one version of KubeRay.
#[derive(Debug)]
pub(super) struct FieldTable {
    types: Vec<SchemaType>,
    /// The types of whole objects, by kind and API version.
    kinds: Vec<(&'static str, usize)>,
}

/// A version of KubeRay with its table, which is read on first use.
pub(super) type KubeRayRelease = (RayVersion, LazyLock<FieldTable>);

// Read on first use, because most processes check no manifest, and then mostly for one version.
static RELEASES: [KubeRayRelease; 4] = [
    (
        RayVersion::new(1, 4, 0),
        LazyLock::new(|| FieldTable::read(include_str!("kuberay-1.4.txt"))),
    ),
    (
        RayVersion::new(1, 5, 0),
        LazyLock::new(|| FieldTable::read(include_str!("kuberay-1.5.txt"))),
    ),
    (
        RayVersion::new(1, 6, 0),
        LazyLock::new(|| FieldTable::read(include_str!("kuberay-1.6.txt"))),
    ),
    (
        RayVersion::new(1, 7, 0),
        LazyLock::new(|| FieldTable::read(include_str!("kuberay-1.7.txt"))),
    ),
];

/// The table of `kuberay`: of a version between those that are known the earlier one, of an older one the
/// first.
pub(super) fn release(kuberay: RayVersion) -> &'static KubeRayRelease {
    let [first, ..] = &RELEASES;
    let releases = RELEASES.iter().rev();
    releases
        .into_iter()
        .find(|(version, _)| *version <= kuberay)
        .unwrap_or(first)
}

/// The releases after `kuberay`, oldest first.
pub(super) fn later(kuberay: RayVersion) -> impl Iterator<Item = &'static KubeRayRelease> {
    RELEASES
        .iter()
        .filter(move |(version, _)| *version > kuberay)
}

impl FieldTable {
    fn read(text: &'static str) -> Self {
        let mut table = Self {
            types: Vec::new(),
            kinds: Vec::new(),
        };
        for line in text.lines() {
            let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
            if word == "kind" {
                table
                    .kinds
                    .extend(rest.split_once(' ').map(|(name, at)| (name, number(at))));
            } else {
                table.types.push(SchemaType::read(word, rest));
            }
        }
        table
    }

    /// The type with that number; one that is not checked if there is none.
    pub(super) fn get(&self, number: usize) -> &SchemaType {
        self.types.get(number).unwrap_or(&SchemaType::Any)
    }

    /// The type of objects of that kind and API version (`RayCluster/v1`).
    pub(super) fn of_kind(&self, kind: &str) -> Option<&SchemaType> {
        let kind_entry = self.kinds.iter().find(|(name, _)| *name == kind);
        kind_entry.map(|(_, number)| self.get(*number))
    }

    /// The type at `path` in objects of that kind and API version.
    pub(super) fn at(&self, kind: &str, path: &FieldPath) -> Option<&SchemaType> {
        let root = self.of_kind(kind)?;
        path.segments().iter().try_fold(root, |of, segment| {
            let number = match (of, segment) {
                (SchemaType::List(item) | SchemaType::Map(item), _) => *item,
                (_, Segment::Key(key)) => of.field(key)?.value,
                _ => return None,
            };
            Some(self.get(number))
        })
    }
}

impl SchemaType {
    fn read(word: &str, rest: &'static str) -> Self {
        let words = rest.split_ascii_whitespace();
        match word {
            "string" => Self::Text(words.collect()),
            // KubeRay's CRDs bound few numbers; a field without a bound has no number on its line.
            "integer" | "int32" => Self::Integer {
                least: rest.parse().ok(),
                is_short: word == "int32",
            },
            "number" => Self::Number,
            "boolean" => Self::Boolean,
            "quantity" => Self::Quantity,
            "list" => Self::List(number(rest)),
            "map" => Self::Map(number(rest)),
            "object" => Self::Object(words.filter_map(SchemaField::read).collect()),
            _ => Self::Any,
        }
    }

    /// The fields of an object; none of another type.
    pub(super) fn fields(&self) -> &[SchemaField] {
        match self {
            Self::Object(fields) => fields,
            _ => &[],
        }
    }

    /// The field of that name.
    pub(super) fn field(&self, name: &str) -> Option<&SchemaField> {
        self.fields().iter().find(|field| field.name == name)
    }
}

impl SchemaField {
    fn read(word: &'static str) -> Option<Self> {
        let (name, value) = word.split_once('=')?;
        Some(Self {
            name,
            value: number(value.trim_end_matches('!')),
            is_required: value.ends_with('!'),
        })
    }
}

/// A number of a table; one that names no type if it is none.
fn number(text: &str) -> usize {
    text.parse().unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_refer_to_types_above_only() {
        for (version, table) in &RELEASES {
            for (number, of) in table.types.iter().enumerate() {
                let above = |other: usize| other < number;
                let is_right = match of {
                    SchemaType::List(item) | SchemaType::Map(item) => above(*item),
                    SchemaType::Object(fields) => fields.iter().all(|field| above(field.value)),
                    _ => true,
                };
                assert!(is_right, "KubeRay {version}, line {}", number + 1);
            }
            assert!(table.of_kind("RayCluster/v1").is_some(), "{version}");
        }
    }

    #[test]
    fn the_nearest_release_that_is_not_later_decides() {
        let of = |minor, patch| release(RayVersion::new(1, minor, patch)).0.minor;
        assert_eq!([of(3, 0), of(4, 2), of(6, 2), of(9, 0)], [4, 4, 6, 7]);
        assert_eq!(later(RayVersion::new(1, 5, 1)).count(), 2);
    }
}
