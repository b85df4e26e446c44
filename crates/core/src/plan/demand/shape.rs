//! Request shapes: each distinct request is kept once.

use std::cmp::Ordering;

use crate::hash::HashMap;
use crate::plan::demand::names::{Name, Names};
use crate::snapshot::gcs::{
    Label, LabelConstraint, LabelOperator, PlacementConstraint, ResourceRequest,
};

/// The number of a [`Shape`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct ShapeId(pub(crate) u32);

/// The resources and labels that one task, actor or bundle needs of a node.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Shape {
    /// The amounts, in the order of the names. Amounts of zero are kept, because the order of
    /// packing counts them.
    pub(crate) needs: Vec<(Name, f64)>,
    /// The label selectors. A node must satisfy one of them, if there are any.
    pub(crate) selectors: Vec<Vec<LabelCondition>>,
    /// The placement constraints.
    pub(crate) placement: Vec<LabelPlacement>,
    /// The request names the resource GPU, even with an amount of 0.
    pub(crate) names_gpu: bool,
    /// The steps of the work budget that comparing the shape with a node takes.
    pub(crate) steps: usize,
    /// The sum of the amounts, in the order of the names.
    sum: f64,
}

/// One condition of a label selector.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LabelCondition {
    pub(crate) label: Name,
    pub(crate) operator: LabelOperator,
    pub(crate) values: Vec<Name>,
}

/// A placement constraint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LabelPlacement {
    /// Not on a node with that label; sets the label to that value on its own node.
    AntiAffinity((Name, Name)),
    /// Together with others; this only counts in the order of packing.
    Affinity((Name, Name)),
    /// An empty constraint, which only counts in the order of packing.
    Nothing,
}

impl Shape {
    /// Reads a request, all of whose texts are in `names`.
    pub(crate) fn of(request: &ResourceRequest, names: &Names) -> Self {
        let name = |text: &str| names.number(text);
        let needs = request.resources_bundle.iter();
        let needs: Vec<(Name, f64)> = needs.map(|(text, amount)| (name(text), *amount)).collect();
        let condition = |constraint: &LabelConstraint| LabelCondition {
            label: name(&constraint.label_key),
            operator: constraint.operator(),
            values: constraint.label_values.iter().map(|v| name(v)).collect(),
        };
        let selectors = request.label_selectors.iter();
        let selectors: Vec<Vec<LabelCondition>> = selectors
            .map(|selector| selector.label_constraints.iter().map(condition).collect())
            .collect();
        let placement = |constraint: &PlacementConstraint| {
            let label = |label: &Label| (name(&label.label_name), name(&label.label_value));
            match (&constraint.anti_affinity, &constraint.affinity) {
                (Some(apart), _) => LabelPlacement::AntiAffinity(label(apart)),
                (None, Some(together)) => LabelPlacement::Affinity(label(together)),
                (None, None) => LabelPlacement::Nothing,
            }
        };
        let conditions = selectors.iter().flatten();
        let values = conditions.map(|condition| 1 + condition.values.len());
        Self {
            steps: 1 + needs.len() + request.placement_constraints.len() + values.sum::<usize>(),
            sum: needs.iter().fold(0.0, |sum, (_, amount)| sum + amount),
            selectors,
            placement: request
                .placement_constraints
                .iter()
                .map(placement)
                .collect(),
            names_gpu: request.resources_bundle.contains_key("GPU"),
            needs,
        }
    }

    /// The amounts that are above zero.
    pub(crate) fn positive(&self) -> impl Iterator<Item = (Name, f64)> {
        self.needs
            .iter()
            .copied()
            .filter(|(_, amount)| *amount > 0.0)
    }

    /// True for a shape that needs some of a resource.
    pub(crate) fn names(&self, resource: Name) -> bool {
        self.positive().any(|(name, _)| name == resource)
    }

    /// The label that a node must not have, with the value that the shape sets.
    pub(crate) fn anti_affinity(&self) -> impl Iterator<Item = (Name, Name)> {
        let placement = self.placement.iter();
        placement.filter_map(|placement| match placement {
            LabelPlacement::AntiAffinity(label) => Some(*label),
            _ => None,
        })
    }

    /// Ray's order of packing, in which the shape that is harder to place is the greater one. (Ray,
    /// `scheduler.py`, `_sort_resource_request`.)
    pub(crate) fn order(&self, other: &Self) -> Ordering {
        // Ray looks at the first selector alone: the others are what a request falls back to.
        let first = |shape: &Self| shape.selectors.first().map_or(0, Vec::len);
        let counts = |shape: &Self| (shape.placement.len(), first(shape), shape.needs.len());
        let both = self.needs.iter().zip(&other.needs);
        let mut needs = both.map(|((name, amount), (other, than))| {
            let names = name.cmp(other);
            names.then_with(|| amount.total_cmp(than))
        });
        counts(self)
            .cmp(&counts(other))
            .then_with(|| self.sum.total_cmp(&other.sum))
            .then_with(|| needs.find(|order| order.is_ne()).unwrap_or(Ordering::Equal))
    }
}

/// Every distinct shape of a decision.
#[derive(Debug, Default)]
pub(crate) struct Shapes {
    list: Vec<Shape>,
    index: HashMap<Vec<u64>, ShapeId>,
}

impl Shapes {
    /// The number of a shape. A shape that is not known yet gets a new number.
    pub(crate) fn number(&mut self, shape: Shape) -> ShapeId {
        // The shape as numbers: equal exactly for equal shapes.
        let mut code = vec![shape.needs.len() as u64];
        for (name, amount) in &shape.needs {
            code.extend([u64::from(name.0), amount.to_bits()]);
        }
        for placement in &shape.placement {
            code.extend(match placement {
                LabelPlacement::AntiAffinity((label, value)) => [1, label.0.into(), value.0.into()],
                LabelPlacement::Affinity((label, value)) => [2, label.0.into(), value.0.into()],
                LabelPlacement::Nothing => [3, 0, 0],
            });
        }
        // Each part begins with its kind or its length, so that different shapes have different codes.
        for selector in &shape.selectors {
            code.extend([4, selector.len() as u64]);
            for condition in selector {
                code.extend([condition.label.0.into(), condition.operator as u64]);
                code.push(condition.values.len() as u64);
                code.extend(condition.values.iter().map(|value| u64::from(value.0)));
            }
        }
        let next = ShapeId(u32::try_from(self.list.len()).unwrap_or(u32::MAX));
        let id = *self.index.entry(code).or_insert(next);
        if id == next {
            self.list.push(shape);
        }
        id
    }

    /// The shape of that number.
    pub(crate) fn get(&self, id: ShapeId) -> &Shape {
        &self.list[id.0 as usize]
    }

    /// Every shape.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Shape> {
        self.list.iter()
    }
}
