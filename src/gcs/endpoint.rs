//! The address of a GCS, and the credentials that it requires of its clients.

use super::{Address, Tls, TokenSource};

/// A GCS, and the credentials for it. `Debug` shows no secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint {
    /// The address at which it listens.
    pub address: Address,
    /// The token, if it requires one (`RAY_AUTH_MODE=token`).
    pub token: Option<TokenSource>,
    /// The material for mutual TLS, if it uses that (`RAY_USE_TLS=1`); otherwise connections are
    /// plain text.
    pub tls: Option<Tls>,
}

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
}
