//! Texts as small numbers. Names of resources and labels are compared millions of times. The
//! numbers are in the order of the texts, so that they compare as the texts do.

use std::collections::BTreeSet;

use crate::hash::HashMap;

/// Resources with this prefix exist once on every node without being listed (Ray,
/// `IMPLICIT_RESOURCE_PREFIX`).
const IMPLICIT: &str = "node:__internal_implicit_resource_";

/// The number of a text of [`Names`]. Numbers are ordered as the texts are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Name(pub(crate) u32);

/// The texts of one decision.
#[derive(Debug, Default)]
pub(crate) struct Names {
    texts: Vec<String>,
    index: HashMap<String, Name>,
    /// The numbers from `implicit.0` up to, and without, `implicit.1` are implicit resources.
    implicit: (u32, u32),
}

impl Name {
    /// The placeholder for every text that no request names: no node that is read has a label or a
    /// resource of that number, since there are never so many texts.
    pub(crate) const UNNAMED: Self = Self(u32::MAX);
}

impl Names {
    /// Numbers the texts in their order.
    pub(crate) fn of(texts: BTreeSet<&str>) -> Self {
        let texts: Vec<String> = texts.into_iter().map(str::to_owned).collect();
        let number = |at: usize| u32::try_from(at).unwrap_or(u32::MAX);
        let first = texts.partition_point(|text| text.as_str() < IMPLICIT);
        let end =
            texts.partition_point(|text| text.as_str() < IMPLICIT || text.starts_with(IMPLICIT));
        let index = (0..).zip(&texts);
        Self {
            index: index.map(|(id, text)| (text.clone(), Name(id))).collect(),
            implicit: (number(first), number(end)),
            texts,
        }
    }

    /// The number of a text, or the placeholder for those that are not known.
    pub(crate) fn number(&self, text: &str) -> Name {
        self.get(text).unwrap_or(Name::UNNAMED)
    }

    /// The number of a text, if it is known.
    pub(crate) fn get(&self, text: &str) -> Option<Name> {
        self.index.get(text).copied()
    }

    /// The text of a number.
    pub(crate) fn text(&self, name: Name) -> &str {
        self.texts.get(name.0 as usize).map_or("", String::as_str)
    }

    /// True for a resource that exists once on every node.
    pub(crate) fn is_implicit(&self, name: Name) -> bool {
        (self.implicit.0..self.implicit.1).contains(&name.0)
    }

    /// The amount of a resource that a node has on which it is not listed.
    pub(crate) fn implied(&self, name: Name) -> f64 {
        if self.is_implicit(name) { 1.0 } else { 0.0 }
    }
}
