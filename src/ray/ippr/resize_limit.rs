//! One resize limit, `max-cpu` or `max-memory`, read as Ray reads it.

use super::json::Json;
use crate::quantity::{Quantity, QuantityError};
use crate::ray::Resource;

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
    pub(super) fn read(value: &Json) -> Option<Self> {
        let text = match value {
            Json::Text(text) => text.clone(),
            Json::Number(number) => number.to_string(),
            _ => return None,
        };
        let quantity = ray_quantity(&text);
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

/// Reads a quantity as Ray does, by splitting off the suffix and giving the rest to Python's
/// Decimal. (Ray, `autoscaler/_private/kuberay/utils.py`, `parse_quantity`.)
fn ray_quantity(text: &str) -> Result<Quantity, QuantityError> {
    let plain = Quantity::parse(text);
    if plain != Err(QuantityError::Syntax) {
        return plain;
    }
    let at = text
        .find(|c: char| c.is_ascii_alphabetic())
        .unwrap_or(text.len());
    let (number, suffix) = text.split_at(at);
    // Ray also takes a capital K for a thousand, which Kubernetes does not.
    let suffix = if suffix == "K" { "k" } else { suffix };
    // Python's Decimal accepts blanks around the number and underscores in it.
    Quantity::parse(&format!("{}{suffix}", number.trim().replace('_', "")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_as_ray_reads_them() {
        for (text, same) in [
            (" 4 ", "4"),
            ("4 Gi", "4Gi"),
            ("1_000", "1000"),
            ("8000K", "8000k"),
            ("1e3", "1000"),
        ] {
            assert_eq!(ray_quantity(text), Quantity::parse(same), "{text:?}");
        }
        for text in ["4Gi ", "eight", "32GB", "4ki", "1 2", "K", "_", " "] {
            assert!(ray_quantity(text).is_err(), "{text:?} makes Ray abort");
        }
    }

    #[test]
    fn the_bounds_of_reason_are_inside() {
        let check = |text: &str, resource| {
            ResizeLimit::read(&Json::Text(text.to_owned()))
                .unwrap()
                .check(resource)
        };
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
