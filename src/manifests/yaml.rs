//! Objects as YAML text, in the order in which they were described.

use serde_json::Value;

/// A stream of YAML documents.
pub fn to_yaml(objects: &[Value]) -> String {
    let documents: Vec<String> = objects.iter().map(document).collect();
    documents.join("---\n")
}

/// One document. JSON is YAML too, so a value always has a text.
pub(super) fn document(value: &Value) -> String {
    let mut text = serde_saphyr::to_string(value).unwrap_or_else(|_| value.to_string());
    if !text.ends_with('\n') {
        text.push('\n');
    }
    text
}
