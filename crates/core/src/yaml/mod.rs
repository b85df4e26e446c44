//! YAML and JSON manifests as kubectl reads them, with the place of every value.
//!
//! kubectl reads YAML 1.1 through go-yaml v2: `yes` and `on` are booleans, `010` is eight, `<<`
//! merges, keys that are not text become text, `1.0` is sent as 1, of a key that occurs twice the
//! last one counts. The table in `scalar`'s tests was confirmed against that library. One thing
//! differs on purpose: JSON's escapes are understood everywhere.
//!
//! Hostile input is bounded: size, nesting, what aliases may expand to. Reading order: `scalar`,
//! `strict`, `tree`, `value`, `indented`, `place`, `write`, `lines`, `edit`.

mod edit;
mod fault;
mod indented;
mod lines;
mod place;
mod position;
mod scalar;
mod strict;
mod tree;
mod value;
mod write;

pub use edit::{EditRefusal, TextEdit};
pub use fault::{MAX_BYTES, YamlFault};
pub use place::YamlPlace;
pub use position::{Position, Span};
pub use write::write;

use serde::de::IgnoredAny;
use serde_json::Value;

use indented::IndentedCopy;
use tree::{DocumentReader, MAX_NODES, Tree};

/// One document of a manifest.
#[derive(Debug)]
pub struct Document {
    /// Its value.
    pub value: Value,
    /// The keys that occur twice with different values, of which kubectl keeps the last.
    pub overwritten: Vec<YamlFault>,
    tree: Tree,
}

impl Document {
    /// The place of the value at a JSON pointer, or of the nearest ancestor that is written.
    pub fn place(&self, pointer: &str) -> YamlPlace {
        place::find(&self.tree, pointer)
    }

    /// The change of `text`, of which this is a document, that gives the place at a JSON pointer a value that is no list
    /// or mapping, or with `None` takes the place away.
    ///
    /// # Errors
    ///
    /// The place is written in a way that is not changed.
    pub fn edit(
        &self,
        text: &str,
        pointer: &str,
        value: Option<&Value>,
    ) -> Result<TextEdit, EditRefusal> {
        edit::edit(&self.tree, text, pointer, value)
    }
}

/// Reads every document of `text`. A fault of one document does not hide the others, as far as
/// they can still be told apart.
pub fn read(text: &str) -> Vec<Result<Document, YamlFault>> {
    if let Some(fault) = fault::unreadable(text) {
        return vec![Err(fault)];
    }
    let mut documents = Vec::new();
    let start = Position::default();
    if let Some(parts) = json_parts(text) {
        for (start, part) in parts {
            documents.extend(parsed(start, part, true));
        }
    } else {
        documents.extend(parsed(start, text, false));
        // Indenting takes further passes over the text, so it is only tried after a fault.
        if documents.last().is_some_and(Result::is_err)
            && let Some(indented) = IndentedCopy::of(text)
        {
            documents = parsed(start, &indented.text, false);
            for document in &mut documents {
                match document {
                    Ok(document) => {
                        for node in &mut document.tree {
                            node.span.start = indented.position(node.span.start);
                            node.span.end = indented.position(node.span.end);
                        }
                        for fault in &mut document.overwritten {
                            fault.at = indented.position(fault.at);
                        }
                    }
                    Err(fault) => fault.at = indented.position(fault.at),
                }
            }
        }
    }
    let mut faults = documents
        .iter_mut()
        .filter_map(|document| document.as_mut().err())
        .peekable();
    // Searched once, and not for each of what may be a hundred thousand documents.
    if faults.peek().is_some()
        && let Some(hint) = template_hint(text)
    {
        faults.for_each(|fault| hint.clone_into(&mut fault.remedy));
    }
    documents
}

/// The first step for a text that looks like a template, if it does.
pub fn template_hint(text: &str) -> Option<&'static str> {
    if text.contains("{{") {
        Some(
            "it looks like a template: render it first, for example `helm template CHART | rayfit \
             check -`",
        )
    } else if text.contains("${") {
        Some(
            "it looks like a template: fill it in first, for example `envsubst < FILE | rayfit \
             check -`",
        )
    } else {
        None
    }
}

/// The documents of a text that begins at `start`.
fn parsed(start: Position, text: &str, lenient: bool) -> Vec<Result<Document, YamlFault>> {
    let trees = DocumentReader::new(start, text, MAX_NODES, lenient);
    let documents = trees.map(|tree| -> Result<Document, YamlFault> {
        let tree = tree?;
        let (value, overwritten) = value::of(&tree)?;
        Ok(Document {
            value,
            overwritten,
            tree,
        })
    });
    documents.collect()
}

/// JSON objects that follow each other without a separator, which kubectl takes as well; `None`
/// if `text` is not that.
fn json_parts(text: &str) -> Option<Vec<(Position, &str)>> {
    // By this alone apimachinery's decoder, which kubectl uses, tells JSON from YAML.
    if !text.trim_start().starts_with('{') {
        return None;
    }
    let mut stream = serde_json::Deserializer::from_str(text).into_iter::<IgnoredAny>();
    let mut parts = Vec::new();
    let mut start = Position::default();
    while let Some(object) = stream.next() {
        object.ok()?;
        let part = text.get(start.offset..stream.byte_offset())?;
        parts.push((start, part));
        start = start.end_of(part);
    }
    Some(parts)
}

#[cfg(test)]
mod tests;
