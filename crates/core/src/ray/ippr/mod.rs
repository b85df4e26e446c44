//! The `ray.io/ippr` annotation: which groups may grow in place, and up to which resize limits.
//!
//! Ray reads it with a JSON schema (`groups` -> name -> `max-cpu`, `max-memory`, `resize-timeout`,
//! all three required) and aborts its whole loop on any fault. Here a fault becomes a [`IpprProblem`]
//! and everything else is still read, so that rules can report all of it.

mod json;
mod limits;

pub use limits::{ANNOTATION, GroupResizeLimits, KeyPlace, ResizeLimit, ResizeLimitFault};

use json::{JsonObject, integer, shown};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::hash::HashMap;
use crate::text::shown_text;

/// The keys of a group's entry, all of them required.
pub const GROUP_KEYS: [&str; 3] = ["max-cpu", "max-memory", "resize-timeout"];

/// A correct annotation, shown where one is wrong.
pub const EXAMPLE: &str =
    r#"{"groups":{"workers":{"max-cpu":"8","max-memory":"32Gi","resize-timeout":300}}}"#;

/// The longest annotation that is read (Kubernetes allows 256 KiB for all annotations of an
/// object).
const MAX_LEN: usize = 256 * 1024;

/// The most problems, and the most unknown keys, that are kept. The annotation can hold a hundred
/// thousand of them, and nobody reads more than these.
const MAX_FAULTS: usize = 100;

/// The annotation, read as far as it can be.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Ippr {
    /// The groups that it lists, in their order, with each name once.
    pub groups: Vec<GroupResizeLimits>,
    /// Problems that keep Ray from reading it, 100 at the most.
    pub problems: Vec<IpprProblem>,
    /// The keys that Ray does not know, with the way to each of them, 100 at the most.
    pub unknown_keys: Vec<KeyPlace>,
    /// The position of each name in `groups`.
    positions: HashMap<String, usize>,
}

/// A problem that keeps Ray from reading the annotation as it was meant.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
pub enum IpprProblem {
    /// The text is not JSON, for the reason that the parser gives.
    #[error("it is not JSON: {0}")]
    NotJson(String),
    /// The text is JSON, but not an object.
    #[error("it is JSON, but not an object")]
    NotAnObject,
    /// There are keys, but not `groups`: Ray ignores all of it silently.
    #[error("it has keys, but not groups")]
    NoGroups,
    /// A value is not the object that it should be (`groups`, or a group's entry).
    #[error("{} is {found}, not an object", .place.path())]
    NotAnObjectAt {
        /// The place of the value.
        place: KeyPlace,
        /// The value as it is written, but shortened.
        found: String,
    },
    /// A group's entry does not have a required key.
    #[error("group {} has no {key}", shown_text(.group))]
    Missing {
        /// The name of the group.
        group: String,
        /// The key.
        key: &'static str,
    },
    /// A value has a type that Ray refuses.
    #[error("{key} of group {} is {found}, not {wanted}", shown_text(.group))]
    WrongType {
        /// The name of the group.
        group: String,
        /// The key.
        key: &'static str,
        /// The value as it is written, but shortened.
        found: String,
        /// The values that are allowed.
        wanted: &'static str,
    },
    /// A key is written more than once in one object: all values but the last are lost.
    #[error("{} occurs twice in the same object", .0.path())]
    Duplicate(KeyPlace),
}

impl Ippr {
    /// Reads the annotation's text. An empty text, `{}` and `{"groups":{}}` list no group and are
    /// fine.
    pub fn parse(text: &str) -> Self {
        let mut ippr = Self::default();
        // A text of blanks alone is not JSON, and Ray aborts on it.
        if text.is_empty() {
            return ippr;
        }
        let unreadable = |problem| Self {
            problems: vec![problem],
            ..Self::default()
        };
        if text.len() > MAX_LEN {
            let problem = "it is longer than 256 KiB".to_owned();
            return unreadable(IpprProblem::NotJson(problem));
        }
        let root = match JsonObject::parse(text) {
            Ok(Some(root)) => root,
            Ok(None) => return unreadable(IpprProblem::NotAnObject),
            Err(error) => return unreadable(IpprProblem::NotJson(error.to_string())),
        };
        ippr.note_duplicates(&root, &[]);
        if !root.entries.is_empty() && !root.has("groups") {
            ippr.fault(IpprProblem::NoGroups);
        }
        for (key, value) in &root.entries {
            if key != "groups" {
                ippr.unknown(place(&[], key));
                continue;
            }
            let Some(groups) = ippr.object(value, &[], key) else {
                continue;
            };
            ippr.note_duplicates(&groups, &["groups"]);
            for (name, value) in &groups.entries {
                if let Some(entry) = ippr.object(value, &["groups"], name) {
                    ippr.read_group(name, &entry);
                }
            }
        }
        ippr
    }

    /// True if the annotation lists a group with that name.
    pub fn lists(&self, group: &str) -> bool {
        self.resize_limits(group).is_some()
    }

    /// The resize limits of the group with that name.
    pub fn resize_limits(&self, group: &str) -> Option<&GroupResizeLimits> {
        self.groups.get(*self.positions.get(group)?)
    }

    /// True if Ray can read the annotation, so that nothing in it makes Ray's loop abort or ignore
    /// it. Resize limits that are not quantities are another matter (rule RF104).
    pub fn is_well_formed(&self) -> bool {
        self.problems.is_empty()
    }

    /// True for an annotation that says nothing at all, which is allowed.
    pub fn is_idle(&self) -> bool {
        self.groups.is_empty() && self.problems.is_empty()
    }

    fn fault(&mut self, problem: IpprProblem) {
        if self.problems.len() < MAX_FAULTS {
            self.problems.push(problem);
        }
    }

    fn unknown(&mut self, place: KeyPlace) {
        if self.unknown_keys.len() < MAX_FAULTS {
            self.unknown_keys.push(place);
        }
    }

    fn note_duplicates(&mut self, object: &JsonObject<'_>, parents: &[&str]) {
        for key in &object.twice {
            self.fault(IpprProblem::Duplicate(place(parents, key)));
        }
    }

    /// The object at a key, where only an object can be.
    fn object<'a>(&mut self, raw: &'a RawValue, at: &[&str], key: &str) -> Option<JsonObject<'a>> {
        if let Ok(Some(object)) = JsonObject::parse(raw.get()) {
            return Some(object);
        }
        self.fault(IpprProblem::NotAnObjectAt {
            place: place(at, key),
            found: shown(&parsed(raw)),
        });
        None
    }

    fn read_group(&mut self, name: &str, entry: &JsonObject<'_>) {
        self.note_duplicates(entry, &["groups", name]);
        let mut limits = GroupResizeLimits {
            name: name.to_owned(),
            ..GroupResizeLimits::default()
        };
        for (key, value) in &entry.entries {
            let Some(key) = GROUP_KEYS.into_iter().find(|required| required == key) else {
                self.unknown(place(&["groups", name], key));
                continue;
            };
            let value = parsed(value);
            let (is_read, wanted) = match key {
                "max-cpu" => {
                    limits.max_cpu = ResizeLimit::read(&value);
                    (limits.max_cpu.is_some(), "a string or a number")
                }
                "max-memory" => {
                    // Ray's `IPPRSpecsSchema` takes any number for CPU, but only integers for memory.
                    let is_fraction = value.is_number() && integer(&value).is_none();
                    limits.max_memory = ResizeLimit::read(&value).filter(|_| !is_fraction);
                    (limits.max_memory.is_some(), "a string or an integer")
                }
                _ => {
                    limits.resize_timeout = integer(&value);
                    let is_read = limits.resize_timeout.is_some();
                    (is_read, "an integer number of seconds")
                }
            };
            if !is_read {
                self.fault(IpprProblem::WrongType {
                    group: name.to_owned(),
                    key,
                    found: shown(&value),
                    wanted,
                });
            }
        }
        // Ray's schema requires all three, whatever the others say.
        for key in GROUP_KEYS.into_iter().filter(|key| !entry.has(key)) {
            let group = name.to_owned();
            self.fault(IpprProblem::Missing { group, key });
        }
        // Each name comes once: of a key that is written twice only the last value is kept.
        self.positions.insert(name.to_owned(), self.groups.len());
        self.groups.push(limits);
    }
}

/// The value of a key. One that is nested too deeply to be read counts as an object.
fn parsed(value: &RawValue) -> Value {
    serde_json::from_str(value.get()).unwrap_or_else(|_| Value::Object(serde_json::Map::new()))
}

/// The place of a key below `parents`.
fn place(parents: &[&str], key: &str) -> KeyPlace {
    KeyPlace {
        parents: parents.iter().map(ToString::to_string).collect(),
        key: key.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::quantity::Quantity;
    use proptest::prelude::*;

    #[test]
    fn reads_the_example() {
        let ippr = Ippr::parse(EXAMPLE);
        assert!(ippr.is_well_formed() && ippr.unknown_keys.is_empty());
        let resize_limits = ippr.resize_limits("workers").unwrap();
        assert_eq!(
            resize_limits.max_cpu.as_ref().unwrap().quantity,
            Quantity::parse("8")
        );
        assert_eq!(
            resize_limits.max_memory.as_ref().unwrap().quantity,
            Quantity::parse("32Gi")
        );
        assert_eq!(resize_limits.resize_timeout, Some(300));
    }

    #[test]
    fn nothing_listed_is_fine() {
        for text in ["", "{}", r#"{"groups":{}}"#] {
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
            ippr.resize_limits("b").unwrap().resize_timeout,
            Some(60),
            "the last one counts"
        );
        assert_eq!(ippr.unknown_keys.len(), 2);
    }

    #[test]
    fn keys_without_groups_are_a_problem() {
        assert_eq!(
            Ippr::parse(r#"{"Groups":{}}"#).problems,
            [IpprProblem::NoGroups]
        );
        assert_eq!(Ippr::parse("[]").problems, [IpprProblem::NotAnObject]);
        for text in ["{", "  ", "{'groups':{}}"] {
            let problems = Ippr::parse(text).problems;
            assert!(
                matches!(problems[..], [IpprProblem::NotJson(_)]),
                "{text:?}"
            );
        }
    }

    #[test]
    fn a_flood_of_faults_is_cut() {
        let groups: Vec<String> = (0..10_000)
            .map(|n| format!("\"g{n}\":{{\"x\":1}}"))
            .collect();
        let ippr = Ippr::parse(&format!("{{\"groups\":{{{}}}}}", groups.join(",")));
        assert_eq!(ippr.groups.len(), 10_000);
        assert_eq!((ippr.problems.len(), ippr.unknown_keys.len()), (100, 100));
        assert!(ippr.lists("g9999") && !ippr.lists("g10000"));
    }

    #[test]
    fn deep_nesting_is_refused_not_followed() {
        let deep = format!("{{\"groups\":{}", "{\"a\":".repeat(100_000));
        assert!(matches!(
            Ippr::parse(&deep).problems[..],
            [IpprProblem::NotJson(_)]
        ));
    }

    proptest! {
        #[test]
        fn never_panics(text in "[\\[\\]{}:,\"a-z0-9. -]{0,200}") {
            let _ = Ippr::parse(&text);
        }
    }
}
