//! Circles in a graph.

use std::collections::{BTreeMap, BTreeSet};

/// One circle, if there is any: each imports the next, and the last the first.
pub(crate) fn find<Node: Ord + Clone>(edges: &BTreeMap<Node, BTreeSet<Node>>) -> Option<Vec<Node>> {
    let mut done = BTreeSet::new();
    edges
        .keys()
        .find_map(|start| walk(edges, start, &mut Vec::new(), &mut done))
}

fn walk<Node: Ord + Clone>(
    edges: &BTreeMap<Node, BTreeSet<Node>>,
    at: &Node,
    way: &mut Vec<Node>,
    done: &mut BTreeSet<Node>,
) -> Option<Vec<Node>> {
    if let Some(start) = way.iter().position(|before| before == at) {
        return Some(way[start..].to_vec());
    }
    if !done.insert(at.clone()) {
        return None;
    }
    way.push(at.clone());
    let next = edges.get(at).into_iter().flatten();
    let circle = next
        .into_iter()
        .find_map(|next| walk(edges, next, way, done));
    way.pop();
    circle
}
