//! The meaning of an unquoted word: go-yaml v2's reading of YAML 1.1.

use std::borrow::Cow;

use serde_json::Value;

/// A scalar, read.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Scalar {
    Null,
    Bool(bool),
    Int(i64),
    /// An integer above `i64::MAX`.
    Uint(u64),
    Float(f64),
    Text(String),
    /// An unquoted `<<`: as a key it merges, as a value it is text.
    Merge,
}

impl Scalar {
    /// The key of a mapping; `None` for null, which JSON has no key for.
    pub(super) fn key(&self) -> Option<Cow<'_, str>> {
        Some(match self {
            Self::Null => return None,
            Self::Bool(value) => Cow::Borrowed(if *value { "true" } else { "false" }),
            Self::Int(value) => Cow::Owned(value.to_string()),
            Self::Uint(value) => Cow::Owned(value.to_string()),
            Self::Float(value) => Cow::Owned(float_key(*value)),
            Self::Text(text) => Cow::Borrowed(text),
            Self::Merge => Cow::Borrowed("<<"),
        })
    }

    /// The JSON value; `None` for infinities and not-a-number, which JSON has no number for.
    pub(super) fn value(&self) -> Option<Value> {
        Some(match self {
            Self::Null => Value::Null,
            Self::Bool(value) => Value::Bool(*value),
            Self::Int(value) => Value::from(*value),
            Self::Uint(value) => Value::from(*value),
            // kubectl sends a float without a fraction as an integer: `1.0` arrives as 1.
            #[allow(clippy::cast_possible_truncation)] // whole and within the range of i64
            Self::Float(value) if value.fract() == 0.0 && value.abs() < 9e18 => {
                Value::from(*value as i64)
            }
            Self::Float(value) => Value::Number(serde_json::Number::from_f64(*value)?),
            Self::Text(text) => Value::from(text.as_str()),
            Self::Merge => Value::from("<<"),
        })
    }
}

/// Prints a float of 32 bits in its shortest form, as Go does and kubectl for such keys.
#[allow(clippy::cast_possible_truncation)]
fn float_key(value: f64) -> String {
    let value = value as f32;
    if !value.is_finite() {
        return match (value.is_nan(), value > 0.0) {
            (true, _) => ".nan",
            (_, true) => ".inf",
            (_, false) => "-.inf",
        }
        .to_owned();
    }
    let scientific = format!("{value:e}");
    let Some((digits, exponent)) = scientific.split_once('e') else {
        return scientific;
    };
    match exponent.parse::<i32>() {
        // Go writes other numbers without an exponent, and an exponent with two digits and its
        // sign.
        Ok(exponent) if !(-4..21).contains(&exponent) => format!("{digits}e{exponent:+03}"),
        _ => value.to_string(),
    }
}

/// The type that a tag asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TagType {
    Any,
    Text,
    Bool,
    Int,
    Float,
    Null,
    Timestamp,
}

/// Reads an unquoted (or tagged) word; `None` if it is not of the expected type.
pub(super) fn resolve(word: &str, expected: TagType) -> Option<Scalar> {
    let text = || Scalar::Text(word.to_owned());
    if expected == TagType::Text {
        return Some(text());
    }
    let scalar = plain(word, expected).unwrap_or_else(text);
    match (expected, scalar) {
        (TagType::Any, scalar)
        | (TagType::Bool, scalar @ Scalar::Bool(_))
        | (TagType::Int, scalar @ (Scalar::Int(_) | Scalar::Uint(_)))
        | (TagType::Float, scalar @ Scalar::Float(_))
        | (TagType::Null, scalar @ Scalar::Null)
        | (TagType::Timestamp, scalar @ Scalar::Text(_)) => Some(scalar),
        #[allow(clippy::cast_precision_loss)] // that is what the tag asks for
        (TagType::Float, Scalar::Int(value)) => Some(Scalar::Float(value as f64)),
        _ => None,
    }
}

/// The value of `word` if it is not text.
fn plain(word: &str, expected: TagType) -> Option<Scalar> {
    if let Some(scalar) = named(word) {
        return Some(scalar);
    }
    // Four digits and a hyphen: nothing else than a date begins so, and dates stay text.
    let is_date = matches!(expected, TagType::Any | TagType::Timestamp)
        && word.as_bytes().get(4) == Some(&b'-')
        && word.bytes().take(4).all(|byte| byte.is_ascii_digit());
    let digits = word.replace('_', "");
    match word.as_bytes().first()? {
        b'.' => float(word, &digits),
        b'0'..=b'9' | b'+' | b'-' if !is_date => {
            integer(&digits).or_else(|| float(&digits, &digits))
        }
        _ => None,
    }
}

fn named(word: &str) -> Option<Scalar> {
    Some(match word {
        "y" | "Y" | "yes" | "Yes" | "YES" | "true" | "True" | "TRUE" | "on" | "On" | "ON" => {
            Scalar::Bool(true)
        }
        "n" | "N" | "no" | "No" | "NO" | "false" | "False" | "FALSE" | "off" | "Off" | "OFF" => {
            Scalar::Bool(false)
        }
        "" | "~" | "null" | "Null" | "NULL" => Scalar::Null,
        ".nan" | ".NaN" | ".NAN" => Scalar::Float(f64::NAN),
        ".inf" | ".Inf" | ".INF" | "+.inf" | "+.Inf" | "+.INF" => Scalar::Float(f64::INFINITY),
        "-.inf" | "-.Inf" | "-.INF" => Scalar::Float(f64::NEG_INFINITY),
        "<<" => Scalar::Merge,
        _ => return None,
    })
}

fn integer(word: &str) -> Option<Scalar> {
    let (sign, digits) = match word.as_bytes().first()? {
        b'-' => ("-", word.get(1..)?),
        b'+' => ("", word.get(1..)?),
        _ => ("", word),
    };
    // A leading zero alone means octal, as in YAML 1.1.
    let prefixes = [
        ("0x", 16),
        ("0X", 16),
        ("0o", 8),
        ("0O", 8),
        ("0b", 2),
        ("0B", 2),
        ("0", 8),
    ];
    let mut with_prefix = prefixes.into_iter().filter_map(|(prefix, base)| {
        let rest = digits.strip_prefix(prefix)?;
        (!rest.is_empty()).then_some((base, rest))
    });
    let (base, digits) = with_prefix.next().unwrap_or((10, digits));
    if !digits.starts_with(|first: char| first.is_digit(base)) {
        return None; // from_str_radix takes a second sign
    }
    if let Ok(value) = i64::from_str_radix(&format!("{sign}{digits}"), base) {
        return Some(Scalar::Int(value));
    }
    // Like Go, beyond the range of i64 only without a sign.
    let signed = word.starts_with(['-', '+']);
    let value = u64::from_str_radix(digits, base).ok().filter(|_| !signed)?;
    Some(Scalar::Uint(value))
}

/// `[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?`, finite; `word` is as written.
fn float(word: &str, digits: &str) -> Option<Scalar> {
    let unsigned = digits.strip_prefix(['-', '+']).unwrap_or(digits);
    let numeric =
        |byte: u8| byte.is_ascii_digit() || matches!(byte, b'.' | b'e' | b'E' | b'-' | b'+');
    // Go takes underscores in a number that begins with a dot only after a digit.
    if !unsigned.bytes().all(numeric) || unsigned.starts_with(['-', '+']) || word.starts_with("._")
    {
        return None;
    }
    let value: f64 = unsigned.parse().ok()?;
    let negative = digits.starts_with('-');
    value
        .is_finite()
        .then_some(Scalar::Float(if negative { -value } else { value }))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Confirmed with sigs.k8s.io/yaml 1.6.0 (go-yaml 2.4.2), the library in kubectl.
    fn table() -> Vec<(&'static str, Value)> {
        [TEXTS, NUMBERS_AS_TEXT]
            .concat()
            .into_iter()
            .map(|word| (word, json!(word)))
            .chain(words(
                &["y", "Y", "yes", "on", "ON", "true", "TRUE", "True"],
                &json!(true),
            ))
            .chain(words(
                &["n", "N", "No", "off", "OFF", "false"],
                &json!(false),
            ))
            .chain(words(&["~", "null", "Null", "NULL", ""], &Value::Null))
            .chain(numbers())
            .collect()
    }

    const TEXTS: &[&str] = &[
        "tRUE",
        "nULL",
        "4Gi",
        "500m",
        "+",
        ".",
        "..",
        "=",
        "Inf",
        "NaN",
        "+Inf",
        "-Infinity",
        "2001-12-14",
        "2024-1-2",
        "2001-13-14",
        "2001-12-14T21:59:43.10-05:00",
        "oN",
    ];
    const NUMBERS_AS_TEXT: &[&str] = &[
        "1e",
        "1:30",
        "190:20:30",
        "1e400",
        "_1",
        "0x",
        "0x1p4",
        "._1",
        ".e1",
        "0b",
        "0b2",
        ".0x1",
        "0o8",
        "1...",
        "-+1",
        "0x-1",
        "1-2",
    ];

    fn words<'a>(
        words: &'a [&'static str],
        value: &'a Value,
    ) -> impl Iterator<Item = (&'static str, Value)> + 'a {
        words.iter().map(|word| (*word, value.clone()))
    }

    fn numbers() -> Vec<(&'static str, Value)> {
        vec![
            ("010", json!(8)),
            ("0o10", json!(8)),
            ("0777", json!(511)),
            ("0888", json!(888)),
            ("08", json!(8)),
            ("00", json!(0)),
            ("0x1F", json!(31)),
            ("0X1f", json!(31)),
            ("0x_1", json!(1)),
            ("0b101", json!(5)),
            ("-0b11", json!(-3)),
            ("+0b101", json!(5)),
            ("-010", json!(-8)),
            ("+0x10", json!(16)),
            ("-0x10", json!(-16)),
            ("1_000", json!(1000)),
            ("1_", json!(1)),
            ("1__0", json!(10)),
            ("+1", json!(1)),
            ("-0", json!(0)),
            ("1_000.5", json!(1000.5)),
            ("0.5_5", json!(0.55)),
            (".5_5", json!(0.55)),
            ("-.5_0", json!(-0.5)),
            ("1e3", json!(1000)),
            ("1E3", json!(1000)),
            ("1e+3", json!(1000)),
            ("1.e3", json!(1000)),
            ("1e06", json!(1_000_000)),
            (".5e1", json!(5)),
            ("1.", json!(1)),
            ("1.0", json!(1)),
            ("-0.0", json!(0)),
            ("+.5", json!(0.5)),
            ("1e-7", json!(1e-7)),
            ("1e21", json!(1e21)),
            (
                "12345678901234567890",
                json!(12_345_678_901_234_567_890_u64),
            ),
            ("18446744073709551616", json!(18_446_744_073_709_551_616.0)),
            ("-9223372036854775808", json!(i64::MIN)),
            ("-9223372036854775809", json!(-9_223_372_036_854_775_809.0)),
        ]
    }

    #[test]
    fn words_mean_what_they_mean_to_kubectl() {
        for (word, value) in table() {
            let scalar = resolve(word, TagType::Any).expect("any type is expected");
            assert_eq!(scalar.value(), Some(value), "{word:?}");
        }
    }

    #[test]
    fn keys_become_text_as_in_kubectl() {
        for (word, key) in [
            ("yes", "true"),
            ("010", "8"),
            ("1.5", "1.5"),
            (".5", "0.5"),
            ("1e3", "1000"),
            ("1e30", "1e+30"),
            ("-0", "0"),
            ("2001-01-01", "2001-01-01"),
        ] {
            let scalar = resolve(word, TagType::Any).expect("any type is expected");
            assert_eq!(scalar.key().as_deref(), Some(key), "{word:?}");
        }
        assert_eq!(
            resolve("~", TagType::Any).and_then(|null| Some(null.key()?.into_owned())),
            None
        );
    }

    #[test]
    fn json_has_no_infinities() {
        for word in [".inf", "-.Inf", "+.INF", ".NaN"] {
            let scalar = resolve(word, TagType::Any).expect("any type is expected");
            assert_eq!(scalar.value(), None, "{word}");
        }
    }

    #[test]
    fn a_tag_is_obeyed_or_refused() {
        assert_eq!(resolve("1", TagType::Text), Some(Scalar::Text("1".into())));
        assert_eq!(resolve("yes", TagType::Bool), Some(Scalar::Bool(true)));
        assert_eq!(resolve("1", TagType::Float), Some(Scalar::Float(1.0)));
        assert_eq!(resolve("x", TagType::Int), None);
        assert_eq!(resolve("1.5", TagType::Int), None);
    }
}
