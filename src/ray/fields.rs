//! Looking into JSON objects, where nothing has to be as it should.

use serde_json::{Map, Value};

/// A JSON object.
pub type Fields = Map<String, Value>;

/// The object at `key`, if it is one.
pub(crate) fn object_at<'a>(fields: &'a Fields, key: &str) -> Option<&'a Fields> {
    fields.get(key)?.as_object()
}

/// The list at `key`; absent and of another type read as empty.
pub(crate) fn list_at<'a>(fields: &'a Fields, key: &str) -> &'a [Value] {
    fields
        .get(key)
        .and_then(Value::as_array)
        .map_or(&[], Vec::as_slice)
}

/// The text at `key`, if it is one.
pub(crate) fn text_at<'a>(fields: &'a Fields, key: &str) -> Option<&'a str> {
    fields.get(key)?.as_str()
}
