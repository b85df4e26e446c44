//! Names of objects, which become parts of the paths of requests.
//!
//! In: text of anybody, such as `authOptions.secretName`. Out: a name that an object can have. Invariant: with it in a
//! path, no request is for something else.

use std::ops::Deref;
use std::sync::Arc;

use crate::text::{Misread, shown_text};

/// The longest name.
const LONGEST: usize = 253;

/// A DNS subdomain (RFC 1123), which the names of namespaces, RayClusters, pods and Secrets are.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, derive_more::Display)]
pub struct DnsName(Arc<str>);

impl DnsName {
    /// Reads a name.
    ///
    /// # Errors
    ///
    /// No object can have it.
    pub fn parse(text: &str) -> Result<Self, Misread> {
        let is_name = text.len() <= LONGEST && text.split('.').all(is_part);
        let no_name = || {
            let text = shown_text(text);
            Misread(format!(
                "{text} is not a name that an object can have: write lower-case letters, digits, dashes and dots, at \
                 most {LONGEST}, with a letter or digit at both ends and beside each dot"
            ))
        };
        is_name.then(|| Self(text.into())).ok_or_else(no_name)
    }
}

/// Recognizes a part of a name, between dots: lower-case letters, digits and inner dashes.
pub(crate) fn is_part(text: &str) -> bool {
    let is_plain = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let bytes = text.as_bytes();
    bytes.first().is_some_and(is_plain)
        && bytes.last().is_some_and(is_plain)
        && bytes.iter().all(|byte| is_plain(byte) || *byte == b'-')
}

impl Deref for DnsName {
    type Target = Arc<str>;

    fn deref(&self) -> &Arc<str> {
        &self.0
    }
}

/// The namespace and name of an object.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, derive_more::Display)]
#[display("{namespace}/{name}")]
pub struct Key {
    /// Its namespace.
    pub namespace: DnsName,
    /// Its name.
    pub name: DnsName,
}

impl Key {
    /// The key of a namespace and a name.
    ///
    /// # Errors
    ///
    /// No object can have one of them.
    pub fn new(namespace: &str, name: &str) -> Result<Self, Misread> {
        Ok(Self {
            namespace: DnsName::parse(namespace)?,
            name: DnsName::parse(name)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_would_ask_for_something_else_is_no_name() {
        for text in [
            "",
            ".",
            "..",
            "../secrets",
            "../../kube-system/secrets/admin",
            "a/b",
            "a?x",
            "a#x",
            "a%2fb",
            "a b",
            "A",
            "-a",
            "a-",
            "a..b",
            "a\n",
            "ä",
            &"a".repeat(LONGEST + 1),
        ] {
            assert!(DnsName::parse(text).is_err(), "{text:?}");
        }
        for text in ["a", "demo-raycluster-x7k2p", "1.2", &"a".repeat(LONGEST)] {
            assert_eq!(&**DnsName::parse(text).unwrap(), text);
        }
    }
}
