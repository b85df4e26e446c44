//! The environment variables with which KubeRay describes the GCS to the containers of a head pod.

use std::path::PathBuf;

use super::{Address, Endpoint, Material, Tls, TokenSource};

/// The path at which KubeRay mounts the service account's token for Ray (`enableK8sTokenAuth`).
const SERVICE_ACCOUNT_TOKEN: &str = "/var/run/secrets/ray.io/serviceaccount/token";

/// The error of an environment that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EnvironmentError {
    /// TLS without all of its files.
    #[error(
        "RAY_USE_TLS is on and {0} is not set: set RAY_TLS_SERVER_CERT, RAY_TLS_SERVER_KEY and \
         RAY_TLS_CA_CERT, as the Ray containers have them"
    )]
    TlsFile(&'static str),
}

/// The endpoint at `address` with the credentials that `variable` (the environment) names, in the
/// order in which Ray itself looks for them.
pub fn from_environment(
    address: Address,
    variable: impl Fn(&str) -> Option<String>,
) -> Result<Endpoint, EnvironmentError> {
    // Ray takes an empty variable for an absent one.
    let variable = |name: &str| variable(name).filter(|value| !value.is_empty());
    Ok(Endpoint {
        address,
        token: token(variable),
        tls: tls(variable)?,
    })
}

/// Ray, `rpc/authentication/authentication_token_loader.cc`: the token, a file of it, the service
/// account's, the user's.
fn token(variable: impl Fn(&str) -> Option<String>) -> Option<TokenSource> {
    let mode = variable("RAY_AUTH_MODE")?;
    if !mode.eq_ignore_ascii_case("token") {
        return None;
    }
    let material = if let Some(token) = variable("RAY_AUTH_TOKEN") {
        Material::from(token.into_bytes())
    } else if let Some(path) = variable("RAY_AUTH_TOKEN_PATH") {
        Material::File(path.into())
    } else if variable("RAY_ENABLE_K8S_TOKEN_AUTH").is_some_and(|value| is_on(&value)) {
        Material::File(SERVICE_ACCOUNT_TOKEN.into())
    } else {
        let home = variable("HOME").unwrap_or_else(|| ".".to_owned());
        Material::File(PathBuf::from(home).join(".ray/auth_token"))
    };
    Some(TokenSource(material))
}

fn tls(variable: impl Fn(&str) -> Option<String>) -> Result<Option<Tls>, EnvironmentError> {
    if !variable("RAY_USE_TLS").is_some_and(|value| is_on(&value)) {
        return Ok(None);
    }
    let file = |name: &'static str| {
        let path = variable(name).ok_or(EnvironmentError::TlsFile(name))?;
        Ok(Material::File(path.into()))
    };
    Ok(Some(Tls {
        certificate: file("RAY_TLS_SERVER_CERT")?,
        key: file("RAY_TLS_SERVER_KEY")?,
        authority: file("RAY_TLS_CA_CERT")?,
        server_name: None,
    }))
}

/// Parses a boolean as Ray does.
fn is_on(value: &str) -> bool {
    value == "1" || value.eq_ignore_ascii_case("true")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn endpoint(variables: &[(&str, &str)]) -> Result<Endpoint, EnvironmentError> {
        from_environment(Address::new("127.0.0.1", 6379), |name| {
            let found = variables.iter().find(|(key, _)| *key == name);
            found.map(|(_, value)| (*value).to_owned())
        })
    }

    fn token(variables: &[(&str, &str)]) -> Option<Material> {
        endpoint(variables).unwrap().token.map(|source| source.0)
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
        assert_eq!(token(&variables), Some(b"x".to_vec().into()));
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
        let missing = EnvironmentError::TlsFile("RAY_TLS_CA_CERT");
        assert_eq!(endpoint(&variables), Err(missing));
    }
}
