//! Paths into an object: shown to people with group names, to programs as JSON pointers.

use std::borrow::Cow;
use std::fmt;

use crate::text::{ForeignText, shown_text};

/// One step of a [`FieldPath`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Segment {
    /// A key of an object.
    Key(Cow<'static, str>),
    /// An item of a list; `name` is the item's `groupName` (or `name`) when it has one.
    Item {
        /// Position in the list, from 0.
        index: usize,
        /// The name that is shown instead of the index, and identifies the item if the list is
        /// reordered.
        name: Option<String>,
    },
    /// A place inside a string that is itself JSON (an annotation). JSON pointers end before it.
    Inside(String),
}

/// The path from the root of an object to one of its fields.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FieldPath(Vec<Segment>);

impl FieldPath {
    /// The path of the given keys from the root.
    pub fn of(keys: &[&'static str]) -> Self {
        Self(
            keys.iter()
                .map(|key| Segment::Key(Cow::Borrowed(key)))
                .collect(),
        )
    }

    /// `metadata.annotations["<name>"]`.
    pub fn annotation(name: &'static str) -> Self {
        Self::of(&["metadata", "annotations", name])
    }

    /// This path extended by a key.
    #[must_use]
    pub fn key(mut self, key: impl Into<Cow<'static, str>>) -> Self {
        self.0.push(Segment::Key(key.into()));
        self
    }

    /// This path extended by a list item that only has a position.
    #[must_use]
    pub fn index(mut self, index: usize) -> Self {
        self.0.push(Segment::Item { index, name: None });
        self
    }

    /// This path extended by a list item that has a name.
    #[must_use]
    pub fn item(mut self, index: usize, name: impl Into<String>) -> Self {
        self.0.push(Segment::Item {
            index,
            name: Some(name.into()),
        });
        self
    }

    /// This path extended by a place inside a string that is JSON.
    #[must_use]
    pub fn inside(mut self, key: impl Into<String>) -> Self {
        self.0.push(Segment::Inside(key.into()));
        self
    }

    /// The steps, root first.
    pub fn segments(&self) -> &[Segment] {
        &self.0
    }

    /// The RFC 6901 JSON pointer of the nearest place that exists in the object itself.
    pub fn pointer(&self) -> String {
        let mut pointer = String::new();
        for segment in &self.0 {
            match segment {
                Segment::Key(key) => push_key(&mut pointer, key),
                Segment::Item { index, .. } => {
                    pointer.push('/');
                    pointer.push_str(&index.to_string());
                }
                // A JSON pointer cannot lead into a string.
                Segment::Inside(_) => break,
            }
        }
        pointer
    }

    /// The JSON pointer from the root of the JSON in that place to the field; empty if the field is no place inside of
    /// a string.
    pub fn pointer_inside(&self) -> String {
        let mut pointer = String::new();
        for segment in &self.0 {
            if let Segment::Inside(key) = segment {
                push_key(&mut pointer, key);
            }
        }
        pointer
    }

    /// The path as Kubernetes writes it in its own errors: items by index, keys that are not
    /// identifiers in brackets.
    pub fn field(&self) -> String {
        let mut field = String::new();
        for segment in &self.0 {
            let key: &str = match segment {
                Segment::Key(key) => key,
                Segment::Inside(key) => key,
                Segment::Item { index, .. } => {
                    field.extend(["[", &index.to_string(), "]"]);
                    continue;
                }
            };
            if is_plain(key) {
                let dot = if field.is_empty() { "" } else { "." };
                field.extend([dot, key]);
            } else {
                field.extend(["[", key, "]"]);
            }
        }
        field
    }

    /// The name of the worker group that contains the place, if it has one.
    pub fn group(&self) -> Option<&str> {
        self.0.windows(2).find_map(|pair| match pair {
            [
                Segment::Key(key),
                Segment::Item {
                    name: Some(name), ..
                },
            ] if key == "workerGroupSpecs" => Some(name.as_str()),
            _ => None,
        })
    }
}

/// Adds a key to a JSON pointer.
fn push_key(pointer: &mut String, key: &str) {
    pointer.push('/');
    // The tilde comes first: otherwise that of `~1` would be replaced again.
    pointer.push_str(&key.replace('~', "~0").replace('/', "~1"));
}

impl fmt::Display for FieldPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, segment) in self.0.iter().enumerate() {
            let key: &str = match segment {
                Segment::Key(key) => key,
                Segment::Inside(key) => key,
                Segment::Item {
                    name: Some(name), ..
                } => {
                    write!(f, "[name={}]", ForeignText(name))?;
                    continue;
                }
                Segment::Item { index, name: None } => {
                    write!(f, "[{index}]")?;
                    continue;
                }
            };
            let is_first = position == 0 && matches!(segment, Segment::Key(_));
            match (is_plain(key), is_first) {
                (true, true) => f.write_str(key)?,
                (true, false) => write!(f, ".{key}")?,
                (false, _) => write!(f, "[{}]", shown_text(key))?,
            }
        }
        Ok(())
    }
}

/// Checks whether the key can follow a dot.
fn is_plain(key: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    !key.is_empty() && key.bytes().all(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shows_names_to_people_and_indices_to_machines() {
        let path = FieldPath::of(&["spec", "workerGroupSpecs"])
            .item(2, "gpu")
            .key("rayStartParams")
            .key("num-cpus");
        assert_eq!(
            path.to_string(),
            "spec.workerGroupSpecs[name=gpu].rayStartParams.num-cpus"
        );
        assert_eq!(
            path.pointer(),
            "/spec/workerGroupSpecs/2/rayStartParams/num-cpus"
        );
        assert_eq!(
            path.field(),
            "spec.workerGroupSpecs[2].rayStartParams.num-cpus"
        );
        assert_eq!(path.group(), Some("gpu"));
    }

    #[test]
    fn a_pointer_stops_at_the_annotation() {
        let path = FieldPath::annotation("ray.io/ippr")
            .inside("groups")
            .inside("gpu");
        assert_eq!(
            path.to_string(),
            "metadata.annotations[\"ray.io/ippr\"].groups.gpu"
        );
        assert_eq!(path.pointer(), "/metadata/annotations/ray.io~1ippr");
        assert_eq!(path.field(), "metadata.annotations[ray.io/ippr].groups.gpu");
        assert_eq!(path.group(), None);
    }

    #[test]
    fn a_reordered_group_is_the_same_place() {
        let place = |index| FieldPath::of(&["spec"]).item(index, "gpu").key("replicas");
        assert_eq!(place(0).to_string(), place(3).to_string());
        let other = FieldPath::of(&["spec"]).item(0, "cpu").key("replicas");
        assert_ne!(place(0).to_string(), other.to_string());
        let nameless = |index| FieldPath::default().index(index).to_string();
        assert_ne!(nameless(0), nameless(1));
    }
}
