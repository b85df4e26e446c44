//! Small changes of a text: a scalar is replaced, a key is added, a key or an item is removed, and all else stays as it
//! is written.
//!
//! In: a document with its text, a place and a value. Out: a stretch of the text and what is to stand there. Invariant:
//! no comment is lost. That the text then has the value, and no other change, is seen by reading it again.

use std::collections::HashSet;
use std::ops::Range;

use serde_json::Value;

use super::lines::SourceLines;
use super::scalar::Scalar;
use super::tree::{self, NodeContent, Tree, TreeNode, TreeNodeId};
use super::write::{escaped, word};

/// A change of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextEdit {
    /// The bytes that go.
    pub range: Range<usize>,
    /// The text that comes in their place.
    pub text: String,
}

/// The reason for which a text is not changed at a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum EditRefusal {
    /// Braces or brackets around it.
    #[error("it stands in braces or brackets, whose layout only its author knows")]
    Flow,
    /// An anchor, an alias, a merge or a tag.
    #[error("an anchor, an alias or a tag is in its place")]
    Alias,
    /// A value of several lines.
    #[error("it takes a text of several lines")]
    Lines,
    /// A line that is shared.
    #[error("it shares its line with something else")]
    SharedLine,
    /// A key that occurs twice.
    #[error("its key is written twice")]
    Twice,
    /// A place that the file does not have.
    #[error("the file does not have its place, which a default or an alias brings")]
    Absent,
    /// A fix with which the object has as many findings.
    #[error("with it, the object would have another finding")]
    BringsAnother,
    /// Fixes of a document that change more than they should.
    #[error("with it, the document would be read otherwise than it should be")]
    ReadOtherwise,
}

/// A value that is written: its node, and that of its key in a mapping.
#[derive(Clone, Copy)]
struct WrittenNode<'a> {
    key: Option<&'a TreeNode>,
    id: TreeNodeId,
    node: &'a TreeNode,
}

/// The change that gives the place at `pointer` a value that is no list or mapping, or takes the place away.
pub(super) fn edit(
    tree: &Tree,
    text: &str,
    pointer: &str,
    value: Option<&Value>,
) -> Result<TextEdit, EditRefusal> {
    let target = |node: &TreeNode| match node.content {
        NodeContent::Alias(target) => Some(target),
        _ => None,
    };
    let editor = Editor {
        tree,
        lines: SourceLines(text),
        anchored: tree.iter().filter_map(target).collect(),
    };
    let mut steps: Vec<String> = pointer.split('/').skip(1).map(super::place::key).collect();
    let (Some(last), Some(root)) = (steps.pop(), tree.first()) else {
        return Err(EditRefusal::Absent);
    };
    let mut parent = WrittenNode {
        key: None,
        id: 0,
        node: root,
    };
    let mut in_flow = editor.is_flow(root);
    for step in steps {
        parent = editor.child(parent, &step)?.ok_or(EditRefusal::Absent)?;
        in_flow |= editor.is_flow(parent.node);
    }
    match (editor.child(parent, &last)?, value) {
        (_, Some(Value::Array(_) | Value::Object(_))) => Err(EditRefusal::Lines),
        (Some(child), Some(value)) => editor.replaced(child, value, in_flow),
        (Some(child), None) => editor.removed(parent, child),
        (None, Some(value)) => editor.added(parent, &last, value),
        (None, None) => Err(EditRefusal::Absent),
    }
}

struct Editor<'a> {
    tree: &'a Tree,
    lines: SourceLines<'a>,
    /// The nodes that aliases stand for.
    anchored: HashSet<TreeNodeId>,
}

impl<'a> Editor<'a> {
    /// The value one step below.
    fn child(
        &self,
        parent: WrittenNode<'a>,
        step: &str,
    ) -> Result<Option<WrittenNode<'a>>, EditRefusal> {
        let mut found = None;
        match &parent.node.content {
            NodeContent::Sequence(items) => {
                let at: Option<usize> = step.parse().ok();
                found = at.and_then(|at| items.get(at)).map(|id| (None, *id));
            }
            NodeContent::Mapping(entries) => {
                for (key, id) in entries {
                    let name = match tree::node(self.tree, *key).map(|key| &key.content) {
                        Some(NodeContent::Scalar(Scalar::Merge)) => return Err(EditRefusal::Alias),
                        Some(NodeContent::Scalar(scalar)) => scalar.key(),
                        _ => return Err(EditRefusal::Alias),
                    };
                    if name.as_deref() == Some(step) && found.replace((Some(*key), *id)).is_some() {
                        return Err(EditRefusal::Twice);
                    }
                }
            }
            NodeContent::Scalar(_) | NodeContent::Alias(_) => return Err(EditRefusal::Absent),
        }
        let Some((key, id)) = found else {
            return Ok(None);
        };
        let key = key.and_then(|key| tree::node(self.tree, key));
        let node = tree::node(self.tree, id).ok_or(EditRefusal::Absent)?;
        if self.anchored.contains(&id) || matches!(node.content, NodeContent::Alias(_)) {
            return Err(EditRefusal::Alias);
        }
        Ok(Some(WrittenNode { key, id, node }))
    }

    /// A list or mapping in brackets or braces.
    fn is_flow(&self, node: &TreeNode) -> bool {
        !matches!(node.content, NodeContent::Scalar(_))
            && self
                .lines
                .rest(node.span.start.offset)
                .starts_with(['{', '['])
    }

    fn replaced(
        &self,
        child: WrittenNode<'a>,
        value: &Value,
        in_flow: bool,
    ) -> Result<TextEdit, EditRefusal> {
        let span = child.node.span;
        let (start, end) = (span.start.offset, span.end.offset);
        let old = self.lines.slice(start..end);
        if !matches!(child.node.content, NodeContent::Scalar(_)) {
            return Err(EditRefusal::Lines);
        }
        if old.is_empty() {
            let at = self.behind_colon(child.key.ok_or(EditRefusal::Absent)?)?;
            let text = format!(" {}", plain(value));
            return Ok(TextEdit {
                range: at..at,
                text,
            });
        }
        if child.node.is_block {
            return self.block(child, value);
        }
        // Whatever else stands before a value on its line belongs to it: a tag, an anchor.
        let before = self.lines.slice(self.lines.start(start)..start).trim_end();
        if !before.is_empty() && !before.ends_with([':', '-', ',', '{', '[']) {
            return Err(EditRefusal::Alias);
        }
        if span.start.line != span.end.line {
            return Err(EditRefusal::Lines);
        }
        let text = match value {
            Value::String(value) if old.starts_with('\'') && word(value) != escaped(value) => {
                format!("'{}'", value.replace('\'', "''"))
            }
            value if in_flow || old.starts_with('"') => json(value),
            value => plain(value),
        };
        let range = start..end;
        Ok(TextEdit { range, text })
    }

    /// A text of several lines below a `|`, indented as the old one is.
    fn block(&self, child: WrittenNode<'a>, value: &Value) -> Result<TextEdit, EditRefusal> {
        let range = child.node.range();
        let key = child.key.ok_or(EditRefusal::Lines)?;
        let header = self.lines.slice(self.behind_colon(key)?..range.start);
        let (Some(value), true) = (value.as_str(), header.trim_start().starts_with('|')) else {
            return Err(EditRefusal::Lines);
        };
        let indent = self.lines.slice(self.lines.start(range.start)..range.start);
        let mut text = String::new();
        for (number, line) in value.trim_end().lines().enumerate() {
            if number > 0 {
                let indent = if line.is_empty() { "" } else { indent };
                text.extend([self.lines.line_break(), indent]);
            }
            text.push_str(line);
        }
        // Blank lines below it, and whether the file ends with a line break, are as they were.
        let old = self.lines.slice(range.clone());
        text.push_str(&old[old.trim_end().len()..]);
        Ok(TextEdit { range, text })
    }

    /// The key of a mapping with its value, below or in braces without anything.
    fn added(
        &self,
        parent: WrittenNode<'a>,
        key: &str,
        value: &Value,
    ) -> Result<TextEdit, EditRefusal> {
        let NodeContent::Mapping(entries) = &parent.node.content else {
            return Err(EditRefusal::Absent);
        };
        if self.is_flow(parent.node) {
            let range = parent.node.range();
            let is_empty =
                entries.is_empty() && !self.lines.slice(range.clone()).contains(['#', '\n']);
            let text = format!("{{{}: {}}}", escaped(key), json(value));
            let edit = TextEdit { range, text };
            return is_empty.then_some(edit).ok_or(EditRefusal::Flow);
        }
        let first = entries
            .first()
            .and_then(|(key, _)| tree::node(self.tree, *key));
        let first = first.ok_or(EditRefusal::Absent)?.span.start.offset;
        let indent = self.lines.slice(self.lines.start(first)..first);
        if !indent.chars().all(|char| matches!(char, ' ' | '-')) {
            return Err(EditRefusal::SharedLine);
        }
        // The end of a text in a block is not the end of its last line.
        let ends = entries.iter().rev();
        let end = ends
            .map(|(key, value)| self.end(&[*key, *value]))
            .find_map(Result::ok);
        let end = end.ok_or(EditRefusal::Lines)?;
        let end = self.lines.end(end).ok_or(EditRefusal::SharedLine)?;
        let line = format!(
            "{}{}: {}",
            indent.replace('-', " "),
            name(key),
            plain(value)
        );
        let newline = self.lines.line_break();
        let text = if self.lines.slice(0..end).ends_with('\n') {
            format!("{line}{newline}")
        } else {
            format!("{newline}{line}")
        };
        let range = end..end;
        Ok(TextEdit { range, text })
    }

    /// The lines of a key with its value, or of an item. Comments in them stay; a list or mapping of which nothing else
    /// is left is written as such.
    fn removed(
        &self,
        parent: WrittenNode<'a>,
        child: WrittenNode<'a>,
    ) -> Result<TextEdit, EditRefusal> {
        if self.is_flow(parent.node) {
            return Err(EditRefusal::Flow);
        }
        let first = child.key.unwrap_or(child.node).span.start.offset;
        let start = self.lines.start(first);
        let before = self.lines.slice(start..first);
        let indent = match child.key {
            Some(_) => before,
            None => before
                .trim_end()
                .strip_suffix('-')
                .ok_or(EditRefusal::SharedLine)?,
        };
        if !indent.chars().all(|char| char == ' ') {
            return Err(EditRefusal::SharedLine);
        }
        let mut nodes = vec![child.id];
        let key = child.key.map_or(first, |key| key.span.end.offset);
        let end = self.end(&nodes)?.max(key);
        let end = self.lines.end(end).ok_or(EditRefusal::SharedLine)?;
        self.descend(&mut nodes);
        if nodes.iter().any(|id| self.anchored.contains(id)) {
            return Err(EditRefusal::Alias);
        }
        let scalars = nodes.iter().filter_map(|id| tree::node(self.tree, *id));
        let scalars = scalars.filter(|node| matches!(node.content, NodeContent::Scalar(_)));
        let scalars: Vec<Range<usize>> = scalars.chain(child.key).map(TreeNode::range).collect();
        let mut text = self.lines.comments(start..end, indent, &scalars);
        let (count, empty) = match &parent.node.content {
            NodeContent::Sequence(items) => (items.len(), " []"),
            NodeContent::Mapping(entries) => (entries.len(), " {}"),
            _ => return Err(EditRefusal::Absent),
        };
        if count > 1 {
            return Ok(TextEdit {
                range: start..end,
                text,
            });
        }
        let at = self.behind_colon(parent.key.ok_or(EditRefusal::SharedLine)?)?;
        text = format!("{empty}{}{text}", self.lines.slice(at..start));
        let range = at..end;
        Ok(TextEdit { range, text })
    }

    /// Adds the nodes that lie in some nodes.
    fn descend(&self, nodes: &mut Vec<TreeNodeId>) {
        let mut next = 0;
        while let Some(node) = nodes.get(next).and_then(|id| tree::node(self.tree, *id)) {
            next += 1;
            match &node.content {
                NodeContent::Sequence(items) => nodes.extend(items),
                NodeContent::Mapping(entries) => {
                    nodes.extend(entries.iter().flat_map(|(key, value)| [*key, *value]));
                }
                NodeContent::Scalar(_) | NodeContent::Alias(_) => {}
            }
        }
    }

    /// The end of the last thing that is written of some nodes.
    fn end(&self, nodes: &[TreeNodeId]) -> Result<usize, EditRefusal> {
        let mut nodes = nodes.to_vec();
        self.descend(&mut nodes);
        let mut end = 0;
        for node in nodes.iter().filter_map(|id| tree::node(self.tree, *id)) {
            let span = node.range();
            let is_laid_out = !self.is_flow(node)
                && !matches!(node.content, NodeContent::Scalar(_) | NodeContent::Alias(_));
            if is_laid_out || span.is_empty() {
                continue;
            }
            if node.is_block {
                return Err(EditRefusal::Lines);
            }
            end = end.max(span.end);
        }
        Ok(end)
    }

    fn behind_colon(&self, key: &TreeNode) -> Result<usize, EditRefusal> {
        let end = key.span.end.offset;
        let rest = self.lines.rest(end);
        let colon = rest.find(':').filter(|at| rest[..*at].trim().is_empty());
        colon.map(|at| end + at + 1).ok_or(EditRefusal::SharedLine)
    }
}

/// A value outside of braces, in quotes if need be.
fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => name(text),
        other => other.to_string(),
    }
}

fn name(text: &str) -> String {
    let bare = word(text);
    if bare == text { bare } else { escaped(text) }
}

/// A value as JSON has it, which YAML reads in braces too.
fn json(value: &Value) -> String {
    match value {
        Value::String(text) => escaped(text),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::yaml::{EditRefusal, read};

    /// The text after a change, which must be read as the object with that value.
    fn edited(text: &str, pointer: &str, value: &serde_json::Value) -> Result<String, EditRefusal> {
        let document = read(text).remove(0).expect(text);
        let edit = document.edit(text, pointer, Some(value).filter(|value| !value.is_null()))?;
        let after = [
            &text[..edit.range.start],
            &edit.text,
            &text[edit.range.end..],
        ]
        .concat();
        let mut expected = document.value.clone();
        let (parent, key) = pointer.rsplit_once('/').unwrap();
        match expected.pointer_mut(parent).unwrap() {
            serde_json::Value::Array(items) => drop(items.remove(key.parse().unwrap())),
            parent if value.is_null() => drop(parent.as_object_mut().unwrap().remove(key)),
            parent => parent[key] = value.clone(),
        }
        assert_eq!(
            read(&after).remove(0).expect(&after).value,
            expected,
            "{after}"
        );
        Ok(after)
    }

    #[test]
    fn only_what_changes_is_written() {
        let gone = serde_json::Value::Null;
        for (text, pointer, value, after) in [
            (
                "a: 1 # one\nb: 2\n",
                "/a",
                json!("1"),
                "a: \"1\" # one\nb: 2\n",
            ),
            ("a: 'x'\n", "/a", json!("it's"), "a: 'it''s'\n"),
            ("a: \"x\"", "/a", json!("y"), "a: \"y\""),
            ("a:\r\n- b: x\r\n", "/a/0/b", json!(3), "a:\r\n- b: 3\r\n"),
            ("a: {b: x}\n", "/a/b", json!("2"), "a: {b: \"2\"}\n"),
            (
                "{\"a\": {\"b\": 1}}",
                "/a/b",
                json!("x"),
                "{\"a\": {\"b\": \"x\"}}",
            ),
            ("a:\n\nb: 1\n", "/a", json!(2), "a: 2\n\nb: 1\n"),
            (
                "a: |\n  x\n  y\n\n# c\nb: 1\n",
                "/a",
                json!("z\n\nw\n"),
                "a: |\n  z\n\n  w\n\n# c\nb: 1\n",
            ),
            // Removing.
            (
                "a: 1\nb: 2 # two\nc: 3\n",
                "/b",
                gone.clone(),
                "a: 1\n# two\nc: 3\n",
            ),
            (
                "a:\n  b: 1\n  # why\n  c:\n    d: '#'\n    # how\n    e: [1, # x\n      2]\n  f: 1\n",
                "/a/c",
                gone.clone(),
                "a:\n  b: 1\n  # why\n    # how\n  # x\n  f: 1\n",
            ),
            (
                "a: # here\n  b: 1 # one\nc: 2\n",
                "/a/b",
                gone.clone(),
                "a: {} # here\n  # one\nc: 2\n",
            ),
            (
                "a:\n- x: 1\n  y: 2\n- x: 3\n",
                "/a/0",
                gone.clone(),
                "a:\n- x: 3\n",
            ),
            (
                "a:\n- x: 1\n  y: 2\nb: 1",
                "/a/0",
                gone.clone(),
                "a: []\nb: 1",
            ),
            ("a: 1\nb: 2", "/b", gone.clone(), "a: 1\n"),
            (
                "a: 1\r\nb:\r\n  - c\r\nd: 2\r\n",
                "/b",
                gone.clone(),
                "a: 1\r\nd: 2\r\n",
            ),
            // Adding.
            (
                "a:\n  b: 1 # one\n# c\nd: 1\n",
                "/a/e",
                json!("0"),
                "a:\n  b: 1 # one\n  e: \"0\"\n# c\nd: 1\n",
            ),
            (
                "a:\n- b: 1\nd: 1\n",
                "/a/0/e",
                json!(true),
                "a:\n- b: 1\n  e: true\nd: 1\n",
            ),
            ("a: {}\n", "/a/e", json!("0"), "a: {\"e\": \"0\"}\n"),
            ("a:\r\n  b: 1", "/a/e", json!(1), "a:\r\n  b: 1\r\n  e: 1"),
            (
                "a:\n  b: 1\n  c: |\n    x\nd: 1\n",
                "/a/e",
                json!(1),
                "a:\n  b: 1\n  e: 1\n  c: |\n    x\nd: 1\n",
            ),
        ] {
            assert_eq!(
                edited(text, pointer, &value).as_deref(),
                Ok(after),
                "{text:?} {pointer}"
            );
        }
    }

    #[test]
    fn what_only_its_author_can_lay_out_is_left() {
        use EditRefusal::{Absent, Alias, Flow, Lines, SharedLine, Twice};
        let gone = serde_json::Value::Null;
        for (text, pointer, value, refusal) in [
            ("a: {b: 1, c: 2}\n", "/a/b", gone.clone(), Flow),
            ("a: {b: 1}\n", "/a/c", json!(1), Flow),
            ("a: &x {b: 1}\nc: *x\n", "/c/b", json!(2), Alias),
            ("a: &x {b: 1}\nc: *x\n", "/a/b", json!(2), Alias),
            ("a: &x {b: 1}\nc:\n  <<: *x\n", "/c/b", json!(2), Alias),
            ("a: !!str 1\n", "/a", json!(2), Alias),
            ("a: x\n  y\n", "/a", json!(2), Lines),
            ("a: >\n  y\n", "/a", json!("z"), Lines),
            ("a: {}\n", "/a", json!(1), Lines),
            ("a:\n- x: 1\n  y: 2\n", "/a/0/x", gone.clone(), SharedLine),
            ("a:\n- - x\n  - y\n", "/a/0/0", gone.clone(), SharedLine),
            ("a: 1\na: 2\n", "/a", json!(3), Twice),
            ("a: 1\n", "/b/c", json!(3), Absent),
        ] {
            assert_eq!(
                edited(text, pointer, &value),
                Err(refusal),
                "{text:?} {pointer}"
            );
        }
    }
}
