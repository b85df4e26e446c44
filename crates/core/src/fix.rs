//! The text of manifests with the findings mended that say by which value, and with all else as it is written.
//!
//! In: a text, and what is found in an object. Out: the text, and the findings that are left although they say how they
//! are mended. Invariant: read again, each document is what it was with the values of its findings, or its text is as it
//! was.

use json_patch::jsonptr::PointerBuf;
use json_patch::{AddOperation, Patch, PatchOperation, RemoveOperation};
use serde_json::Value;

use crate::finding::Finding;
use crate::objects::{self, Item};
use crate::rule_id::RuleId;
use crate::yaml::{self, Document, EditRefusal, Position, TextEdit, YamlFault, template_hint};

/// The most passes over a text: in each, one key or item is removed from each mapping or list.
const MOST_PASSES: usize = 50;

/// The most findings that are looked at in a pass: each is another check of its object.
const MOST_FINDINGS: usize = 1000;

/// A text with findings mended.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FixedText {
    /// The text.
    pub text: String,
    /// The number of findings that are mended.
    pub fixed: usize,
    /// The findings whose place is written in a way that is not changed, at their places in `text`.
    pub refused: Vec<RefusedFix>,
}

/// A finding that is left although it says how it is mended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefusedFix {
    /// The rule.
    pub rule: RuleId,
    /// The place.
    pub at: Position,
    /// The reason.
    pub reason: EditRefusal,
}

/// The changes of one document in a pass.
#[derive(Default)]
struct DocumentEdits {
    edits: Vec<TextEdit>,
    fixed: usize,
    refused: Vec<RefusedFix>,
    /// The mended places, for the case that the changes are not taken.
    mended: Vec<(RuleId, Position)>,
    /// The value that the document is to have.
    value: Value,
    /// The beginnings of pointers that no longer name what they did.
    moved: Vec<String>,
}

/// Mends what `find` finds in the objects of a text; it returns nothing for objects that are not checked.
pub fn fix(text: &str, find: impl Fn(&Value) -> Option<Vec<Finding>>) -> FixedText {
    let mut done = FixedText {
        text: text.to_owned(),
        ..FixedText::default()
    };
    for _ in 0..MOST_PASSES {
        let pass = pass(&done.text, &find);
        done.refused = pass.refused;
        if pass.fixed == 0 {
            break;
        }
        done.text = pass.text;
        done.fixed += pass.fixed;
    }
    done
}

fn pass(text: &str, find: &impl Fn(&Value) -> Option<Vec<Finding>>) -> FixedText {
    let read = yaml::read(text);
    let mut changes: Vec<Option<DocumentEdits>> = (read.iter())
        .map(|document| Some(edits_of(text, document.as_ref().ok()?, find)))
        .collect();
    let mut mended = apply(text, &changes);
    // Whatever the changes of some documents made of them, those of the others may be right.
    let wrong = misread(&mended, &read, &changes);
    if !wrong.is_empty() {
        for at in wrong {
            changes[at].iter_mut().for_each(DocumentEdits::leave);
        }
        mended = apply(text, &changes);
        if !misread(&mended, &read, &changes).is_empty() {
            changes.iter_mut().flatten().for_each(DocumentEdits::leave);
            text.clone_into(&mut mended);
        }
    }
    let changes = || changes.iter().flatten();
    FixedText {
        text: mended,
        fixed: changes().map(|change| change.fixed).sum(),
        refused: changes()
            .flat_map(|change| change.refused.clone())
            .collect(),
    }
}

/// The text with the changes of all documents.
fn apply(text: &str, changes: &[Option<DocumentEdits>]) -> String {
    let edits = changes.iter().flatten().flat_map(|change| &change.edits);
    let mut edits: Vec<&TextEdit> = edits.collect();
    edits.sort_by_key(|edit| edit.range.start);
    let mut out = String::with_capacity(text.len());
    let mut from = 0;
    for edit in edits {
        out.push_str(text.get(from..edit.range.start).unwrap_or_default());
        out.push_str(&edit.text);
        from = edit.range.end;
    }
    out.push_str(text.get(from..).unwrap_or_default());
    out
}

/// The documents that are not what they should be once the text is changed.
fn misread(
    mended: &str,
    read: &[Result<Document, YamlFault>],
    changes: &[Option<DocumentEdits>],
) -> Vec<usize> {
    let again = yaml::read(mended);
    if again.len() != read.len() {
        return (0..read.len()).collect();
    }
    let is_right = |at: usize| match (&again[at], &read[at], &changes[at]) {
        (Ok(again), Ok(before), Some(change)) => {
            let is_changed = !change.edits.is_empty();
            again.value
                == *if is_changed {
                    &change.value
                } else {
                    &before.value
                }
        }
        (Err(_), Err(_), _) => true,
        _ => false,
    };
    (0..read.len()).filter(|at| !is_right(*at)).collect()
}

fn edits_of(
    text: &str,
    document: &Document,
    find: &impl Fn(&Value) -> Option<Vec<Finding>>,
) -> DocumentEdits {
    let mut changes = DocumentEdits {
        value: document.value.clone(),
        ..DocumentEdits::default()
    };
    for Item { pointer, object } in objects::items(&document.value) {
        let mut object = object.into_owned();
        let Some(findings) = find(&object) else {
            continue;
        };
        let mut count = findings.len();
        for finding in findings.iter().take(MOST_FINDINGS) {
            let fix = match FixedPlace::of(&object, &pointer, finding) {
                None => continue,
                Some(Ok(fix)) => fix,
                Some(Err(reason)) => {
                    let place = [&*pointer, &finding.path.pointer()].concat();
                    let place = document.place(&place).span.start;
                    changes.refuse(finding.rule, place, reason);
                    continue;
                }
            };
            if changes
                .moved
                .iter()
                .any(|moved| fix.pointer.starts_with(moved))
            {
                continue;
            }
            let place = document.place(&fix.pointer).span.start;
            let edit = match document.edit(text, &fix.pointer, fix.value.as_ref()) {
                Ok(edit) => edit,
                Err(reason) => {
                    changes.refuse(finding.rule, place, reason);
                    continue;
                }
            };
            // Changes that touch each other wait for the next pass.
            let meets = |other: &TextEdit| {
                edit.range.start <= other.range.end && other.range.start <= edit.range.end
            };
            let mut mended = object.clone();
            let place_in_object = fix.pointer.strip_prefix(&*pointer).unwrap_or_default();
            if changes.edits.iter().any(meets)
                || !put(&mut mended, place_in_object, fix.value.clone())
            {
                continue;
            }
            // A value that only brings another finding mends nothing.
            let Some(left) = find(&mended)
                .map(|left| left.len())
                .filter(|left| *left < count)
            else {
                changes.refuse(finding.rule, place, EditRefusal::BringsAnother);
                continue;
            };
            if put(&mut changes.value, &fix.pointer, fix.value.clone()) {
                changes.fixed += count - left;
                changes.mended.push((finding.rule, place));
                changes.edits.push(edit);
                changes.moved.extend(fix.moved());
                (object, count) = (mended, left);
            }
        }
    }
    changes
}

impl DocumentEdits {
    fn refuse(&mut self, rule: RuleId, at: Position, reason: EditRefusal) {
        self.refused.push(RefusedFix { rule, at, reason });
    }

    /// Leaves the document as it is.
    fn leave(&mut self) {
        self.edits.clear();
        self.fixed = 0;
        for (rule, at) in std::mem::take(&mut self.mended) {
            self.refuse(rule, at, EditRefusal::ReadOtherwise);
        }
    }
}

/// The place of a finding in its document, and its value once it is mended; `None` where it goes.
struct FixedPlace {
    pointer: String,
    value: Option<Value>,
}

impl FixedPlace {
    fn of(object: &Value, item: &str, finding: &Finding) -> Option<Result<Self, EditRefusal>> {
        let (mend, place) = (finding.mend.as_ref()?, finding.path.pointer());
        let present = object.pointer(&place);
        // The value of a template is not what the object will have.
        if present
            .and_then(Value::as_str)
            .is_some_and(|text| template_hint(text).is_some())
        {
            return None;
        }
        let inside = finding.path.pointer_inside();
        let value = Some(mend.clone()).filter(|value| !value.is_null());
        let text = present.and_then(Value::as_str);
        let Some(text) = text.filter(|_| !inside.is_empty()) else {
            // A mapping may be written where a text with JSON should be.
            let pointer = [item, &place, &inside].concat();
            return Some(Ok(Self { pointer, value }));
        };
        // An annotation that is JSON has a layout of its own.
        let document = yaml::read(text).into_iter().next()?.ok()?;
        let TextEdit { range, text: new } = match document.edit(text, &inside, value.as_ref()) {
            Ok(edit) => edit,
            Err(reason) => return Some(Err(reason)),
        };
        let (before, after) = (text.get(..range.start)?, text.get(range.end..)?);
        let value = Some([before, &new, after].concat().into());
        let pointer = [item, &place].concat();
        Some(Ok(Self { pointer, value }))
    }

    /// The beginning of the pointers beside a key or item that goes: those of a list are others then, and of the last
    /// one of a mapping the text is.
    fn moved(&self) -> Option<String> {
        let (parent, _) = self.pointer.rsplit_once('/')?;
        self.value.is_none().then(|| format!("{parent}/"))
    }
}

/// Gives the place at a JSON pointer a value, or takes it away without one. Returns false if there is no such place;
/// then nothing is changed.
pub(crate) fn put(object: &mut Value, pointer: &str, value: Option<Value>) -> bool {
    let Ok(path) = PointerBuf::parse(pointer) else {
        return false;
    };
    let operation = match value {
        Some(value) => PatchOperation::Add(AddOperation { path, value }),
        None => PatchOperation::Remove(RemoveOperation { path }),
    };
    json_patch::patch(object, &Patch(vec![operation])).is_ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::finding::tests::finding;
    use crate::path::FieldPath;

    /// Finds a `size` that is not 4, and each `bad` of a list.
    #[expect(
        clippy::unnecessary_wraps,
        reason = "as a check that may skip an object"
    )]
    fn find(object: &Value) -> Option<Vec<Finding>> {
        let size = object.get("size").filter(|size| **size != json!("4"));
        let size = size.map(|_| finding(FieldPath::of(&["size"]), json!("4")));
        let list = object["env"].as_array().into_iter().flatten().enumerate();
        let bad = list.filter(|(_, entry)| entry["name"] == "bad");
        let bad = bad.map(|(at, _)| finding(FieldPath::of(&["env"]).index(at), Value::Null));
        Some(size.into_iter().chain(bad).collect())
    }

    #[test]
    fn every_document_is_mended_and_nothing_else_is_changed() {
        let text = "# first\nsize: 2 # two\nenv: # e\n- name: bad\n  # why\n- name: good\n- name: bad\n---\r\n\
                    size: \"3\"\r\n---\nname: [\n";
        let after = "# first\nsize: \"4\" # two\nenv: # e\n  # why\n- name: good\n---\r\nsize: \"4\"\r\n---\nname: [\n";
        let fixed = fix(text, find);
        assert_eq!((fixed.text.as_str(), fixed.fixed), (after, 4));
        assert_eq!(fixed.refused, []);
        assert_eq!(fix(after, find).text, after, "it is done");
    }

    #[test]
    fn what_cannot_be_changed_is_left_with_the_reason() {
        let text = "env: [{name: bad}]\nsize: &x 2\nelse: *x\n";
        let fixed = fix(text, find);
        assert_eq!((fixed.text.as_str(), fixed.fixed), (text, 0));
        let refused = fixed.refused.iter();
        let refused: Vec<_> = refused.map(|one| (one.at.line, one.reason)).collect();
        assert_eq!(refused, [(2, EditRefusal::Alias), (1, EditRefusal::Flow)]);
    }

    #[test]
    fn what_mends_nothing_and_what_is_no_value_yet_is_left() {
        let text = "size: ${SIZE}\n";
        assert_eq!(fix(text, find).text, text);
        let text = "size: 2\n";
        let never = |_: &Value| Some(vec![finding(FieldPath::of(&["size"]), json!("4"))]);
        assert_eq!(fix(text, never).text, text);
    }

    #[test]
    fn an_annotation_keeps_its_layout() {
        let text = "note: |\n  {\n    \"a\": {\"max\": 1},   \"b\": 2\n  }\n# end\n";
        let fixed = fix(text, |object| {
            let is_low = object["note"].as_str()?.contains("\"max\": 1");
            let path = FieldPath::of(&["note"]).inside("a").inside("max");
            Some(Vec::from_iter(is_low.then(|| finding(path, json!("4")))))
        });
        assert_eq!(fixed.text, text.replace(": 1}", ": \"4\"}"));
    }
}
