//! The two resources of which a pod can get more in place, and amounts of both: as `requests`, `limits` and
//! `allocatable` have them, and in whole units.

use std::borrow::Cow;
use std::collections::BTreeMap;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

use crate::quantity::Quantity;

/// CPU or memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, strum::IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
pub enum Resource {
    /// In cores.
    Cpu,
    /// In bytes.
    Memory,
}

const MEBIBYTE: i64 = 1024 * 1024;

impl Resource {
    /// Both resources.
    pub const ALL: [Self; 2] = [Self::Cpu, Self::Memory];

    /// The name in `requests`, `limits` and `resizePolicy`.
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// The name as messages write it.
    pub const fn title(self) -> &'static str {
        match self {
            Self::Cpu => "CPU",
            Self::Memory => "memory",
        }
    }

    /// The key of the resize limit in a group's entry of `ray.io/ippr`.
    pub const fn limit_key(self) -> &'static str {
        match self {
            Self::Cpu => "max-cpu",
            Self::Memory => "max-memory",
        }
    }

    /// The most that anybody can mean for one pod: 100,000 CPUs or 1 PiB.
    pub const fn beyond_reason(self) -> Quantity {
        match self {
            Self::Cpu => Quantity::from_units(100_000),
            Self::Memory => Quantity::from_units(1 << 50),
        }
    }

    /// An amount as a manifest writes it, exactly.
    pub fn show(self, amount: Quantity) -> String {
        match self {
            Self::Cpu => amount.display_cpu(),
            Self::Memory => amount.display_memory(),
        }
    }

    /// An amount as a sentence says it: `4 CPU`, `8Gi`.
    pub fn say(self, amount: Quantity) -> String {
        match self {
            Self::Cpu => format!("{} CPU", amount.display_cpu()),
            Self::Memory => amount.display_memory(),
        }
    }

    /// An amount to propose where at most `amount` is possible: whole mebibytes, not bytes.
    pub fn show_at_most(self, amount: Quantity) -> String {
        let whole = i64::try_from(amount.ceil_units())
            .ok()
            .filter(|bytes| self == Self::Memory && *bytes >= MEBIBYTE)
            // Rounded down, because what is proposed must be possible.
            .map(|bytes| Quantity::from_units(bytes - bytes % MEBIBYTE));
        self.show(whole.unwrap_or(amount))
    }
}

/// The CPU and memory of a resource list. Every other resource is left out, because no decision
/// about a pod that exists reads it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Amounts {
    /// `cpu`, in cores; `None` if it is absent or is not a quantity.
    pub cpu: Option<Quantity>,
    /// `memory`, in bytes; `None` if it is absent or is not a quantity.
    pub memory: Option<Quantity>,
}

impl Amounts {
    /// The list that has of each resource the amount that it is given.
    pub fn each(amount: impl Fn(Resource) -> Option<Quantity>) -> Self {
        Self {
            cpu: amount(Resource::Cpu),
            memory: amount(Resource::Memory),
        }
    }

    /// A list of both amounts.
    pub fn new(cpu: Quantity, memory: Quantity) -> Self {
        Self {
            cpu: Some(cpu),
            memory: Some(memory),
        }
    }

    /// True for a list with neither amount.
    pub fn is_empty(&self) -> bool {
        self.cpu.is_none() && self.memory.is_none()
    }

    /// The amount of `cpu` or `memory`.
    pub fn get(&self, resource: &str) -> Option<Quantity> {
        match resource {
            "cpu" => self.cpu,
            "memory" => self.memory,
            _ => None,
        }
    }

    /// Sets the amount of `cpu` or `memory`. There is no other.
    pub fn set(&mut self, resource: &str, amount: Option<Quantity>) {
        match resource {
            "cpu" => self.cpu = amount,
            "memory" => self.memory = amount,
            _ => {}
        }
    }

    /// The amounts of this list, and those of the other list where this one has none.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self {
            cpu: self.cpu.or(other.cpu),
            memory: self.memory.or(other.memory),
        }
    }

    /// The sum of both lists. Where a sum cannot be represented, the larger amount stands for it.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        self.join(other, |one, two| {
            one.checked_add(two).unwrap_or(one.max(two))
        })
    }

    /// The larger amount of each resource.
    #[must_use]
    pub fn max(self, other: Self) -> Self {
        self.join(other, Ord::max)
    }

    /// The smaller amount of each resource.
    #[must_use]
    pub fn min(self, other: Self) -> Self {
        self.join(other, Ord::min)
    }

    fn join(self, other: Self, both: impl Fn(Quantity, Quantity) -> Quantity) -> Self {
        let one = |this: Option<Quantity>, other: Option<Quantity>| match (this, other) {
            (Some(this), Some(other)) => Some(both(this, other)),
            // An absent amount says nothing, and is not zero.
            (this, other) => this.or(other),
        };
        Self {
            cpu: one(self.cpu, other.cpu),
            memory: one(self.memory, other.memory),
        }
    }
}

impl Serialize for Amounts {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let amounts = [("cpu", self.cpu), ("memory", self.memory)].into_iter();
        let entries = amounts.filter_map(|(name, amount)| Some((name, amount?.to_string())));
        serializer.collect_map(entries)
    }
}

impl<'de> Deserialize<'de> for Amounts {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // Clients in Go write `null` for a map without entries.
        let all = Option::<BTreeMap<String, Value>>::deserialize(deserializer)?.unwrap_or_default();
        Ok(Self::each(|resource| {
            Quantity::from_json(all.get(resource.name())?).ok()
        }))
    }
}

impl JsonSchema for Amounts {
    fn schema_name() -> Cow<'static, str> {
        "Amounts".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        schemars::json_schema!({
            "description": "Amounts of resources as Kubernetes writes them; cpu and memory are read.",
            "type": ["object", "null"],
            "additionalProperties": { "type": ["string", "number"] }
        })
    }
}

/// The size of a pod, in the units in which Ray counts.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Size {
    /// The CPU, in cores.
    pub cpu: f64,
    /// The memory, in bytes.
    pub memory: i64,
}

impl Size {
    /// The larger amount in each dimension.
    #[must_use]
    pub fn max(self, other: Self) -> Self {
        Self {
            cpu: self.cpu.max(other.cpu),
            memory: self.memory.max(other.memory),
        }
    }

    /// True for a size that is smaller in at least one dimension.
    pub fn is_below(self, other: Self) -> bool {
        self.cpu < other.cpu || self.memory < other.memory
    }
}

/// A quantity in cores, to the nearest `f64`.
#[expect(clippy::cast_precision_loss, reason = "exact up to nine million cores")]
pub fn cores(quantity: Quantity) -> f64 {
    quantity.nanos() as f64 / 1e9
}

/// Cores as a quantity.
#[expect(clippy::cast_possible_truncation, reason = "saturating")]
pub fn from_cores(cores: f64) -> Quantity {
    Quantity::from_nanos((cores * 1e9).round() as i128)
}

/// A quantity in whole bytes. Fractions are dropped, as Python's `int()` does.
pub fn bytes(quantity: Quantity) -> i64 {
    let whole = quantity.nanos() / Quantity::from_units(1).nanos();
    i64::try_from(whole).unwrap_or(if whole < 0 { i64::MIN } else { i64::MAX })
}

/// Amounts of CPU and memory.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema, derive_more::Display,
)]
#[serde(rename_all = "camelCase")]
#[display(
    "{} CPU and {}",
    Quantity::from_milli(*cpu_milli).display_cpu(),
    Quantity::from_units(*memory_bytes).display_memory()
)]
pub struct CpuAndMemory {
    /// Thousandths of cores.
    pub cpu_milli: i64,
    /// Bytes of memory.
    pub memory_bytes: i64,
}

impl CpuAndMemory {
    /// Both amounts of both, joined by a function such as [`i64::saturating_add`].
    #[must_use]
    pub fn join(self, other: Self, both: fn(i64, i64) -> i64) -> Self {
        Self {
            cpu_milli: both(self.cpu_milli, other.cpu_milli),
            memory_bytes: both(self.memory_bytes, other.memory_bytes),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn amounts(value: Value) -> Amounts {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn what_is_no_quantity_is_absent_and_what_is_read_is_written_again() {
        let read = amounts(json!({"cpu": "1500m", "memory": 1024, "nvidia.com/gpu": "1"}));
        assert_eq!(json!(read), json!({"cpu": "1.5", "memory": "1024"}));
        assert_eq!(amounts(json!(read)), read);
        assert!(amounts(json!({"cpu": "many", "memory": []})).is_empty());
        assert!(amounts(Value::Null).is_empty());
    }

    #[test]
    fn sums_and_maxima_keep_what_only_one_side_has() {
        let one = amounts(json!({"cpu": "1"}));
        let two = amounts(json!({"cpu": "2", "memory": "1Gi"}));
        assert_eq!(one.plus(two), amounts(json!({"cpu": "3", "memory": "1Gi"})));
        assert_eq!(one.max(two), two);
        assert_eq!(one.or(two), amounts(json!({"cpu": "1", "memory": "1Gi"})));
    }

    #[test]
    fn proposals_are_whole_mebibytes_and_never_more() {
        let amount = Quantity::parse("31857508Ki").unwrap();
        assert_eq!(Resource::Memory.show(amount), "31857508Ki");
        assert_eq!(Resource::Memory.show_at_most(amount), "31110Mi");
        let small = Quantity::parse("100Ki").unwrap();
        assert_eq!(Resource::Memory.show_at_most(small), "100Ki");
        let cores = Quantity::parse("7500m").unwrap();
        assert_eq!(Resource::Cpu.show_at_most(cores), "7500m");
    }
}
