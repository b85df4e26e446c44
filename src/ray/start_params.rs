//! The small languages inside `rayStartParams`, read as Ray's Python reads them.

use serde_json::Value;

use super::Fields;

/// Reads a text as Python's `int()` does: blanks around it, a sign, and single underscores
/// between digits are allowed. Numbers beyond 64 bits read as the nearest bound.
pub fn python_int(text: &str) -> Option<i64> {
    let trimmed = text.trim();
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
/// that it would be in quotes, so that the forgotten quotes hide no other fault.
pub fn start_integer(value: &Value) -> Option<i64> {
    match value {
        Value::String(text) => python_int(text),
        Value::Number(number) => python_int(&number.to_string()),
        _ => None,
    }
}

/// Why `rayStartParams.resources` cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StartResourcesError {
    /// No JSON left after Ray has taken off the first and last character and all backslashes.
    #[error("it is not JSON in quotes ({0})")]
    NotQuotedJson(String),
    /// JSON, but no object.
    #[error("it is not a JSON object")]
    NotAnObject,
    /// An amount that is no integer.
    #[error("{key:?} is {found}, not an integer")]
    NotAnInteger {
        /// The resource.
        key: String,
        /// As written.
        found: String,
    },
}

/// Reads `rayStartParams.resources` as Ray's autoscaler does: the first and the last character
/// are dropped whatever they are, backslashes are deleted, the rest must be a JSON object of
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

/// Longest text that is read. No pod could be started with a longer one.
const MAX_LEN: usize = 256 << 10;

/// The first half of [`start_resources`]: the object, its amounts not yet looked at.
pub fn start_resources_object(text: &str) -> Result<Fields, StartResourcesError> {
    // As a tree it would take many times as much.
    if text.len() > MAX_LEN {
        let problem = "it is longer than 256 KiB".to_owned();
        return Err(StartResourcesError::NotQuotedJson(problem));
    }
    let mut characters = text.chars();
    characters.next();
    characters.next_back();
    let unquoted: String = characters.filter(|character| *character != '\\').collect();
    match serde_json::from_str(&unquoted) {
        Ok(Value::Object(map)) => Ok(map),
        Ok(_) => Err(StartResourcesError::NotAnObject),
        Err(error) => Err(StartResourcesError::NotQuotedJson(error.to_string())),
    }
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
        ] {
            assert_eq!(python_int(text), Some(value), "{text:?}");
        }
        for text in [
            "", " ", "2.5", "4Gi", "1__0", "_1", "1_", "+", "0x10", "1e3",
        ] {
            assert_eq!(python_int(text), None, "{text:?}");
        }
    }

    #[test]
    fn an_unquoted_number_reads_as_its_text() {
        assert_eq!(start_integer(&serde_json::json!(4)), Some(4));
        assert_eq!(start_integer(&serde_json::json!("+4")), Some(4));
        assert_eq!(start_integer(&serde_json::json!(2.5)), None);
        assert_eq!(start_integer(&serde_json::json!(true)), None);
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
    }
}
