//! The syntax of Kubernetes label values. (Kubernetes, apimachinery, `IsValidLabelValue`.)

/// The longest label value.
pub const MAX_VALUE: usize = 63;

/// Whether `text` may be the value of a label. An empty text may be one too.
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
}
