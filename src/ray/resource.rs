//! The two resources of which a pod can get more in place.

use crate::quantity::Quantity;

/// CPU or memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
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
    pub const fn name(self) -> &'static str {
        match self {
            Self::Cpu => "cpu",
            Self::Memory => "memory",
        }
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
            .map(|bytes| Quantity::from_units(bytes - bytes % MEBIBYTE));
        self.show(whole.unwrap_or(amount))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
