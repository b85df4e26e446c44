//! The resize limits of one group: its entry in `ray.io/ippr`, read as Ray reads it; and where its keys are.

use serde_json::Value;

use crate::path::FieldPath;
use crate::quantity::{Quantity, QuantityError};
use crate::ray::Resource;

/// The annotation on the RayCluster, or on the RayJob or RayService that the RayCluster is made
/// from.
pub const ANNOTATION: &str = "ray.io/ippr";

/// A key, and the way to it from the root of the annotation.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct KeyPlace {
    /// The keys above the key.
    pub parents: Vec<String>,
    /// The key.
    pub key: String,
}

impl KeyPlace {
    /// The path of the key in the object.
    pub fn path(&self) -> FieldPath {
        let root = FieldPath::annotation(ANNOTATION);
        let parents = self.parents.iter().fold(root, FieldPath::inside);
        parents.inside(&self.key)
    }
}

/// The entry of one group.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
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

impl GroupResizeLimits {
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
        let root = FieldPath::annotation(ANNOTATION);
        root.inside("groups").inside(&self.name)
    }

    /// The path of one key of the entry.
    pub fn key_path(&self, key: &str) -> FieldPath {
        self.path().inside(key)
    }
}

/// A resize limit, as it is written and as it is read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResizeLimit {
    /// The text as it is written, without quotes.
    pub text: String,
    /// The text read as a quantity.
    pub quantity: Result<Quantity, QuantityError>,
}

/// The fault of a resize limit that cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResizeLimitFault {
    /// It is not a quantity.
    Unreadable(QuantityError),
    /// It is zero.
    Zero,
    /// It is below zero.
    Negative,
    /// It is more than any pod can have.
    BeyondReason,
}

impl ResizeLimit {
    /// Reads a quantity as Ray does, by splitting off the suffix and giving the rest to Python's
    /// Decimal. (Ray, `autoscaler/_private/kuberay/utils.py`, `parse_quantity`.)
    pub(super) fn read(value: &Value) -> Option<Self> {
        let text = match value {
            Value::String(text) => text.clone(),
            Value::Number(number) => number.to_string(),
            _ => return None,
        };
        let mut quantity = Quantity::parse(&text);
        if quantity == Err(QuantityError::Syntax) {
            let is_suffix = |c: char| c.is_ascii_alphabetic();
            let (number, suffix) = text.split_at(text.find(is_suffix).unwrap_or(text.len()));
            // Ray also takes a capital K for a thousand, which Kubernetes does not.
            let suffix = if suffix == "K" { "k" } else { suffix };
            // Python's Decimal accepts blanks around the number and underscores in it.
            let number = number.trim().replace('_', "");
            quantity = Quantity::parse(&format!("{number}{suffix}"));
        }
        Some(Self { text, quantity })
    }

    /// The resize limit, if a pod can have as much of `resource`.
    pub fn check(&self, resource: Resource) -> Result<Quantity, ResizeLimitFault> {
        let quantity = self.quantity.map_err(|error| match error {
            QuantityError::TooLarge => ResizeLimitFault::BeyondReason,
            other => ResizeLimitFault::Unreadable(other),
        })?;
        if quantity.is_negative() {
            Err(ResizeLimitFault::Negative)
        } else if quantity.is_zero() {
            Err(ResizeLimitFault::Zero)
        } else if quantity > resource.beyond_reason() {
            Err(ResizeLimitFault::BeyondReason)
        } else {
            Ok(quantity)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limit(text: &str) -> ResizeLimit {
        ResizeLimit::read(&Value::from(text)).unwrap()
    }

    #[test]
    fn quantities_as_ray_reads_them() {
        for (text, same) in [
            (" 4 ", "4"),
            ("4 Gi", "4Gi"),
            ("1_000", "1000"),
            ("8000K", "8000k"),
            ("1e3", "1000"),
        ] {
            assert_eq!(limit(text).quantity, Quantity::parse(same), "{text:?}");
        }
        for text in ["4Gi ", "eight", "32GB", "4ki", "1 2", "K", "_", " "] {
            assert!(limit(text).quantity.is_err(), "{text:?} makes Ray abort");
        }
    }

    #[test]
    fn the_bounds_of_reason_are_inside() {
        let check = |text: &str, resource| limit(text).check(resource);
        assert!(check("100000", Resource::Cpu).is_ok());
        assert_eq!(
            check("100000001m", Resource::Cpu),
            Err(ResizeLimitFault::BeyondReason)
        );
        assert!(check("1Pi", Resource::Memory).is_ok());
        assert_eq!(
            check("1125899906842625", Resource::Memory),
            Err(ResizeLimitFault::BeyondReason)
        );
        assert_eq!(
            check("1e999999999", Resource::Cpu),
            Err(ResizeLimitFault::BeyondReason)
        );
        assert_eq!(check("0", Resource::Cpu), Err(ResizeLimitFault::Zero));
        assert_eq!(check("-1", Resource::Cpu), Err(ResizeLimitFault::Negative));
    }
}
