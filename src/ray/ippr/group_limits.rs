//! The resize limits of one group: its entry in `ray.io/ippr`.

use super::json::Json;
use super::key_place::place;
use super::resize_limit::ResizeLimit;
use crate::path::FieldPath;
use crate::quantity::Quantity;
use crate::ray::Resource;

/// The entry of one group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupResizeLimits {
    /// The name of the group, as the annotation lists it.
    pub name: String,
    /// `max-cpu`, if it is there and of a type that Ray accepts.
    pub max_cpu: Option<ResizeLimit>,
    /// `max-memory`, if it is there and of a type that Ray accepts.
    pub max_memory: Option<ResizeLimit>,
    /// `resize-timeout` in seconds, if it is there and of a type that Ray accepts. A number beyond
    /// 64 bits reads as the nearest bound.
    pub resize_timeout: Option<i64>,
}

/// The result of reading a key of a group's entry.
pub(super) enum LimitsEntry {
    Fine,
    Unknown,
    /// The key, and what its value may be.
    WrongType(&'static str, &'static str),
}

impl GroupResizeLimits {
    pub(super) fn of(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            max_cpu: None,
            max_memory: None,
            resize_timeout: None,
        }
    }

    pub(super) fn read(&mut self, key: &str, value: &Json) -> LimitsEntry {
        let (known, key, wanted) = match key {
            "max-cpu" => {
                self.max_cpu = ResizeLimit::read(value);
                (self.max_cpu.is_some(), "max-cpu", "a string or a number")
            }
            "max-memory" => {
                // Ray's `IPPRSpecsSchema` takes any number for CPU, but only integers for memory.
                self.max_memory = ResizeLimit::read(value).filter(|_| !value.is_fraction());
                let known = self.max_memory.is_some();
                (known, "max-memory", "a string or an integer")
            }
            "resize-timeout" => {
                self.resize_timeout = value.as_integer();
                let known = self.resize_timeout.is_some();
                (known, "resize-timeout", "an integer number of seconds")
            }
            _ => return LimitsEntry::Unknown,
        };
        if known {
            LimitsEntry::Fine
        } else {
            LimitsEntry::WrongType(key, wanted)
        }
    }

    /// The resize limit of a resource, if it is there and of a type that Ray accepts.
    pub fn limit(&self, resource: Resource) -> Option<&ResizeLimit> {
        match resource {
            Resource::Cpu => self.max_cpu.as_ref(),
            Resource::Memory => self.max_memory.as_ref(),
        }
    }

    /// The CPU and memory up to which pods may grow, if both are there and quantities.
    pub fn most(&self) -> Option<(Quantity, Quantity)> {
        let quantity = |resource| self.limit(resource)?.quantity.ok();
        Some((quantity(Resource::Cpu)?, quantity(Resource::Memory)?))
    }

    /// The resize limit of a resource, if it is an amount that a pod can have. Otherwise rule RF101
    /// or RF104 reports it.
    pub fn amount(&self, resource: Resource) -> Option<Quantity> {
        self.limit(resource)?.check(resource).ok()
    }

    /// The path of the entry.
    pub fn path(&self) -> FieldPath {
        place(&["groups"], &self.name).path()
    }

    /// The path of one key of the entry.
    pub fn key_path(&self, key: &str) -> FieldPath {
        self.path().inside(key)
    }
}
