//! Where a GCS is, and what it wants to see of its clients.

use super::{Address, Tls, TokenSource};

/// A GCS, and the credentials for it. `Debug` shows no secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint {
    /// Where it listens.
    pub address: Address,
    /// The token that it asks for (`RAY_AUTH_MODE=token`), if it does.
    pub token: Option<TokenSource>,
    /// Mutual TLS (`RAY_USE_TLS=1`), if it speaks that; otherwise plain text.
    pub tls: Option<Tls>,
}

impl Endpoint {
    /// A GCS that asks for nothing.
    pub fn plain(address: Address) -> Self {
        let (token, tls) = (None, None);
        Self {
            address,
            token,
            tls,
        }
    }
}
