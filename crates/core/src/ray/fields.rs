//! Fields of JSON objects, in which no value is sure to have the type that it should have.

use serde_json::{Map, Value};

/// A JSON object.
pub type Fields = Map<String, Value>;

/// The value at `key`, if it is an object.
pub fn object_at<'a>(fields: &'a Fields, key: &str) -> Option<&'a Fields> {
    fields.get(key)?.as_object()
}

/// The object that `path` leads to.
pub(crate) fn object_in<'a>(fields: &'a Fields, path: &[&str]) -> Option<&'a Fields> {
    path.iter()
        .try_fold(fields, |fields, key| object_at(fields, key))
}

/// True where `true` stands at `key`.
pub(crate) fn is_true(fields: &Fields, key: &str) -> bool {
    fields.get(key) == Some(&Value::Bool(true))
}

/// The list at `key`. An absent value, or one of another type, reads as an empty list.
pub(crate) fn list_at<'a>(fields: &'a Fields, key: &str) -> &'a [Value] {
    fields
        .get(key)
        .and_then(Value::as_array)
        .map_or(&[], Vec::as_slice)
}

/// The value at `key`, if it is a string.
pub(crate) fn text_at<'a>(fields: &'a Fields, key: &str) -> Option<&'a str> {
    fields.get(key)?.as_str()
}
