//! The address of a GCS, and the credentials that it requires of its clients: given, or as KubeRay describes them
//! to the containers of a head pod.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use rayfit_core::ray::cluster::GCS_PORT;
use rayfit_core::text::Misread;

use super::credentials::{Material, Tls};

/// Host and port of a GCS.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Address {
    /// The host's name or IP address, without brackets.
    pub host: String,
    /// The port.
    pub port: u16,
}

impl Address {
    /// A host name or IP address (IPv6 without brackets), and a port.
    pub fn new(host: impl Into<String>, port: u16) -> Self {
        let host = host.into();
        Self { host, port }
    }
}

impl FromStr for Address {
    type Err = Misread;

    /// `HOST`, `HOST:PORT`, `[V6]`, `[V6]:PORT` or a bare IPv6 address.
    fn from_str(text: &str) -> Result<Self, Misread> {
        let wrong = || {
            let text: String = text.chars().take(300).collect();
            Misread(format!(
                "{text:?} is not an address of a GCS: write HOST or HOST:PORT, an IPv6 address in brackets"
            ))
        };
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
        let port = port.map_or(Ok(GCS_PORT), |port| port.parse().map_err(|_| wrong()))?;
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

/// A GCS, and the credentials for it. `Debug` shows no secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint {
    /// The address at which it listens.
    pub address: Address,
    /// The token, if it requires one (`RAY_AUTH_MODE=token`).
    pub token: Option<Material>,
    /// The material for mutual TLS, if it uses that (`RAY_USE_TLS=1`); otherwise connections are
    /// plain text.
    pub tls: Option<Tls>,
}

/// The path at which KubeRay mounts the service account's token for Ray (`enableK8sTokenAuth`).
const SERVICE_ACCOUNT_TOKEN: &str = "/var/run/secrets/ray.io/serviceaccount/token";

impl Endpoint {
    /// A GCS that requires no credentials.
    pub fn plain(address: Address) -> Self {
        let (token, tls) = (None, None);
        Self {
            address,
            token,
            tls,
        }
    }

    /// The endpoint at `address` with the credentials that `variable` (the environment) names, in the
    /// order in which Ray itself looks for them. (Ray, `rpc/authentication/authentication_token_loader.cc`.)
    pub fn from_environment(
        address: Address,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<Self, Misread> {
        // Ray takes an empty variable for an absent one.
        let variable = |name: &str| variable(name).filter(|value| !value.is_empty());
        let is_on = |name: &str| {
            variable(name).is_some_and(|value| value == "1" || value.eq_ignore_ascii_case("true"))
        };
        let mut endpoint = Self::plain(address);
        let mode = variable("RAY_AUTH_MODE");
        if mode.is_some_and(|mode| mode.eq_ignore_ascii_case("token")) {
            endpoint.token = Some(if let Some(token) = variable("RAY_AUTH_TOKEN") {
                Material::Memory(token.into_bytes().into())
            } else if let Some(path) = variable("RAY_AUTH_TOKEN_PATH") {
                Material::File(path.into())
            } else if is_on("RAY_ENABLE_K8S_TOKEN_AUTH") {
                Material::File(SERVICE_ACCOUNT_TOKEN.into())
            } else {
                let home = variable("HOME").unwrap_or_else(|| ".".to_owned());
                Material::File(PathBuf::from(home).join(".ray/auth_token"))
            });
        }
        if is_on("RAY_USE_TLS") {
            let file = |name: &'static str| {
                let path = variable(name).map(|path| Material::File(path.into()));
                path.ok_or_else(|| {
                    Misread(format!(
                        "RAY_USE_TLS is on and {name} is not set: set RAY_TLS_SERVER_CERT, RAY_TLS_SERVER_KEY and \
                         RAY_TLS_CA_CERT, as the Ray containers have them"
                    ))
                })
            };
            endpoint.tls = Some(Tls {
                certificate: file("RAY_TLS_SERVER_CERT")?,
                key: file("RAY_TLS_SERVER_KEY")?,
                authority: file("RAY_TLS_CA_CERT")?,
                server_name: None,
            });
        }
        Ok(endpoint)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn host_and_port_in_every_form() {
        let head = "demo-head-svc.ray.svc.cluster.local";
        for (text, host, port) in [
            ("10.0.0.7:6380", "10.0.0.7", 6380),
            ("10.0.0.7", "10.0.0.7", GCS_PORT),
            (head, head, GCS_PORT),
            ("[fd00::7]:6380", "fd00::7", 6380),
            ("[fd00::7]", "fd00::7", GCS_PORT),
            ("fd00::7", "fd00::7", GCS_PORT),
        ] {
            let address: Address = text.parse().unwrap();
            assert_eq!(
                (address.host.as_str(), address.port),
                (host, port),
                "{text}"
            );
            assert_eq!(address.to_string().parse(), Ok(address), "{text}");
        }
    }

    #[test]
    fn nothing_else_is_an_address() {
        for text in [
            "", ":1", "a:", "a:b", "a:65536", "[::1", "[::1]x", "a/b:1", "a b",
        ] {
            text.parse::<Address>().unwrap_err();
        }
    }

    fn endpoint(variables: &[(&str, &str)]) -> Result<Endpoint, Misread> {
        Endpoint::from_environment(Address::new("127.0.0.1", 6379), |name| {
            let found = variables.iter().find(|(key, _)| *key == name);
            found.map(|(_, value)| (*value).to_owned())
        })
    }

    fn token(variables: &[(&str, &str)]) -> Option<Material> {
        endpoint(variables).unwrap().token
    }

    #[test]
    fn nothing_said_is_plain() {
        let plain = Endpoint::plain(Address::new("127.0.0.1", 6379));
        assert_eq!(endpoint(&[]), Ok(plain.clone()));
        let off = [("RAY_USE_TLS", "0"), ("RAY_AUTH_MODE", "disabled")];
        assert_eq!(endpoint(&off), Ok(plain.clone()));
        // A token alone turns nothing on.
        assert_eq!(endpoint(&[("RAY_AUTH_TOKEN", "x")]), Ok(plain));
    }

    #[test]
    fn the_token_is_looked_for_in_rays_order() {
        let mut variables = vec![
            ("RAY_AUTH_MODE", "token"),
            ("HOME", "/home/ray"),
            ("RAY_ENABLE_K8S_TOKEN_AUTH", "true"),
            ("RAY_AUTH_TOKEN_PATH", "/secret/token"),
            ("RAY_AUTH_TOKEN", "x"),
        ];
        let file = |path: &str| Some(Material::File(path.into()));
        assert_eq!(
            token(&variables),
            Some(Material::Memory(b"x".as_slice().into()))
        );
        variables[4].1 = "";
        assert_eq!(token(&variables), file("/secret/token"));
        variables.truncate(3);
        assert_eq!(token(&variables), file(SERVICE_ACCOUNT_TOKEN));
        variables.truncate(2);
        assert_eq!(token(&variables), file("/home/ray/.ray/auth_token"));
    }

    #[test]
    fn tls_needs_all_of_its_files() {
        let mut variables = vec![
            ("RAY_USE_TLS", "1"),
            ("RAY_TLS_SERVER_CERT", "/etc/ray/tls/tls.crt"),
            ("RAY_TLS_SERVER_KEY", "/etc/ray/tls/tls.key"),
            ("RAY_TLS_CA_CERT", "/etc/ray/tls/ca.crt"),
        ];
        let tls = endpoint(&variables).unwrap().tls.unwrap();
        assert_eq!(tls.key, Material::File("/etc/ray/tls/tls.key".into()));
        variables.pop();
        let missing = endpoint(&variables).unwrap_err().to_string();
        assert!(
            missing.contains("and RAY_TLS_CA_CERT is not set"),
            "{missing}"
        );
    }
}
