//! The small languages inside `rayStartParams`, read as Ray's Python reads them.

use std::collections::HashMap;

use serde_json::value::RawValue;
use serde_json::{Map, Value};
use unicode_general_category::{GeneralCategory, get_general_category};

use crate::json::Json;

/// Reads a text as Python's `int()` does: blanks around it, a sign, single underscores between
/// digits and digits of all scripts are allowed. A number beyond 64 bits reads as the nearest
/// bound.
pub fn python_int(text: &str) -> Option<i64> {
    // Python takes the second ones for blanks too, and Rust does not.
    let separates = |c: char| c.is_whitespace() || ('\u{1c}'..='\u{1f}').contains(&c);
    let is_decimal = |c: char| get_general_category(c) == GeneralCategory::DecimalNumber;
    let latin = |c: char| {
        if c.is_ascii() || !is_decimal(c) {
            return c;
        }
        // Each script has its ten digits in a row, so the first digit of a row tells the values of
        // the others (Unicode, category Nd). Rows of digits that touch each other begin at multiples
        // of ten from the first digit.
        let code = u32::from(c);
        let is_digit = |code: &u32| char::from_u32(*code).is_some_and(is_decimal);
        let first = (0..=code).rev().take_while(is_digit).last();
        let value = (code - first.unwrap_or(code)) % 10;
        char::from_digit(value, 10).unwrap_or(c)
    };
    let latin: String = text.trim_matches(separates).chars().map(latin).collect();
    let trimmed = latin.as_str();
    let (negative, digits) = match trimmed.as_bytes().first()? {
        b'-' => (true, &trimmed[1..]),
        b'+' => (false, &trimmed[1..]),
        _ => (false, trimmed),
    };
    let grouped = digits
        .split('_')
        .all(|run| !run.is_empty() && run.bytes().all(|byte| byte.is_ascii_digit()));
    if !grouped {
        return None;
    }
    let magnitude: i64 = digits.replace('_', "").parse().unwrap_or(i64::MAX);
    Some(if negative { -magnitude } else { magnitude })
}

/// Reads a value of `rayStartParams` that Ray passes to `int()`. A JSON number stands for the text
/// that it would be in quotes, so that forgotten quotes hide no other fault.
pub fn start_integer(value: Json<'_>) -> Option<i64> {
    match value {
        Json::String(text) => python_int(text),
        Json::Number(number) => python_int(&number.to_string()),
        _ => None,
    }
}

/// The error of a `rayStartParams.resources` that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
pub enum StartResourcesError {
    /// The text is not JSON after Ray has removed its first and last character and all backslashes.
    #[error("it is not JSON in quotes ({0})")]
    NotQuotedJson(String),
    /// The text is JSON, but not an object.
    #[error("it is not a JSON object")]
    NotAnObject,
    /// An amount is not an integer.
    #[error("{key:?} is {found}, not an integer")]
    NotAnInteger {
        /// The name of the resource.
        key: String,
        /// The amount, as it is written.
        found: String,
    },
}

/// Reads `rayStartParams.resources` as Ray's autoscaler does: the first and the last character are
/// dropped whatever they are, backslashes are deleted, and the rest must be a JSON object of
/// integers. (Ray, `autoscaler/_private/kuberay/autoscaling_config.py`.)
pub fn start_resources(text: &str) -> Result<Vec<(String, i64)>, StartResourcesError> {
    start_resources_object(text)?
        .into_iter()
        .map(|(key, amount)| match amount.as_i64() {
            Some(amount) => Ok((key, amount)),
            None => Err(StartResourcesError::NotAnInteger {
                key,
                found: amount.to_string(),
            }),
        })
        .collect()
}

/// The longest text that is read. No pod could be started with a longer one.
const MAX_LEN: usize = 256 << 10;

/// The first half of [`start_resources`]: reads the object, and does not look at its amounts.
pub fn start_resources_object(text: &str) -> Result<Map<String, Value>, StartResourcesError> {
    // As a tree of JSON values the text would take many times as much memory.
    if text.len() > MAX_LEN {
        let problem = "it is longer than 256 KiB".to_owned();
        return Err(StartResourcesError::NotQuotedJson(problem));
    }
    let mut characters = text.chars();
    characters.next();
    characters.next_back();
    let unquoted: String = characters.filter(|character| *character != '\\').collect();
    let mut object = match serde_json::from_str(&unquoted) {
        Ok(Value::Object(object)) => object,
        Ok(_) => return Err(StartResourcesError::NotAnObject),
        Err(error) => return Err(StartResourcesError::NotQuotedJson(error.to_string())),
    };
    // `-0` is a whole number for Python's JSON, and a fraction for `serde_json`.
    let is_zero = |value: &Value| value.is_f64() && value.as_f64() == Some(0.0);
    if object.values().any(is_zero) {
        let written: HashMap<String, &RawValue> =
            serde_json::from_str(&unquoted).unwrap_or_default();
        let zeros = object.iter_mut().filter(|(_, value)| is_zero(value));
        for (_, value) in
            zeros.filter(|(key, _)| written.get(*key).is_some_and(|raw| raw.get() == "-0"))
        {
            *value = 0.into();
        }
    }
    Ok(object)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_as_python_reads_them() {
        for (text, value) in [
            (" 4 ", 4),
            ("+4", 4),
            ("1_0", 10),
            ("-1", -1),
            ("007", 7),
            ("0", 0),
            ("٤٢", 42),
            ("-\u{ff11}\u{ff10}", -10),
            ("\u{1d7d9}\u{1d7ff}", 19),
            ("\u{1f}4\u{2003}", 4),
        ] {
            assert_eq!(python_int(text), Some(value), "{text:?}");
        }
        for text in [
            "", " ", "2.5", "4Gi", "1__0", "_1", "1_", "+", "0x10", "1e3", "²", "Ⅳ", "四",
        ] {
            assert_eq!(python_int(text), None, "{text:?}");
        }
    }

    #[test]
    fn an_unquoted_number_reads_as_its_text() {
        let read = |value: Value| start_integer((&value).into());
        assert_eq!(read(4.into()), Some(4));
        assert_eq!(read("+4".into()), Some(4));
        assert_eq!(read(2.5.into()), None);
        assert_eq!(read(true.into()), None);
    }

    #[test]
    fn resources_as_ray_reads_them() {
        let read = start_resources(r#"'{"a": 1, "b": 2}'"#).unwrap();
        assert_eq!(read, [("a".to_owned(), 1), ("b".to_owned(), 2)]);
        assert!(start_resources(r#""{\"a\": 1}""#).is_ok());
        assert!(matches!(
            start_resources(r#"{"a": 1}"#),
            Err(StartResourcesError::NotQuotedJson(_))
        ));
        assert!(matches!(
            start_resources("'[1]'"),
            Err(StartResourcesError::NotAnObject)
        ));
        assert!(matches!(
            start_resources(r#"'{"a": 1.5}'"#),
            Err(StartResourcesError::NotAnInteger { .. })
        ));
        assert!(start_resources("").is_err());
        let zero = start_resources(r#"'{"a": -0}'"#).unwrap();
        assert_eq!(zero, [("a".to_owned(), 0)]);
        for fraction in ["-0.0", "0.0", "0e0"] {
            assert!(start_resources(&format!("'{{\"a\": {fraction}}}'")).is_err());
        }
    }
}
