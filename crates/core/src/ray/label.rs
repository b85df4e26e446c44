//! The syntax of Kubernetes label keys and values. (Kubernetes, apimachinery, `IsQualifiedName` and
//! `IsValidLabelValue`.)

use crate::dns_name::is_part;

/// The longest label value.
pub const MAX_VALUE: usize = 63;

/// True for a text that may be the value of a label. An empty text may be one too.
pub fn is_value(text: &str) -> bool {
    let alphanumeric = |byte: Option<&u8>| byte.is_none_or(u8::is_ascii_alphanumeric);
    let bytes = text.as_bytes();
    bytes.len() <= MAX_VALUE
        && alphanumeric(bytes.first())
        && alphanumeric(bytes.last())
        && bytes
            .iter()
            .all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(byte))
}

/// The longest name part of a key, and the longest part of its prefix that Ray accepts.
const MAX_PART: usize = 63;

/// The longest prefix of a key.
const MAX_PREFIX: usize = 253;

/// True for a text that may be the key of a label: a name, or a DNS subdomain, a slash and a name.
pub fn is_key(text: &str) -> bool {
    let is_prefix =
        |prefix: &str| prefix.len() <= MAX_PREFIX && prefix.split('.').all(is_dns_label);
    let (prefix, name) = match text.split_once('/') {
        Some((prefix, name)) => (Some(prefix), name),
        None => (None, text),
    };
    prefix.is_none_or(is_prefix) && !name.is_empty() && is_value(name)
}

/// True for a DNS-1123 label: at most 63 lower-case letters, digits and inner dashes.
pub fn is_dns_label(text: &str) -> bool {
    text.len() <= MAX_PART && is_part(text)
}

/// True for a DNS-1035 label, apart from its length: lower-case letters, digits and inner
/// dashes, beginning with a letter.
pub fn is_dns_1035(text: &str) -> bool {
    begins_dns_1035(text) && !text.ends_with('-')
}

/// True for a text that becomes a DNS-1035 label if something follows that ends in a letter or digit.
pub fn begins_dns_1035(text: &str) -> bool {
    text.bytes()
        .next()
        .is_some_and(|byte| byte.is_ascii_lowercase())
        && text
            .bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_as_kubernetes_takes_them() {
        let longest = "x".repeat(MAX_VALUE);
        for text in ["", "a", "GPU-1", "a_b.c", &longest] {
            assert!(is_value(text), "{text:?}");
        }
        let longer = "x".repeat(MAX_VALUE + 1);
        for text in ["-a", "a-", "a b", "a/b", "größe", &longer] {
            assert!(!is_value(text), "{text:?}");
        }
    }

    #[test]
    fn keys_as_kubernetes_takes_them() {
        let longest = format!("{}/{}", ["a"; 127].join("."), "x".repeat(63));
        for text in ["a", "Team_1", "ray.io/team", "a-b.c/x", &longest] {
            assert!(is_key(text), "{text:?}");
        }
        let long_prefix = format!("{}/x", ["a"; 128].join("."));
        for text in [
            "",
            "/a",
            "a/",
            "a/b/c",
            "-a",
            "Ray.io/a",
            "a..b/c",
            "a b",
            &long_prefix,
        ] {
            assert!(!is_key(text), "{text:?}");
        }
    }

    #[test]
    fn dns_1035_labels_begin_with_a_letter() {
        assert!(is_dns_1035("a") && is_dns_1035("gpu-1"));
        for text in ["", "1a", "-a", "a-", "A", "a.b", "a_b"] {
            assert!(!is_dns_1035(text), "{text:?}");
        }
        assert!(begins_dns_1035("job-") && !begins_dns_1035("-"));
    }
}
