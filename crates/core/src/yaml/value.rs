//! The JSON value that kubectl sends, from YAML.

use std::collections::HashMap;

use serde_json::{Map, Value};

use super::fault::{MAX_BYTES, YamlFault};
use super::scalar::Scalar;
use super::tree::{self, NodeContent, Tree, TreeNode, TreeNodeId};

/// Deepest nesting, aliases followed; the API server itself stops at less than that.
const MAX_DEPTH: usize = 512;

/// Most values that aliases may bring; the same order as go-yaml's own bound.
const MAX_ALIASED: usize = 400_000;

/// The value of a document, and the keys in it that occur twice with different values.
pub(super) fn of(tree: &Tree) -> Result<(Value, Vec<YamlFault>), YamlFault> {
    let mut expander = Expander {
        tree,
        depth: 0,
        inside: Vec::new(),
        aliased: 0,
        copied: 0,
        overwritten: Vec::new(),
    };
    let value = match tree.first() {
        Some(root) => expander.value(root)?,
        None => Value::Null,
    };
    Ok((value, expander.overwritten))
}

struct Expander<'a> {
    tree: &'a Tree,
    depth: usize,
    /// The anchors that are being expanded.
    inside: Vec<TreeNodeId>,
    /// Values that aliases brought so far.
    aliased: usize,
    /// Bytes of text that aliases brought so far.
    copied: usize,
    overwritten: Vec<YamlFault>,
}

impl Expander<'_> {
    fn value(&mut self, node: &TreeNode) -> Result<Value, YamlFault> {
        self.enter(node)?;
        let value = match &node.content {
            NodeContent::Scalar(scalar) => scalar.value().ok_or_else(|| {
                let reason = "JSON has no infinite and no undefined numbers";
                node.fault(reason, "write a finite number or a text in quotes")
            }),
            NodeContent::Sequence(items) => items.iter().map(|item| self.item(*item)).collect(),
            NodeContent::Mapping(entries) => self.mapping(entries).map(Value::Object),
            NodeContent::Alias(target) => self.alias(node, *target),
        };
        self.depth -= 1;
        value
    }

    /// Counts one value against the bounds.
    fn enter(&mut self, node: &TreeNode) -> Result<(), YamlFault> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            let reason = format!("nested deeper than {MAX_DEPTH} levels");
            return Err(node.fault(reason, "flatten it"));
        }
        // Values that are written once have been bounded by the size of the text and by MAX_NODES.
        if self.inside.is_empty() {
            return Ok(());
        }
        // A text of a few lines can expand to billions of values, each line repeating the one above several times.
        self.aliased += 1;
        if let NodeContent::Scalar(Scalar::Text(text)) = &node.content {
            self.copied += text.len();
        }
        if self.aliased > MAX_ALIASED || self.copied > MAX_BYTES {
            let reason = "its aliases (*) expand to too much";
            return Err(node.fault(reason, "write out what is meant"));
        }
        Ok(())
    }

    fn item(&mut self, id: TreeNodeId) -> Result<Value, YamlFault> {
        match tree::node(self.tree, id) {
            Some(node) => self.value(node),
            None => Ok(Value::Null),
        }
    }

    /// Continues with the value that an alias stands for.
    fn alias(&mut self, node: &TreeNode, target: TreeNodeId) -> Result<Value, YamlFault> {
        let tree = self.tree;
        let Some(anchored) = tree::node(tree, target).filter(|_| !self.inside.contains(&target))
        else {
            let reason = "the alias (*) stands inside of what it stands for";
            return Err(node.fault(reason, "write out what is meant"));
        };
        self.inside.push(target);
        let result = self.value(anchored);
        self.inside.pop();
        result
    }

    fn mapping(
        &mut self,
        entries: &[(TreeNodeId, TreeNodeId)],
    ) -> Result<Map<String, Value>, YamlFault> {
        let mut map = Map::with_capacity(entries.len());
        let mut written: HashMap<String, usize> = HashMap::new();
        for (key, value) in entries {
            let Some(key) = tree::node(self.tree, *key) else {
                continue;
            };
            match self.key(key)? {
                None => self.merge(*value, &mut map)?,
                Some(name) => {
                    let value = self.item(*value)?;
                    let line = written.insert(name.clone(), key.span.start.line);
                    let hides = line.filter(|_| map.get(&name) != Some(&value));
                    // An alias brings values that have been looked at where they are written.
                    if let Some(line) = hides.filter(|_| self.inside.is_empty()) {
                        let reason = format!(
                            "the key {} occurs twice in one mapping with different values (first \
                             in line {line}), and kubectl keeps the last one without a word",
                            crate::text::shown_text(&name)
                        );
                        let fault = key.fault(reason, "keep the one that is meant");
                        self.overwritten.push(fault);
                    }
                    // As in kubectl, the last value stays.
                    map.insert(name, value);
                }
            }
        }
        Ok(map)
    }

    /// The key as text; `None` for `<<`.
    fn key(&mut self, node: &TreeNode) -> Result<Option<String>, YamlFault> {
        let Some(NodeContent::Scalar(scalar)) =
            tree::resolved(self.tree, node).map(|node| &node.content)
        else {
            let reason = "a key cannot be a list or a mapping";
            return Err(node.fault(reason, "write a text, in quotes if need be"));
        };
        if *scalar == Scalar::Merge && matches!(node.content, NodeContent::Scalar(_)) {
            return Ok(None);
        }
        let key = scalar.key().map(|key| Some(key.into_owned()));
        key.ok_or_else(|| node.fault("a key cannot be null", "write a text, in quotes if need be"))
    }

    /// Brings the entries of what `<<` names; like kubectl, over those written before it.
    fn merge(&mut self, source: TreeNodeId, map: &mut Map<String, Value>) -> Result<(), YamlFault> {
        let Some(node) = tree::node(self.tree, source) else {
            return Ok(());
        };
        let sources = match &node.content {
            NodeContent::Sequence(items) => items.as_slice(),
            _ => std::slice::from_ref(&source),
        };
        // Of several mappings the first that has a key wins.
        for source in sources
            .iter()
            .rev()
            .filter_map(|source| tree::node(self.tree, *source))
        {
            let target = tree::resolved(self.tree, source);
            let is_mapping =
                target.is_some_and(|target| matches!(target.content, NodeContent::Mapping(_)));
            let merged = is_mapping.then(|| self.value(source)).transpose()?;
            let Some(Value::Object(merged)) = merged else {
                let reason = "<< takes a mapping or a list of mappings";
                return Err(source.fault(reason, "point it at one (<<: *name)"));
            };
            map.extend(merged);
        }
        Ok(())
    }
}
