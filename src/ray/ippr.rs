//! The `ray.io/ippr` annotation: which groups may grow in place, and how far.
//!
//! Ray reads it with a JSON schema (`groups` -> name -> `max-cpu`, `max-memory`,
//! `resize-timeout`, all three required) and aborts its whole loop on any fault. Here a fault
//! becomes a [`Problem`] and everything else is still read, so that rules can report all of it.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};

use crate::quantity::{Quantity, QuantityError};

/// The annotation on the RayCluster (or on the RayJob or RayService it is made from).
pub const ANNOTATION: &str = "ray.io/ippr";

/// The keys of a group's entry, all of them required.
pub const GROUP_KEYS: [&str; 3] = ["max-cpu", "max-memory", "resize-timeout"];

/// A correct annotation, shown where one is wrong.
pub const EXAMPLE: &str =
    r#"{"groups":{"workers":{"max-cpu":"8","max-memory":"32Gi","resize-timeout":300}}}"#;

/// Longer annotations are refused unread (Kubernetes allows 256 KiB for all annotations).
const MAX_LEN: usize = 256 * 1024;

/// The annotation, read as far as it can be.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Ippr {
    /// The groups it lists, in order, each name once.
    pub groups: Vec<GroupCaps>,
    /// What keeps Ray from reading it.
    pub problems: Vec<Problem>,
    /// Keys that Ray does not know, with the way to them.
    pub unknown_keys: Vec<KeyPlace>,
}

/// One group's entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupCaps {
    /// The group's name as listed.
    pub name: String,
    /// `max-cpu`, if there and of a right type.
    pub max_cpu: Option<Cap>,
    /// `max-memory`, likewise.
    pub max_memory: Option<Cap>,
    /// `resize-timeout` in seconds, likewise.
    pub resize_timeout: Option<i64>,
}

/// A cap as written and as read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cap {
    /// As written, without quotes.
    pub text: String,
    /// As a quantity.
    pub quantity: Result<Quantity, QuantityError>,
}

/// A key and the way to it from the annotation's root.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyPlace {
    /// The keys above it.
    pub parents: Vec<String>,
    /// The key.
    pub key: String,
}

/// What keeps Ray from reading the annotation as meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Problem {
    /// No JSON, with the parser's reason.
    NotJson(String),
    /// JSON, but no object.
    NotAnObject,
    /// Keys, but no `groups`: Ray ignores all of it silently.
    NoGroups,
    /// A value that is not the object it should be (`groups`, or a group's entry).
    NotAnObjectAt(KeyPlace),
    /// A group's entry lacks a key.
    Missing {
        /// The group.
        group: String,
        /// The key.
        key: &'static str,
    },
    /// A value of a type that Ray refuses.
    WrongType {
        /// The group.
        group: String,
        /// The key.
        key: &'static str,
        /// As written, shortened.
        found: String,
        /// What it may be.
        wanted: &'static str,
    },
    /// A key that stands twice in one object: all but the last are lost.
    Duplicate(KeyPlace),
}

impl Ippr {
    /// Reads the annotation's text. Empty, `{}` and `{"groups":{}}` list nothing and are fine.
    pub fn parse(text: &str) -> Self {
        let mut ippr = Self::default();
        if text.trim().is_empty() {
            return ippr;
        }
        if text.len() > MAX_LEN {
            ippr.problems
                .push(Problem::NotJson("it is longer than 256 KiB".to_owned()));
            return ippr;
        }
        match serde_json::from_str(text) {
            Ok(Json::Object(root)) => ippr.read_root(&root),
            Ok(_) => ippr.problems.push(Problem::NotAnObject),
            Err(error) => ippr.problems.push(Problem::NotJson(error.to_string())),
        }
        ippr
    }

    /// Lists a group of that name.
    pub fn lists(&self, group: &str) -> bool {
        self.caps(group).is_some()
    }

    /// The caps of the group of that name.
    pub fn caps(&self, group: &str) -> Option<&GroupCaps> {
        self.groups.iter().find(|entry| entry.name == group)
    }

    /// Ray can read it: nothing in it makes Ray's loop abort or ignore it. Caps that are no
    /// quantities are another matter (rule RF104).
    pub fn is_well_formed(&self) -> bool {
        self.problems.is_empty()
    }

    fn read_root(&mut self, root: &[(String, Json)]) {
        self.note_duplicates(root, &[]);
        if !root.is_empty() && !root.iter().any(|(key, _)| key == "groups") {
            self.problems.push(Problem::NoGroups);
        }
        for (key, value) in last_of_each(root) {
            match (key, value) {
                ("groups", Json::Object(groups)) => self.read_groups(groups),
                ("groups", _) => self
                    .problems
                    .push(Problem::NotAnObjectAt(place(&[], "groups"))),
                (other, _) => self.unknown_keys.push(place(&[], other)),
            }
        }
    }

    fn read_groups(&mut self, groups: &[(String, Json)]) {
        self.note_duplicates(groups, &["groups"]);
        for (name, value) in last_of_each(groups) {
            match value {
                Json::Object(entry) => self.read_group(name, entry),
                _ => self
                    .problems
                    .push(Problem::NotAnObjectAt(place(&["groups"], name))),
            }
        }
    }

    fn read_group(&mut self, name: &str, entry: &[(String, Json)]) {
        self.note_duplicates(entry, &["groups", name]);
        let mut caps = GroupCaps {
            name: name.to_owned(),
            max_cpu: None,
            max_memory: None,
            resize_timeout: None,
        };
        for (key, value) in last_of_each(entry) {
            let wrong = match key {
                "max-cpu" => {
                    caps.max_cpu = Cap::read(value);
                    caps.max_cpu
                        .is_none()
                        .then_some((GROUP_KEYS[0], "a string or a number"))
                }
                "max-memory" => {
                    caps.max_memory = Cap::read(value).filter(|_| !value.is_fraction());
                    caps.max_memory
                        .is_none()
                        .then_some((GROUP_KEYS[1], "a string or an integer"))
                }
                "resize-timeout" => {
                    caps.resize_timeout = value.as_integer();
                    caps.resize_timeout
                        .is_none()
                        .then_some((GROUP_KEYS[2], "an integer number of seconds"))
                }
                other => {
                    self.unknown_keys.push(place(&["groups", name], other));
                    None
                }
            };
            if let Some((key, wanted)) = wrong {
                let (group, found) = (name.to_owned(), value.to_string());
                self.problems.push(Problem::WrongType {
                    group,
                    key,
                    found,
                    wanted,
                });
            }
        }
        for key in GROUP_KEYS {
            if !entry.iter().any(|(present, _)| present == key) {
                self.problems.push(Problem::Missing {
                    group: name.to_owned(),
                    key,
                });
            }
        }
        self.groups.push(caps);
    }

    fn note_duplicates(&mut self, object: &[(String, Json)], parents: &[&str]) {
        for (index, (key, _)) in object.iter().enumerate() {
            let count = object[..index]
                .iter()
                .filter(|(earlier, _)| earlier == key)
                .count();
            if count == 1 {
                self.problems.push(Problem::Duplicate(place(parents, key)));
            }
        }
    }
}

impl Cap {
    fn read(value: &Json) -> Option<Self> {
        let text = match value {
            Json::Text(text) => text.clone(),
            Json::Number(number) => number.to_string(),
            _ => return None,
        };
        // Python's Decimal, with which Ray reads it, takes blanks around a number.
        let quantity = Quantity::parse(text.trim());
        Some(Self { text, quantity })
    }
}

fn place(parents: &[&str], key: &str) -> KeyPlace {
    KeyPlace {
        parents: parents.iter().map(ToString::to_string).collect(),
        key: key.to_owned(),
    }
}

/// Each key once, with the value that a JSON parser keeps: the last.
fn last_of_each(object: &[(String, Json)]) -> impl Iterator<Item = (&str, &Json)> {
    object
        .iter()
        .enumerate()
        .filter(|(index, (key, _))| !object[index + 1..].iter().any(|(later, _)| later == key))
        .map(|(_, (key, value))| (key.as_str(), value))
}

/// JSON that remembers every key, unlike `serde_json::Value`, which keeps the last of two.
enum Json {
    Null,
    Bool(bool),
    Number(serde_json::Number),
    Text(String),
    List,
    Object(Vec<(String, Json)>),
}

impl Json {
    fn as_integer(&self) -> Option<i64> {
        let Self::Number(number) = self else {
            return None;
        };
        number.as_i64().or_else(|| {
            // JSON schema takes 300.0 for an integer.
            #[expect(clippy::cast_possible_truncation, reason = "bounded on the same line")]
            number
                .as_f64()
                .filter(|f| f.fract() == 0.0 && f.abs() < 9e15)
                .map(|f| f as i64)
        })
    }

    fn is_fraction(&self) -> bool {
        matches!(self, Self::Number(_)) && self.as_integer().is_none()
    }
}

impl fmt::Display for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => f.write_str("null"),
            Self::Bool(value) => write!(f, "{value}"),
            Self::Number(number) => write!(f, "{number}"),
            Self::Text(text) => f.write_str(&crate::finding::shown_text(text)),
            Self::List => f.write_str("a list"),
            Self::Object(_) => f.write_str("an object"),
        }
    }
}

impl<'de> Deserialize<'de> for Json {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(JsonVisitor)
    }
}

struct JsonVisitor;

impl<'de> Visitor<'de> for JsonVisitor {
    type Value = Json;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Json, E> {
        Ok(Json::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Json, E> {
        Ok(Json::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Json, E> {
        Ok(Json::Number(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Json, E> {
        Ok(Json::Number(value.into()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Json, E> {
        Ok(serde_json::Number::from_f64(value).map_or(Json::Null, Json::Number))
    }

    fn visit_str<E>(self, value: &str) -> Result<Json, E> {
        Ok(Json::Text(value.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Json, A::Error> {
        while items.next_element::<serde::de::IgnoredAny>()?.is_some() {}
        Ok(Json::List)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Json, A::Error> {
        let mut object = Vec::new();
        while let Some(entry) = entries.next_entry()? {
            object.push(entry);
        }
        Ok(Json::Object(object))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn reads_the_example() {
        let ippr = Ippr::parse(EXAMPLE);
        assert!(ippr.is_well_formed() && ippr.unknown_keys.is_empty());
        let caps = ippr.caps("workers").unwrap();
        assert_eq!(
            caps.max_cpu.as_ref().unwrap().quantity,
            Quantity::parse("8")
        );
        assert_eq!(
            caps.max_memory.as_ref().unwrap().quantity,
            Quantity::parse("32Gi")
        );
        assert_eq!(caps.resize_timeout, Some(300));
    }

    #[test]
    fn nothing_listed_is_fine() {
        for text in ["", "  ", "{}", r#"{"groups":{}}"#] {
            assert_eq!(Ippr::parse(text), Ippr::default(), "{text:?}");
        }
    }

    #[test]
    fn reports_every_problem_and_reads_the_rest() {
        let ippr = Ippr::parse(
            r#"{"groups":{"a":{"max-cpu":true,"max-memory":1.5,"max-cpus":"4"},
                "b":{"max-cpu":4,"max-memory":"8Gi","resize-timeout":300.0},
                "c":[],"b":{"max-cpu":4,"max-memory":"8Gi","resize-timeout":60}},"note":1}"#,
        );
        assert_eq!(ippr.problems.len(), 5, "{:?}", ippr.problems);
        assert_eq!(
            ippr.caps("b").unwrap().resize_timeout,
            Some(60),
            "the last one counts"
        );
        assert_eq!(ippr.unknown_keys.len(), 2);
    }

    #[test]
    fn keys_without_groups_are_a_problem() {
        assert_eq!(
            Ippr::parse(r#"{"Groups":{}}"#).problems,
            [Problem::NoGroups]
        );
        assert_eq!(Ippr::parse("[]").problems, [Problem::NotAnObject]);
        assert!(matches!(
            Ippr::parse("{").problems[..],
            [Problem::NotJson(_)]
        ));
    }

    #[test]
    fn deep_nesting_is_refused_not_followed() {
        let deep = format!("{{\"groups\":{}", "{\"a\":".repeat(100_000));
        assert!(matches!(
            Ippr::parse(&deep).problems[..],
            [Problem::NotJson(_)]
        ));
    }

    proptest! {
        #[test]
        fn never_panics(text in "[\\[\\]{}:,\"a-z0-9. -]{0,200}") {
            let _ = Ippr::parse(&text);
        }
    }
}
