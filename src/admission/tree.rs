//! Parsing raw objects into trees that borrow the text of the review and lie in memory with a limit.

use std::cell::{Cell, RefCell};
use std::fmt;

use bumpalo::Bump;
use rayfit_core::json::{Fields, Json};
use serde::de::{self, DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::Number;
use serde_json::value::RawValue;

use super::review::{ReviewError, json_fault};

/// The memory in which the trees of one review lie, with its limit. A text of seven megabytes can be constructed so that
/// its tree takes many times as much: `[],` is three bytes of text, but one value.
#[derive(Debug)]
pub struct TreeArena {
    memory: Bump,
    /// The bytes that are left; none once more than that was asked for.
    remaining: Cell<Option<usize>>,
}

/// The memory of an item of a list, and of a field with its key, in bytes: in the tree, and three times while its list
/// or object is read, where memory doubles.
const ITEM: usize = 4 * size_of::<Json<'_>>();
const FIELD: usize = 4 * size_of::<(&str, Json<'_>)>();

/// The memory of a number besides, which an item refers to.
const NUMBER: usize = 2 * size_of::<Number>();

/// The size of the findings in a group: about half a dozen.
const FOUND: usize = 4 << 10;

impl TreeArena {
    /// Memory for trees, up to a limit in bytes.
    pub fn of(all: usize) -> Self {
        Self {
            memory: Bump::new(),
            remaining: Cell::new(Some(all)),
        }
    }

    fn take<E: de::Error>(&self, bytes: usize) -> Result<(), E> {
        let remaining = self.remaining.get();
        let remaining = remaining.and_then(|remaining| remaining.checked_sub(bytes));
        self.remaining.set(remaining);
        remaining
            .map(drop)
            .ok_or_else(|| E::custom("too many values"))
    }

    fn number<E: de::Error>(&self, number: impl Into<Number>) -> Result<Json<'_>, E> {
        self.take(NUMBER)?;
        Ok(Json::Number(self.memory.alloc(number.into())))
    }
}

/// Parses the object in a field of a review, if the arena has memory left for its tree.
pub fn read<'t>(
    raw: &'t RawValue,
    field: &'static str,
    detail: Detail,
    arena: &'t TreeArena,
) -> Result<Json<'t>, ReviewError> {
    let open = OpenValues::default();
    let reader = TreeReader {
        detail,
        arena,
        open: &open,
    };
    reader
        .deserialize(&mut serde_json::Deserializer::from_str(raw.get()))
        .map_err(|error| {
            if arena.remaining.get().is_none() {
                ReviewError::TooMuch(field)
            } else {
                ReviewError::Object(field, json_fault(&error))
            }
        })
}

/// The fields of the object in a field of a review, parsed as [`read`] does.
pub fn read_fields<'t>(
    raw: &'t RawValue,
    field: &'static str,
    detail: Detail,
    arena: &'t TreeArena,
) -> Result<Fields<'t>, ReviewError> {
    let value = read(raw, field, detail, arena)?;
    value.as_object().ok_or(ReviewError::NotAnObject(field))
}

/// The part of a value that is parsed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Detail {
    /// All of it.
    Whole,
    /// A Ray object but for what no rule reads and controllers fill: its status and its managed fields.
    Judged,
    /// The metadata of a Ray object.
    Metadata,
    /// Worker groups, of which each may have findings.
    Groups,
    /// Nothing.
    Nothing,
}

impl Detail {
    /// The detail of the value at `key`. Items of a list have that of the list.
    fn below(self, key: &str) -> Self {
        match (self, key) {
            (Self::Judged, "metadata") => Self::Metadata,
            (Self::Judged, "status") | (Self::Metadata, "managedFields") => Self::Nothing,
            (_, "workerGroupSpecs") => Self::Groups,
            _ => Self::Whole,
        }
    }
}

/// The items and fields of the lists and objects that are not read to their end, the innermost last.
#[derive(Default)]
struct OpenValues<'t> {
    items: RefCell<Vec<Json<'t>>>,
    fields: RefCell<Vec<(&'t str, Json<'t>)>>,
}

/// Parses a value into the arena.
#[derive(Clone, Copy)]
struct TreeReader<'r, 't> {
    detail: Detail,
    arena: &'t TreeArena,
    open: &'r OpenValues<'t>,
}

impl<'de: 't, 't> DeserializeSeed<'de> for TreeReader<'_, 't> {
    type Value = Json<'t>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Json<'t>, D::Error> {
        if self.detail == Detail::Nothing {
            return deserializer
                .deserialize_ignored_any(de::IgnoredAny)
                .map(|_| Json::Null);
        }
        deserializer.deserialize_any(self)
    }
}

impl<'de: 't, 't> Visitor<'de> for TreeReader<'_, 't> {
    type Value = Json<'t>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Json<'t>, A::Error> {
        if self.detail == Detail::Groups {
            self.arena.take(FOUND)?;
        }
        let first = self.open.fields.borrow().len();
        let whole = TreeReader {
            detail: Detail::Whole,
            ..self
        };
        while let Some(Json::String(key)) = entries.next_key_seed(whole)? {
            self.arena.take(FIELD)?;
            let detail = self.detail.below(key);
            let value = entries.next_value_seed(TreeReader { detail, ..self })?;
            self.open.fields.borrow_mut().push((key, value));
        }
        let mut fields = self.open.fields.borrow_mut();
        let all = self.arena.memory.alloc_slice_copy(&fields[first..]);
        fields.truncate(first);
        Ok(Json::Object(all.into()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Json<'t>, A::Error> {
        let first = self.open.items.borrow().len();
        while let Some(item) = list.next_element_seed(self)? {
            self.arena.take(ITEM)?;
            self.open.items.borrow_mut().push(item);
        }
        let mut items = self.open.items.borrow_mut();
        let all: &[_] = self.arena.memory.alloc_slice_copy(&items[first..]);
        items.truncate(first);
        Ok(Json::Array(all.into()))
    }

    fn visit_unit<E>(self) -> Result<Json<'t>, E> {
        Ok(Json::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Json<'t>, E> {
        Ok(Json::Bool(value))
    }

    fn visit_u64<E: de::Error>(self, value: u64) -> Result<Json<'t>, E> {
        self.arena.number(value)
    }

    fn visit_i64<E: de::Error>(self, value: i64) -> Result<Json<'t>, E> {
        self.arena.number(value)
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> Result<Json<'t>, E> {
        // JSON has no number that is not finite.
        Number::from_f64(value).map_or(Ok(Json::Null), |number| self.arena.number(number))
    }

    fn visit_borrowed_str<E>(self, value: &'de str) -> Result<Json<'t>, E> {
        Ok(Json::String(value))
    }

    fn visit_str<E: de::Error>(self, value: &str) -> Result<Json<'t>, E> {
        // The body has it in other words, with escapes.
        self.arena.take(value.len())?;
        Ok(Json::String(self.arena.memory.alloc_str(value)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_in(text: &str, detail: Detail, bytes: usize) -> Result<serde_json::Value, ReviewError> {
        let raw = RawValue::from_string(text.to_owned()).unwrap();
        read(&raw, "object", detail, &TreeArena::of(bytes)).map(Json::to_value)
    }

    #[test]
    fn what_is_small_as_text_and_large_as_a_tree_is_refused_while_it_is_read() {
        for item in ["[[]],", "{},", "{\"\":0},", "0,", "[0],", "\"\","] {
            let text = format!("{{\"spec\":[{}0]}}", item.repeat(100_000));
            for detail in [Detail::Whole, Detail::Judged] {
                let refused = read_in(&text, detail, 8 << 20).unwrap_err();
                assert!(
                    matches!(refused, ReviewError::TooMuch(_)),
                    "{item}: {refused}"
                );
            }
        }
    }

    #[test]
    fn no_key_has_a_meaning_of_its_own() {
        let text = r#"{"$serde_json::private::RawValue":"[[],[]]"}"#;
        let tree = read_in(text, Detail::Whole, 10 << 10).unwrap();
        assert_eq!(tree["$serde_json::private::RawValue"], "[[],[]]");
    }
}
