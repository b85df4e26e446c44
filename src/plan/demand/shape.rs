//! Request shapes: each distinct request is kept once.

use std::cmp::Ordering;
use std::collections::BTreeSet;

use crate::hash::HashMap;
use crate::plan::demand::names::{Name, Names};
use crate::snapshot::gcs::{LabelOperator, PlacementConstraint, ResourceRequest};

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
    /// Whether the request names the resource GPU, even with an amount of 0.
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
    AntiAffinity(Name, Name),
    /// Together with others; this only counts in the order of packing.
    Affinity(Name, Name),
    /// An empty constraint, which only counts in the order of packing.
    Nothing,
}

impl Shape {
    /// Reads a request, all of whose texts are in `names`.
    pub(crate) fn of(request: &ResourceRequest, names: &Names) -> Self {
        let known = |text: &str| names.get(text).unwrap_or(Name::UNNAMED);
        let needs: Vec<(Name, f64)> = request
            .resources_bundle
            .iter()
            .map(|(name, amount)| (known(name), *amount))
            .collect();
        let selectors = request.label_selectors.iter().map(|selector| {
            let conditions = selector.label_constraints.iter();
            conditions
                .map(|constraint| LabelCondition {
                    label: known(&constraint.label_key),
                    operator: constraint.operator(),
                    values: constraint.label_values.iter().map(|v| known(v)).collect(),
                })
                .collect()
        });
        let selectors: Vec<Vec<LabelCondition>> = selectors.collect();
        let conditions = selectors.iter().flatten();
        let values = conditions.map(|condition| 1 + condition.values.len());
        Self {
            steps: 1 + needs.len() + request.placement_constraints.len() + values.sum::<usize>(),
            sum: needs.iter().fold(0.0, |sum, (_, amount)| sum + amount),
            selectors,
            placement: request
                .placement_constraints
                .iter()
                .map(|c| placement(c, &known))
                .collect(),
            names_gpu: request.resources_bundle.contains_key("GPU"),
            needs,
        }
    }

    /// Collects the texts of a request, for [`Names::of`].
    pub(crate) fn texts<'a>(request: &'a ResourceRequest, texts: &mut BTreeSet<&'a str>) {
        texts.extend(request.resources_bundle.keys().map(String::as_str));
        for label in request
            .placement_constraints
            .iter()
            .flat_map(|constraint| constraint.anti_affinity.iter().chain(&constraint.affinity))
        {
            texts.extend([label.label_name.as_str(), label.label_value.as_str()]);
        }
        for constraint in request
            .label_selectors
            .iter()
            .flat_map(|s| &s.label_constraints)
        {
            texts.insert(&constraint.label_key);
            texts.extend(constraint.label_values.iter().map(String::as_str));
        }
    }

    /// The amounts that are above zero.
    pub(crate) fn positive(&self) -> impl Iterator<Item = (Name, f64)> {
        self.needs
            .iter()
            .copied()
            .filter(|(_, amount)| *amount > 0.0)
    }

    /// Whether the shape needs some of a resource.
    pub(crate) fn names(&self, resource: Name) -> bool {
        self.positive().any(|(name, _)| name == resource)
    }

    /// The label that a node must not have, with the value that the shape sets.
    pub(crate) fn anti_affinity(&self) -> impl Iterator<Item = (Name, Name)> {
        self.placement
            .iter()
            .filter_map(|placement| match placement {
                LabelPlacement::AntiAffinity(label, value) => Some((*label, *value)),
                _ => None,
            })
    }

    /// Ray's order of packing, in which the shape that is harder to place is the greater one. (Ray,
    /// `scheduler.py`, `_sort_resource_request`.)
    pub(crate) fn order(&self, other: &Self) -> Ordering {
        // Ray looks at the first selector alone: the others are what a request falls back to.
        let first = |shape: &Self| shape.selectors.first().map_or(0, Vec::len);
        self.placement
            .len()
            .cmp(&other.placement.len())
            .then_with(|| first(self).cmp(&first(other)))
            .then_with(|| self.needs.len().cmp(&other.needs.len()))
            .then_with(|| self.sum.total_cmp(&other.sum))
            .then_with(|| compare(&self.needs, &other.needs))
    }

    /// The shape as numbers: equal exactly for equal shapes.
    fn code(&self) -> Vec<u64> {
        let mut code = vec![self.needs.len() as u64];
        for (name, amount) in &self.needs {
            code.extend([u64::from(name.0), amount.to_bits()]);
        }
        for placement in &self.placement {
            code.extend(match placement {
                LabelPlacement::AntiAffinity(label, value) => [1, label.0.into(), value.0.into()],
                LabelPlacement::Affinity(label, value) => [2, label.0.into(), value.0.into()],
                LabelPlacement::Nothing => [3, 0, 0],
            });
        }
        for selector in &self.selectors {
            code.extend([4, selector.len() as u64]);
            for condition in selector {
                code.extend([condition.label.0.into(), condition.operator as u64]);
                code.push(condition.values.len() as u64);
                code.extend(condition.values.iter().map(|value| u64::from(value.0)));
            }
        }
        code
    }
}

fn placement(constraint: &PlacementConstraint, known: &impl Fn(&str) -> Name) -> LabelPlacement {
    if let Some(label) = &constraint.anti_affinity {
        LabelPlacement::AntiAffinity(known(&label.label_name), known(&label.label_value))
    } else if let Some(label) = &constraint.affinity {
        LabelPlacement::Affinity(known(&label.label_name), known(&label.label_value))
    } else {
        LabelPlacement::Nothing
    }
}

fn compare(left: &[(Name, f64)], right: &[(Name, f64)]) -> Ordering {
    for ((name, amount), (other, than)) in left.iter().zip(right) {
        let order = name.cmp(other).then_with(|| amount.total_cmp(than));
        if order.is_ne() {
            return order;
        }
    }
    left.len().cmp(&right.len())
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
        let next = ShapeId(u32::try_from(self.list.len()).unwrap_or(u32::MAX));
        let id = *self.index.entry(shape.code()).or_insert(next);
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
