//! The JSON patch that mends an object, as far as its findings say how.
//!
//! Each finding is mended by itself and the object checked again, so a patch never brings a finding of its own, and
//! places that a removal moves are those of the object as it is by then.

use serde_json::{Value, json};

use crate::finding::Finding;
use crate::fix::put;
use crate::text::is_obeyed;

/// The most findings that are mended, and the most checks for an object: nobody reads a longer patch.
const MOST: usize = 50;

/// The patch of an object, and the number of findings that it mends. `find` checks an object.
pub fn patch(object: &Value, find: impl Fn(&Value) -> Vec<Finding>) -> (Vec<Value>, usize) {
    let (mut object, mut found) = (object.clone(), find(object));
    let (mut patch, mut first, all) = (Vec::new(), 0, found.len());
    for _ in 0..MOST {
        let rest = found.iter().enumerate().skip(first);
        let mut steps = rest.filter_map(|(index, finding)| Some((index, step(&object, finding)?)));
        let Some((index, (operations, mended))) = steps.next() else {
            break;
        };
        let left = find(&mended);
        first = index;
        if left.len() < found.len() {
            (object, found) = (mended, left);
            let new = |operation: &Value| operation["op"] != "test" || !patch.contains(operation);
            let operations: Vec<Value> = operations.into_iter().filter(new).collect();
            patch.extend(operations);
        } else {
            first += 1;
        }
    }
    (patch, all - found.len())
}

/// The operations that mend a finding, and the object after them.
fn step(object: &Value, finding: &Finding) -> Option<(Vec<Value>, Value)> {
    let place = finding.path.pointer();
    let value = written(object.pointer(&place), finding)?;
    // A list may have changed meanwhile: the patch fails then and changes nothing else.
    let group = place
        .split_once("/workerGroupSpecs/")
        .map(|(before, after)| {
            let index = after.split('/').next().unwrap_or_default();
            format!("{before}/workerGroupSpecs/{index}/groupName")
        });
    let names = group.into_iter().chain([format!("{place}/name")]);
    let mut operations: Vec<Value> = names
        .filter_map(|name| {
            let value = object.pointer(&name).filter(|value| value.is_string())?;
            Some(json!({"op": "test", "path": name, "value": value}))
        })
        .collect();
    operations.push(match value {
        Value::Null => json!({"op": "remove", "path": place}),
        value => json!({"op": "add", "path": place, "value": value}),
    });
    let list = Value::Array(operations.clone());
    // Such a text would not be shown as it is, so nobody could apply it.
    if list.to_string().contains(is_obeyed) {
        return None;
    }
    let patch: json_patch::Patch = serde_json::from_value(list).ok()?;
    let mut mended = object.clone();
    json_patch::patch(&mut mended, &patch).ok()?;
    Some((operations, mended))
}

/// The value to write at the place of a finding, or null to take it away. In an annotation that is JSON, that is its
/// whole text.
fn written(present: Option<&Value>, finding: &Finding) -> Option<Value> {
    let mend = finding.mend.clone()?;
    let inside = finding.path.pointer_inside();
    if inside.is_empty() {
        return Some(mend);
    }
    let mut text: Value = serde_json::from_str(present?.as_str()?).ok()?;
    let value = Some(mend).filter(|value| !value.is_null());
    put(&mut text, &inside, value).then(|| text.to_string().into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finding::tests::finding;
    use crate::path::FieldPath;

    /// Finds each `bad` of a list of variables.
    fn find(object: &Value) -> Vec<Finding> {
        let list = object["env"].as_array().unwrap().iter().enumerate();
        let bad = list.filter(|(_, entry)| entry["name"] == "bad");
        bad.map(|(index, _)| finding(FieldPath::of(&["env"]).item(index, "bad"), Value::Null))
            .collect()
    }

    #[test]
    fn places_are_those_after_earlier_removals_and_are_tested() {
        let object = json!({"env": [{"name": "bad"}, {"name": "good"}, {"name": "bad"}]});
        let (patch, mended) = patch(&object, find);
        assert_eq!(mended, 2);
        let test = |path: &str| json!({"op": "test", "path": path, "value": "bad"});
        let expected = [
            test("/env/0/name"),
            json!({"op": "remove", "path": "/env/0"}),
            test("/env/1/name"),
            json!({"op": "remove", "path": "/env/1"}),
        ];
        assert_eq!(patch, expected);
    }

    #[test]
    fn what_mends_nothing_and_what_cannot_be_shown_is_left_out() {
        let path = || FieldPath::of(&["a"]);
        let object = json!({"a": 1});
        assert_eq!(
            patch(&object, |_| vec![finding(path(), json!(2))]),
            (vec![], 0)
        );
        let hidden = |object: &Value| match object["a"].as_i64() {
            Some(_) => vec![finding(path(), json!("\u{202e}"))],
            None => Vec::new(),
        };
        assert_eq!(patch(&object, hidden), (vec![], 0));
    }

    #[test]
    fn an_annotation_is_written_whole() {
        let object = json!({"note": r#"{"b": {"max": 1}, "a": 2}"#});
        let (patch, _) = patch(&object, |object| {
            let is_low = object["note"].as_str().unwrap().contains('1');
            let path = FieldPath::of(&["note"]).inside("b").inside("max");
            if is_low {
                vec![finding(path, json!("4"))]
            } else {
                Vec::new()
            }
        });
        assert_eq!(patch[0]["value"], r#"{"b":{"max":"4"},"a":2}"#);
    }

    #[test]
    fn a_key_inside_of_an_annotation_goes_and_is_not_null() {
        let object = json!({"note": r#"{"b": {"max": 1}, "a": 2}"#});
        let (patch, _) = patch(&object, |object| {
            let has_it = object["note"]
                .as_str()
                .is_some_and(|text| text.contains("max"));
            let path = FieldPath::of(&["note"]).inside("b").inside("max");
            Vec::from_iter(has_it.then(|| finding(path, Value::Null)))
        });
        assert_eq!(patch[0]["value"], r#"{"b":{},"a":2}"#);
    }
}
