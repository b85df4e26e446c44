//! The id of a Ray node.

use std::fmt;
use std::str::FromStr;

use crate::text::{Misread, hex};

/// The number of bytes of a node id.
const LENGTH: usize = 28;

/// The id of a Ray node: 28 bytes, or 56 hexadecimal digits in text.
///
/// Only such an id may be sent to a GCS: an id of any other length aborts the process of the GCS.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, derive_more::Display)]
#[display("{}", hex(_0))]
pub struct NodeId([u8; LENGTH]);

impl NodeId {
    /// The bytes, as they are sent to a GCS.
    pub fn as_bytes(&self) -> &[u8; LENGTH] {
        &self.0
    }
}

impl From<[u8; LENGTH]> for NodeId {
    fn from(bytes: [u8; LENGTH]) -> Self {
        Self(bytes)
    }
}

impl FromStr for NodeId {
    type Err = Misread;

    fn from_str(text: &str) -> Result<Self, Misread> {
        let wrong = || {
            let text: String = text.chars().take(80).collect();
            Misread(format!(
                "{text:?} is not a Ray node id, which has 56 hexadecimal digits"
            ))
        };
        if text.len() != 2 * LENGTH {
            return Err(wrong());
        }
        let mut bytes = [0; LENGTH];
        for (byte, pair) in bytes.iter_mut().zip(text.as_bytes().chunks_exact(2)) {
            *byte = pair
                .iter()
                .try_fold(0, |byte, digit| {
                    Some(byte << 4 | char::from(*digit).to_digit(16)?)
                })
                .and_then(|byte| byte.try_into().ok())
                .ok_or_else(wrong)?;
        }
        Ok(Self(bytes))
    }
}

impl fmt::Debug for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "NodeId({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::NodeId;

    #[test]
    fn is_read_as_it_is_written() {
        let text = "00ff10a1b2c3d4e5f60718293a4b5c6d7e8f9001122334455667788f";
        let id: NodeId = text.parse().unwrap();
        assert_eq!(id.to_string(), text);
        assert_eq!(id.as_bytes()[..3], [0, 0xff, 0x10]);
        assert_eq!(text.to_uppercase().parse(), Ok(id));
    }

    #[test]
    fn nothing_else_is_one() {
        for text in [
            "",
            "00",
            &"0".repeat(55),
            &"0".repeat(57),
            &"0".repeat(58),
            &"g".repeat(56),
            &"+f".repeat(28),
            &"é".repeat(28),
        ] {
            text.parse::<NodeId>().unwrap_err();
        }
    }
}
