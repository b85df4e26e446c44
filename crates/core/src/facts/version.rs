//! The version of the API server.

use std::str::FromStr;

use serde::Deserialize;

use crate::text::Misread;

/// A minor version of Kubernetes; ordered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize, derive_more::Display)]
#[serde(try_from = "String")]
#[display("{major}.{minor}")]
pub struct KubernetesVersion {
    /// The 1 of 1.35.
    pub major: u32,
    /// The 35 of 1.35.
    pub minor: u32,
}

impl KubernetesVersion {
    /// The version with these two numbers.
    pub const fn new(major: u32, minor: u32) -> Self {
        Self { major, minor }
    }
}

impl FromStr for KubernetesVersion {
    type Err = Misread;

    /// Reads `1.35`, `v1.35.2`, and the forms of providers: `1.35+`, `v1.35.2-gke.100`.
    fn from_str(text: &str) -> Result<Self, Misread> {
        let wrong = || {
            Misread(format!(
                "\"{text}\" is not a version of Kubernetes: write it like \"1.35\", in quotes"
            ))
        };
        let mut parts = text.strip_prefix('v').unwrap_or(text).split('.');
        let mut number = || {
            let part = parts.next()?;
            let end = part.find(|c: char| !c.is_ascii_digit());
            part.get(..end.unwrap_or(part.len()))?.parse().ok()
        };
        let major = number().ok_or_else(wrong)?;
        let minor = number().ok_or_else(wrong)?;
        Ok(Self { major, minor })
    }
}

impl TryFrom<String> for KubernetesVersion {
    type Error = Misread;

    fn try_from(text: String) -> Result<Self, Misread> {
        text.parse()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_api_servers_say() {
        for text in ["1.35", "v1.35.2", "1.35+", "v1.35.2-gke.100"] {
            assert_eq!(text.parse(), Ok(KubernetesVersion::new(1, 35)), "{text}");
        }
        for text in ["", "1", "one.two", "1."] {
            assert!(text.parse::<KubernetesVersion>().is_err(), "{text}");
        }
        assert!(KubernetesVersion::new(1, 9) < KubernetesVersion::new(1, 33));
    }
}
