//! The peculiarities of protobuf's canonical JSON: 64-bit integers as strings, bytes in base64,
//! `NaN` as a string, enums by name or number, and `null` for a default.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::alphabet::{STANDARD, URL_SAFE};
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use schemars::{Schema, SchemaGenerator};
use serde::de::{Deserialize, Deserializer, Error};
use serde_json::Value;

/// Reads a message, list or map that may be `null`.
pub(super) fn nullable<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de> + Default,
{
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

/// True for a value that need not be written.
pub(crate) fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// The schema of an integer as canonical JSON writes it.
pub(super) fn integer_schema(_: &mut SchemaGenerator) -> Schema {
    schemars::json_schema!({
        "anyOf": [{ "type": "integer", "format": "int64" }, { "type": "string" }]
    })
}

/// Reads an `int32` or `int64`, which is a number or a string.
pub(super) fn integer<'de, D: Deserializer<'de>>(deserializer: D) -> Result<i64, D::Error> {
    let value = Value::deserialize(deserializer)?;
    let read = match &value {
        Value::Null => Some(0),
        Value::Number(number) => number.as_i64().or_else(|| {
            // Below two to the 53rd, up to which a double is every whole number.
            let double = number.as_f64()?;
            let is_whole = double.fract() == 0.0 && double.abs() < 9e15;
            #[expect(clippy::cast_possible_truncation, reason = "whole and bounded")]
            is_whole.then_some(double as i64)
        }),
        Value::String(text) => text.parse().ok(),
        _ => None,
    };
    read.ok_or_else(|| D::Error::custom(format!("{value} is not a 64-bit integer")))
}

/// Reads `bytes` in base64 (of either alphabet, padded or not) as lower-case hexadecimal.
pub(super) fn hex<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    // Protobuf's JSON mapping has parsers accept both alphabets, with and without padding.
    let text = Option::<String>::deserialize(deserializer)?.unwrap_or_default();
    let alphabet = if text.contains(['-', '_']) {
        URL_SAFE
    } else {
        STANDARD
    };
    let config =
        GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent);
    let bytes = GeneralPurpose::new(&alphabet, config)
        .decode(&text)
        .map_err(|error| D::Error::custom(format!("{text:?} is not base64: {error}")))?;
    Ok(crate::text::hex(&bytes))
}

/// Writes an id in hexadecimal as base64.
pub(super) fn base64<S: serde::Serializer>(id: &str, serializer: S) -> Result<S::Ok, S::Error> {
    let bytes: Vec<u8> = (0..id.len() / 2)
        .filter_map(|at| u8::from_str_radix(id.get(2 * at..2 * at + 2)?, 16).ok())
        .collect();
    serializer.serialize_str(&base64::engine::general_purpose::STANDARD.encode(bytes))
}

/// Reads a `map<string, double>` of finite numbers.
pub(super) fn amounts<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<BTreeMap<String, f64>, D::Error> {
    let map = Option::<BTreeMap<String, Value>>::deserialize(deserializer)?.unwrap_or_default();
    map.into_iter()
        .map(|(name, value)| {
            let amount = match &value {
                Value::Number(number) => number.as_f64(),
                Value::String(text) => text.parse().ok(),
                _ => None,
            };
            // The mapping has texts for NaN and the infinities too, which no amount of a resource is.
            match amount.filter(|amount| amount.is_finite()) {
                Some(amount) => Ok((name, amount)),
                None => Err(D::Error::custom(format!(
                    "the amount of {name:?}, {value}, is not a finite number"
                ))),
            }
        })
        .collect()
}

/// Reads an enum value, which is written by name or number, as its number.
pub(super) fn enumerated<'de, D: Deserializer<'de>>(
    deserializer: D,
    names: &[&str],
) -> Result<i32, D::Error> {
    let value = Value::deserialize(deserializer)?;
    let number: Option<i32> = match &value {
        Value::Null => Some(0),
        Value::String(text) => (0..)
            .zip(names)
            .find_map(|(at, name)| (name == text).then_some(at)),
        Value::Number(number) => number.as_u64().and_then(|number| number.try_into().ok()),
        _ => None,
    };
    number
        .filter(|number| usize::try_from(*number).is_ok_and(|number| number < names.len()))
        .ok_or_else(|| D::Error::custom(format!("{value} is none of {}", names.join(", "))))
}
