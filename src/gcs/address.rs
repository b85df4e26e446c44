//! The address at which a GCS listens.

use std::fmt;
use std::str::FromStr;

/// The port of a GCS unless `rayStartParams.port` says otherwise.
pub const DEFAULT_PORT: u16 = 6379;

/// Host and port of a GCS.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Address {
    host: String,
    port: u16,
}

/// A text that is not an address.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not an address of a GCS: write HOST or HOST:PORT, an IPv6 address in brackets")]
pub struct NotAnAddress(String);

impl Address {
    /// A host name or IP address (IPv6 without brackets), and a port.
    pub fn new(host: impl Into<String>, port: u16) -> Self {
        let host = host.into();
        Self { host, port }
    }

    /// The host's name or IP address, without brackets.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// The port.
    pub fn port(&self) -> u16 {
        self.port
    }
}

impl FromStr for Address {
    type Err = NotAnAddress;

    /// `HOST`, `HOST:PORT`, `[V6]`, `[V6]:PORT` or a bare IPv6 address.
    fn from_str(text: &str) -> Result<Self, NotAnAddress> {
        let wrong = || NotAnAddress(text.chars().take(300).collect());
        let (host, port) = match text.strip_prefix('[') {
            Some(rest) => {
                let (host, tail) = rest.split_once(']').ok_or_else(wrong)?;
                let port = tail.strip_prefix(':');
                if port.is_none() && !tail.is_empty() {
                    return Err(wrong());
                }
                (host, port)
            }
            None if text.matches(':').count() > 1 => (text, None),
            None => text
                .split_once(':')
                .map_or((text, None), |(host, port)| (host, Some(port))),
        };
        let port = port.map_or(Ok(DEFAULT_PORT), |port| port.parse().map_err(|_| wrong()))?;
        let is_host = |byte: u8| byte.is_ascii_alphanumeric() || b"-._:%".contains(&byte);
        if host.is_empty() || host.len() > 253 || !host.bytes().all(is_host) {
            return Err(wrong());
        }
        Ok(Self::new(host, port))
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.contains(':') {
            write!(f, "[{}]:{}", self.host, self.port)
        } else {
            write!(f, "{}:{}", self.host, self.port)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Address, DEFAULT_PORT};

    #[test]
    fn host_and_port_in_every_form() {
        let head = "demo-head-svc.ray.svc.cluster.local";
        for (text, host, port) in [
            ("10.0.0.7:6380", "10.0.0.7", 6380),
            ("10.0.0.7", "10.0.0.7", DEFAULT_PORT),
            (head, head, DEFAULT_PORT),
            ("[fd00::7]:6380", "fd00::7", 6380),
            ("[fd00::7]", "fd00::7", DEFAULT_PORT),
            ("fd00::7", "fd00::7", DEFAULT_PORT),
        ] {
            let address: Address = text.parse().unwrap();
            assert_eq!((address.host(), address.port()), (host, port), "{text}");
            assert_eq!(address.to_string().parse(), Ok(address), "{text}");
        }
    }

    #[test]
    fn nothing_else_is_one() {
        for text in [
            "", ":1", "a:", "a:b", "a:65536", "[::1", "[::1]x", "a/b:1", "a b",
        ] {
            text.parse::<Address>().unwrap_err();
        }
    }
}
