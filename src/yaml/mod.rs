//! YAML and JSON manifests as kubectl reads them, with the place of every value.
//!
//! kubectl reads YAML 1.1 through go-yaml v2: `yes` and `on` are booleans, `010` is eight, `<<`
//! merges, keys that are not text become text, `1.0` is sent as 1. The table in `scalar`'s tests
//! was confirmed against that library. Two things differ on purpose: a key that occurs twice is a
//! [`YamlFault`] (kubectl keeps the last one without a word), and JSON's escapes are understood
//! everywhere.
//!
//! Hostile input is bounded: size, nesting, what aliases may expand to. Reading order: `scalar`,
//! `strict`, `tree`, `value`, `place`, `write`.

mod fault;
mod place;
mod position;
mod scalar;
mod strict;
mod tree;
mod value;
mod write;

pub use fault::{MAX_BYTES, YamlFault};
pub use place::YamlPlace;
pub use position::{Position, Span};
pub use write::write;

use serde::de::IgnoredAny;
use serde_json::Value;

use tree::{MAX_NODES, Reader, Tree};

/// One document of a manifest.
#[derive(Debug)]
pub struct Document {
    /// What it says.
    pub value: Value,
    tree: Tree,
}

impl Document {
    /// Where the value at a JSON pointer is written, or the nearest ancestor that is.
    pub fn place(&self, pointer: &str) -> YamlPlace {
        place::find(&self.tree, pointer)
    }
}

/// Reads every document of `text`. A fault of one document does not hide the others, as far as
/// they can still be told apart.
pub fn read(text: &str) -> Vec<Result<Document, YamlFault>> {
    if let Some(fault) = fault::unreadable(text) {
        return vec![Err(fault)];
    }
    let mut documents = Vec::new();
    match json_parts(text) {
        Some(parts) => {
            for (start, part) in parts {
                read_part(
                    Reader::new(start, part, MAX_NODES).lenient(),
                    &mut documents,
                );
            }
        }
        None => read_part(
            Reader::new(Position::default(), text, MAX_NODES),
            &mut documents,
        ),
    }
    let mut faults = documents
        .iter_mut()
        .filter_map(|document| document.as_mut().err())
        .peekable();
    // Searched once, and not for each of what may be a hundred thousand documents.
    if faults.peek().is_some() && text.contains("{{") {
        faults.for_each(YamlFault::hint_at_templates);
    }
    documents
}

fn read_part(reader: Reader<'_>, documents: &mut Vec<Result<Document, YamlFault>>) {
    for tree in reader {
        documents.push(tree.and_then(|tree| {
            let value = value::of(&tree)?;
            Ok(Document { value, tree })
        }));
    }
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
        start = start.after(part);
    }
    Some(parts)
}

#[cfg(test)]
mod tests;
