//! The place of a value in a text.

use super::position::Span;
use super::scalar::Scalar;
use super::tree::{self, NodeContent, Tree, TreeNode, TreeNodeId};

/// The place to underline for a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct YamlPlace {
    /// The value if it is a scalar, else the key that leads to it.
    pub span: Span,
    /// The value itself is written; `false` if this is only an ancestor of it.
    pub exact: bool,
}

/// The place of the value at `pointer`, or of the nearest ancestor that is written.
pub(super) fn find(tree: &Tree, pointer: &str) -> YamlPlace {
    let mut at = tree.first();
    let mut span = at.map(|root| shown(tree, root, None)).unwrap_or_default();
    for step in pointer.split('/').skip(1) {
        let Some((leading, value)) = at.and_then(|node| child(tree, node, &key(step))) else {
            return YamlPlace { span, exact: false };
        };
        at = tree::node(tree, value);
        let leading = leading.and_then(|key| tree::node(tree, key));
        span = at.map_or(span, |node| shown(tree, node, leading));
    }
    YamlPlace { span, exact: true }
}

/// The key that a step of a pointer names.
pub(super) fn key(step: &str) -> String {
    // In the order of RFC 6901, so that "~01" becomes "~1" and not "/".
    step.replace("~1", "/").replace("~0", "~")
}

/// A scalar is shown itself; of a list or mapping the key that leads to it, or its beginning.
fn shown(tree: &Tree, node: &TreeNode, key: Option<&TreeNode>) -> Span {
    let first_key = || match &node.content {
        NodeContent::Mapping(entries) => tree::node(tree, entries.first()?.0),
        _ => None,
    };
    match (&node.content, key.or_else(first_key)) {
        (NodeContent::Scalar(_), _) if node.span.start != node.span.end => node.span,
        (_, Some(key)) => key.span,
        (NodeContent::Scalar(_), None) => node.span,
        (_, None) => Span {
            start: node.span.start,
            end: node.span.start,
        },
    }
}

/// The key (in a mapping) and the value one step down.
fn child(tree: &Tree, node: &TreeNode, step: &str) -> Option<(Option<TreeNodeId>, TreeNodeId)> {
    match &tree::resolved(tree, node)?.content {
        NodeContent::Sequence(items) => Some((None, *items.get(step.parse::<usize>().ok()?)?)),
        NodeContent::Mapping(entries) => {
            entry(tree, entries, step).map(|(key, value)| (Some(key), value))
        }
        NodeContent::Scalar(_) | NodeContent::Alias(_) => None,
    }
}

/// The entry that decides: the last one written, merged ones included.
fn entry(
    tree: &Tree,
    entries: &[(TreeNodeId, TreeNodeId)],
    step: &str,
) -> Option<(TreeNodeId, TreeNodeId)> {
    entries.iter().rev().find_map(|(key, value)| {
        let NodeContent::Scalar(scalar) = &tree::resolved(tree, tree::node(tree, *key)?)?.content
        else {
            return None;
        };
        // Of entries and merges the last one decides, so a merge is searched where it is met.
        if *scalar == Scalar::Merge {
            return merged(tree, tree::node(tree, *value)?, step);
        }
        (scalar.key().as_deref() == Some(step)).then_some((*key, *value))
    })
}

/// The entry that a `<<` brings; of several mappings the first that has it.
fn merged(tree: &Tree, source: &TreeNode, step: &str) -> Option<(TreeNodeId, TreeNodeId)> {
    match &tree::resolved(tree, source)?.content {
        NodeContent::Mapping(entries) => entry(tree, entries, step),
        NodeContent::Sequence(items) => items
            .iter()
            .find_map(|item| merged(tree, tree::node(tree, *item)?, step)),
        NodeContent::Scalar(_) | NodeContent::Alias(_) => None,
    }
}
