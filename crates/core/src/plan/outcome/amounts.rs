//! Amounts in words, for people.

use crate::quantity::Quantity;

pub(crate) fn cpu(milli: i64) -> String {
    Quantity::from_milli(milli).display_cpu()
}

pub(crate) fn memory(bytes: i64) -> String {
    Quantity::from_units(bytes).display_memory()
}

/// Bytes in whole mebibytes, because what is in use is never round.
pub fn mebibytes(bytes: i64) -> String {
    const MEBIBYTE: i64 = 1 << 20;
    let up = bytes.max(0).saturating_add(MEBIBYTE - 1);
    memory(up - up % MEBIBYTE)
}

/// An amount of a resource by its name.
#[expect(clippy::cast_possible_truncation, reason = "whole bytes, saturating")]
pub(crate) fn amount_text(name: &str, amount: f64) -> String {
    let bytes = name == "memory" || name == "object_store_memory";
    // Ray takes fractions of bytes too; such an amount is shown as it was asked for.
    if bytes && amount.fract() == 0.0 {
        memory(amount as i64)
    } else {
        amount.to_string()
    }
}
