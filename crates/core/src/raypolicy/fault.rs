//! Problems in a policy, and how they are collected.

use std::fmt;

use crate::policy::resource::Amount;
use crate::quantity::Quantity;

/// A problem in a policy.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {problem}")]
pub struct PolicyFault {
    /// The place: `spec.exemptions[0].rules[1]`.
    pub place: String,
    /// The fault there, and how to fix it.
    pub problem: String,
    /// The effect on the policy.
    pub weight: Weight,
}

impl PolicyFault {
    /// A doubt about a part of `spec.match`.
    pub(super) fn doubt(key: &str, problem: impl Into<String>) -> Self {
        Self {
            place: format!("spec.match.{key}"),
            problem: problem.into(),
            weight: Weight::Doubt,
        }
    }
}

/// The effect of a problem on the policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Weight {
    /// None: it is only unlikely to be intended.
    Doubt,
    /// This part of the policy does not apply.
    Part,
    /// The whole policy does not apply.
    Whole,
}

/// The problems that were found so far.
#[derive(Default)]
pub(crate) struct Faults(pub(crate) Vec<PolicyFault>);

impl Faults {
    /// Adds a problem.
    pub(crate) fn add(
        &mut self,
        weight: Weight,
        place: impl Into<String>,
        problem: impl fmt::Display,
    ) {
        self.0.push(PolicyFault {
            place: place.into(),
            problem: problem.to_string(),
            weight,
        });
    }

    /// The value, or a problem because of which this part is left out.
    pub(crate) fn part<T, E: fmt::Display>(
        &mut self,
        place: &str,
        value: Result<T, E>,
    ) -> Option<T> {
        value
            .map_err(|error| self.add(Weight::Part, place, error))
            .ok()
    }
}

/// The amount that is written there, unless it is none.
pub(crate) fn amount(
    written: Option<&Amount>,
    place: &str,
    faults: &mut Faults,
) -> Option<Quantity> {
    let parsed = Quantity::from_json(&written?.0).map_err(|error| error.to_string());
    let parsed = parsed.and_then(|amount| {
        // Kubernetes can read a negative quantity, but neither a limit nor room can be one.
        if amount.is_negative() {
            return Err("is negative; write 0 or more".to_owned());
        }
        Ok(amount)
    });
    faults.part(place, parsed)
}
