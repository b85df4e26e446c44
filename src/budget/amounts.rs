//! What a budget bounds.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::quantity::Quantity;

/// Amounts of CPU, memory and GPUs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct BudgetAmounts {
    /// CPU, in thousandths of cores.
    pub cpu_milli: u64,
    /// Memory, in bytes.
    pub memory_bytes: u64,
    /// GPUs, in pieces.
    pub gpus: u64,
}

impl fmt::Display for BudgetAmounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bounded = |amount: u64| (amount != Self::UNBOUNDED).then_some(amount);
        let whole = |amount: u64| i64::try_from(amount).unwrap_or(i64::MAX);
        let mut parts = Vec::new();
        if let Some(cpu) = bounded(self.cpu_milli) {
            let cpu = Quantity::from_milli(whole(cpu)).display_cpu();
            parts.push(format!("{cpu} CPU"));
        }
        if let Some(memory) = bounded(self.memory_bytes) {
            parts.push(Quantity::from_units(whole(memory)).display_memory());
        }
        match bounded(self.gpus) {
            None | Some(0) => {}
            Some(1) => parts.push("1 GPU".to_owned()),
            Some(gpus) => parts.push(format!("{gpus} GPUs")),
        }
        if parts.is_empty() {
            return f.write_str("anything");
        }
        f.write_str(&parts.join(", "))
    }
}

impl BudgetAmounts {
    /// No bound at all: what a budget has of a resource that it does not name.
    pub const UNBOUNDED: u64 = u64::MAX;

    /// The amounts as a list: CPU, memory, GPUs.
    pub fn list(self) -> [u64; 3] {
        [self.cpu_milli, self.memory_bytes, self.gpus]
    }

    /// The amounts of a list as [`Self::list`] gives it.
    pub fn of([cpu_milli, memory_bytes, gpus]: [u64; 3]) -> Self {
        Self {
            cpu_milli,
            memory_bytes,
            gpus,
        }
    }

    /// The sum. A sum that is too large is the largest number.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        self.each(other, u64::saturating_add)
    }

    /// The difference, and nothing where the other amount is larger. What is unbounded stays so.
    #[must_use]
    pub fn minus(self, other: Self) -> Self {
        self.each(other, |from, less| match from {
            Self::UNBOUNDED => Self::UNBOUNDED,
            from => from.saturating_sub(less),
        })
    }

    /// As much so many times. A product that is too large is the largest number.
    #[must_use]
    pub fn times(self, count: u64) -> Self {
        Self::of(self.list().map(|amount| amount.saturating_mul(count)))
    }

    /// The smaller amount of each resource.
    #[must_use]
    pub fn min(self, other: Self) -> Self {
        self.each(other, Ord::min)
    }

    /// The larger amount of each resource.
    #[must_use]
    pub fn max(self, other: Self) -> Self {
        self.each(other, Ord::max)
    }

    /// Whether no amount is larger than the other one.
    pub fn is_within(self, other: Self) -> bool {
        self.max(other) == other
    }

    /// What `both` makes of the two amounts of each resource.
    #[must_use]
    pub(super) fn each(self, other: Self, both: impl Fn(u64, u64) -> u64) -> Self {
        let (one, two) = (self.list(), other.list());
        Self::of([
            both(one[0], two[0]),
            both(one[1], two[1]),
            both(one[2], two[2]),
        ])
    }
}
