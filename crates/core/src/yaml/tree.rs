//! The written structure of a document: nodes in an arena, with their places.

use std::collections::HashMap;
use std::ops::Range;

use granit_parser::{Event, Marker, Parser, ScalarStyle, StrInput, StructureStyle, Tag};

use super::fault::YamlFault;
use super::position::{Position, Span};
use super::scalar::{Scalar, TagType, resolve};
use super::strict;

/// A node's number in its [`Tree`]; of 32 bits, because a document may have two million nodes.
pub(super) type TreeNodeId = u32;

/// The content of a node.
#[derive(Debug)]
pub(super) enum NodeContent {
    Scalar(Scalar),
    Sequence(Vec<TreeNodeId>),
    Mapping(Vec<(TreeNodeId, TreeNodeId)>),
    Alias(TreeNodeId),
}

/// One written thing.
#[derive(Debug)]
pub(super) struct TreeNode {
    pub(super) span: Span,
    /// A text below a `|` or `>`, which are not in the span.
    pub(super) is_block: bool,
    pub(super) content: NodeContent,
}

impl TreeNode {
    /// Its bytes; of a list or mapping in a block only where it begins.
    pub(super) fn range(&self) -> Range<usize> {
        self.span.start.offset..self.span.end.offset
    }

    /// A fault where it begins.
    pub(super) fn fault(&self, reason: impl Into<String>, remedy: &str) -> YamlFault {
        YamlFault::new(self.span.start, reason, remedy)
    }
}

/// A document as written: its nodes, the first of which is its root; none for a document without any.
pub(super) type Tree = Vec<TreeNode>;

/// The node of that number.
pub(super) fn node(tree: &Tree, id: TreeNodeId) -> Option<&TreeNode> {
    tree.get(id as usize)
}

/// The target of an alias, else the node itself.
pub(super) fn resolved<'a>(tree: &'a Tree, of: &'a TreeNode) -> Option<&'a TreeNode> {
    match of.content {
        NodeContent::Alias(target) => node(tree, target),
        _ => Some(of),
    }
}

/// Most nodes in one text; a text of the greatest length that is read stays far below it unless
/// it consists of brackets.
pub(super) const MAX_NODES: usize = 2_000_000;

/// Reads one document after the other.
pub(super) struct DocumentReader<'a> {
    parser: Parser<'a, StrInput<'a>>,
    text: &'a str,
    start: Position,
    /// The number of nodes that may still come.
    remaining: usize,
    /// The end of the document before this, in the text.
    previous_end: usize,
    /// The text is JSON, of which kubectl's YAML reader sees nothing.
    lenient: bool,
    done: bool,
}

impl<'a> DocumentReader<'a> {
    /// `start` is where `text` begins in the file; `limit` bounds the nodes of all its documents. A `lenient` one
    /// accepts what YAML allows, even if kubectl does not.
    pub(super) fn new(start: Position, text: &'a str, limit: usize, lenient: bool) -> Self {
        let options = granit_parser::options! { emit_comments: false, emit_anchor_events: true };
        Self {
            parser: Parser::new_from_str_with_options(text, options),
            text,
            start,
            remaining: limit,
            previous_end: 0,
            lenient,
            done: false,
        }
    }

    /// The offset in the text of a point of the file.
    fn offset(&self, at: Position) -> usize {
        at.offset.saturating_sub(self.start.offset)
    }

    /// The point of the file at which the parser stands at `marker` of the text.
    fn locate(&self, marker: Marker) -> Position {
        let (start, line) = (self.start, marker.line().max(1));
        // The text may begin in the middle of a line, whose columns then count from there.
        let first_column = if line == 1 { start.column } else { 1 };
        Position {
            offset: start.offset + marker.byte_offset().unwrap_or_default(),
            line: start.line + line - 1,
            column: first_column + marker.col(),
        }
    }

    /// The next event that means something.
    fn event(&mut self) -> Result<Option<(Event<'a>, Span)>, YamlFault> {
        match self.parser.next_event() {
            None => Ok(None),
            Some(Ok((event, span))) => {
                let (start, end) = (self.locate(span.start), self.locate(span.end));
                Ok(Some((event, Span { start, end })))
            }
            Some(Err(error)) => Err(YamlFault::syntax(
                self.locate(*error.marker()),
                error.info(),
            )),
        }
    }

    /// The nodes up to the document's end.
    fn document(&mut self) -> Result<Tree, YamlFault> {
        let mut builder = Builder::default();
        while let Some((event, span)) = self.event()? {
            if matches!(event, Event::DocumentEnd) {
                let part = self.previous_end..self.offset(span.end);
                self.previous_end = part.end;
                match strict::tab(self.start, self.text, part, &builder.covered) {
                    Some(fault) if !self.lenient => return Err(fault),
                    _ => break,
                }
            }
            builder.take(event, span)?;
            // Counted while the text is read, because a tree takes many times the memory of its text.
            if builder.tree.len() > self.remaining {
                let reason = "there are more values than any manifest has";
                return Err(YamlFault::new(span.start, reason, "split the file"));
            }
        }
        self.remaining -= builder.tree.len();
        Ok(builder.tree)
    }
}

impl Iterator for DocumentReader<'_> {
    type Item = Result<Tree, YamlFault>;

    fn next(&mut self) -> Option<Self::Item> {
        while !self.done {
            let document = match self.event() {
                Ok(Some((Event::DocumentStart(..), span))) => {
                    let (start, at) = (self.start, self.offset(span.start));
                    let fault = strict::between(start, self.text, self.previous_end..at)
                        .or_else(|| strict::separator(start, self.text, at));
                    match fault {
                        Some(fault) if !self.lenient => Err(fault),
                        _ => self.document(),
                    }
                }
                Ok(Some(_)) => continue,
                Ok(None) => break,
                Err(fault) => Err(fault),
            };
            // After a syntax error it is unknown where the next document begins.
            self.done = document.is_err();
            return Some(document);
        }
        None
    }
}

/// Makes a tree of events, without recursion.
#[derive(Default)]
struct Builder {
    tree: Tree,
    /// The collections that are not closed yet, with the key that waits for its value.
    open: Vec<(TreeNodeId, Option<TreeNodeId>)>,
    anchors: HashMap<usize, TreeNodeId>,
    /// Multi-line strings, and collections in braces or brackets, in which leading spaces are not
    /// indentation.
    covered: Vec<Range<usize>>,
    /// The number of such collections that are open, and the beginning of the outermost.
    flow: (usize, usize),
}

impl Builder {
    fn take(&mut self, event: Event<'_>, span: Span) -> Result<(), YamlFault> {
        match event {
            Event::Scalar(text, style, anchor, tag) => {
                let scalar = scalar(&text, style, tag.as_deref(), span)?;
                if span.start.line != span.end.line {
                    self.covered.push(span.start.offset..span.end.offset);
                }
                let id = self.add(NodeContent::Scalar(scalar), span, anchor);
                if let Some(node) = self.tree.get_mut(id as usize) {
                    node.is_block = matches!(style, ScalarStyle::Literal | ScalarStyle::Folded);
                }
            }
            Event::SequenceStart(style, anchor, _) => {
                self.open(NodeContent::Sequence(Vec::new()), (span, style), anchor);
            }
            Event::MappingStart(style, anchor, _) => {
                self.open(NodeContent::Mapping(Vec::new()), (span, style), anchor);
            }
            Event::SequenceEnd | Event::MappingEnd => {
                let closed = self.open.pop();
                let (depth, began) = &mut self.flow;
                // Of a list or mapping in a block, only what lies in it says where it ends.
                if *depth > 0
                    && let Some((id, _)) = closed
                    && let Some(node) = self.tree.get_mut(id as usize)
                {
                    node.span.end = span.end;
                }
                if *depth == 1 {
                    self.covered.push(*began..span.end.offset);
                }
                *depth = depth.saturating_sub(1);
            }
            Event::Anchor(_, name) => {
                if let Some(fault) = strict::anchor(span.start, &name) {
                    return Err(fault);
                }
            }
            Event::Alias(anchor) => {
                let Some(target) = self.anchors.get(&anchor) else {
                    return Err(YamlFault::syntax(span.start, "an alias without its anchor"));
                };
                self.add(NodeContent::Alias(*target), span, 0);
            }
            _ => {}
        }
        Ok(())
    }

    fn open(&mut self, content: NodeContent, (span, style): (Span, StructureStyle), anchor: usize) {
        let id = self.add(content, span, anchor);
        self.open.push((id, None));
        match &mut self.flow {
            (0, _) if style == StructureStyle::Block => {}
            (0, began) => {
                *began = span.start.offset;
                self.flow.0 = 1;
            }
            // A collection within braces or brackets counts as one in them, too.
            (depth, _) => *depth += 1,
        }
    }

    fn add(&mut self, content: NodeContent, span: Span, anchor: usize) -> TreeNodeId {
        // MAX_NODES is far below u32::MAX.
        let id = TreeNodeId::try_from(self.tree.len()).unwrap_or(TreeNodeId::MAX);
        self.tree.push(TreeNode {
            span,
            is_block: false,
            content,
        });
        // The parser numbers anchors from 1.
        if anchor != 0 {
            self.anchors.insert(anchor, id);
        }
        if let Some((parent, key)) = self.open.last_mut()
            && let Some(parent) = self.tree.get_mut(*parent as usize)
        {
            match &mut parent.content {
                NodeContent::Sequence(items) => items.push(id),
                NodeContent::Mapping(entries) => match key.take() {
                    Some(key) => entries.push((key, id)),
                    None => *key = Some(id),
                },
                _ => {}
            }
        }
        id
    }
}

/// A quoted scalar is a string; an unquoted one has the type that go-yaml gives it; a tag overrides
/// both.
fn scalar(
    text: &str,
    style: ScalarStyle,
    tag: Option<&Tag>,
    span: Span,
) -> Result<Scalar, YamlFault> {
    let name = tag.and_then(|tag| tag.suffix_in_namespace("tag:yaml.org,2002:"));
    let expected = match name.as_deref() {
        Some("bool") => TagType::Bool,
        Some("int") => TagType::Int,
        Some("float") => TagType::Float,
        Some("null") => TagType::Null,
        Some("timestamp") => TagType::Timestamp,
        None if tag.is_none() && style == ScalarStyle::Plain => TagType::Any,
        // A custom tag is kept as text.
        _ => TagType::Text,
    };
    resolve(text, expected).ok_or_else(|| {
        let tag = tag.map(Tag::original).unwrap_or_default();
        let shown = crate::text::shown_text(text);
        let remedy = "remove the tag or write a value of its type";
        YamlFault::new(
            span.start,
            format!("{shown} is not of the type {tag}"),
            remedy,
        )
    })
}
