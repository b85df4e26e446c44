//! The options for certificates that Rayfit issues itself.

use std::time::Duration;

use thiserror::Error;

use super::next::CertificatePolicy;
use crate::manifests::names;

/// The options for certificates that Rayfit issues itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CertificateOptions {
    /// The namespace of the Secret and of Rayfit's pods.
    pub namespace: String,
    /// The Secret's name.
    pub secret: String,
    /// The name of this pod.
    pub replica: String,
    /// The lifetime of an authority.
    pub authority_lifetime: Duration,
    /// The lifetime of a serving certificate.
    pub leaf_lifetime: Duration,
    /// How long a change of a webhook configuration may take to reach every API server.
    pub propagation: Duration,
}

/// The reason why certificates cannot be managed with these options.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum CertificateOptionsError {
    /// The Secret is not given as `NAMESPACE/NAME`.
    #[error("{0:?} is not the name of a Secret: write NAMESPACE/NAME, for example \
             rayfit-system/{secret}", secret = names::OWN_SECRET)]
    Secret(String),
    /// The authority would not outlive its leaves.
    #[error(
        "an authority with a lifetime of {authority:?} is too short-lived for certificates with a \
         lifetime of {leaf:?}: it is replaced when less than two of their lifetimes are left, so \
         give it at least five times as long"
    )]
    Lifetimes {
        /// The authority's lifetime.
        authority: Duration,
        /// The leaf's lifetime.
        leaf: Duration,
    },
    /// The certificate would end before a rotation is complete.
    #[error(
        "a certificate that lives {leaf:?} would expire before API servers know its successor, \
         which takes {propagation:?}: give it at least eight times as long"
    )]
    TooShort {
        /// The leaf's lifetime.
        leaf: Duration,
        /// The time for which a rotation waits.
        propagation: Duration,
    },
    /// The text is not a time.
    #[error("{0:?} is not a duration: write a number and s, m, h or d, for example 365d")]
    Lifetime(String),
}

const DAY: Duration = Duration::from_hours(24);

impl CertificateOptions {
    /// The default options: an authority for two years, and certificates for 90 days.
    ///
    /// `secret` is `NAMESPACE/NAME`, `replica` the name of this pod.
    pub fn new(secret: &str, replica: String) -> Result<Self, CertificateOptionsError> {
        let wrong = || CertificateOptionsError::Secret(secret.to_owned());
        let (namespace, name) = secret.split_once('/').ok_or_else(wrong)?;
        if namespace.is_empty() || name.is_empty() || name.contains('/') {
            return Err(wrong());
        }
        Ok(Self {
            namespace: namespace.to_owned(),
            secret: name.to_owned(),
            replica,
            // Both are replaced automatically in good time, so short lifetimes cost nothing.
            authority_lifetime: 730 * DAY,
            leaf_lifetime: 90 * DAY,
            propagation: Duration::from_mins(1),
        })
    }

    /// Whether certificates with these lifetimes can be rotated without a gap.
    pub fn check(&self) -> Result<(), CertificateOptionsError> {
        let (authority, leaf) = (self.authority_lifetime, self.leaf_lifetime);
        let propagation = self.propagation;
        // An authority is replaced when two lifetimes of its leaves are left.
        if authority < leaf * 5 {
            return Err(CertificateOptionsError::Lifetimes { authority, leaf });
        }
        // A leaf is renewed when a quarter of its lifetime is left, in which a new authority has to
        // reach every API server first.
        if leaf < propagation * 8 {
            return Err(CertificateOptionsError::TooShort { leaf, propagation });
        }
        Ok(())
    }

    /// The names under which API servers, and other clients in the cluster, call the webhooks.
    pub fn hosts(&self) -> Vec<String> {
        let host = names::service_host(&self.namespace);
        vec![host.clone(), format!("{host}.cluster.local")]
    }

    pub(super) fn policy(&self) -> CertificatePolicy {
        CertificatePolicy {
            replica: self.replica.clone(),
            authority_lifetime: self.authority_lifetime,
            leaf_lifetime: self.leaf_lifetime,
            propagation: self.propagation,
        }
    }
}

/// Reads a lifetime such as `365d`, `12h`, `30m` or `45s`, for flags.
pub fn parse_lifetime(text: &str) -> Result<Duration, CertificateOptionsError> {
    let wrong = || CertificateOptionsError::Lifetime(text.to_owned());
    let unit = text.chars().last().ok_or_else(wrong)?;
    let seconds: u64 = match unit {
        's' => 1,
        'm' => 60,
        'h' => 3_600,
        'd' => 86_400,
        _ => return Err(wrong()),
    };
    let number: u32 = text
        .strip_suffix(unit)
        .unwrap_or_default()
        .parse()
        .map_err(|_| wrong())?;
    // Certificates write years with four digits, so lifetimes are limited to two centuries.
    let time = Duration::from_secs(seconds * u64::from(number));
    let possible = !time.is_zero() && time <= 73_000 * DAY;
    possible.then_some(time).ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_times() {
        assert_eq!(parse_lifetime("365d"), Ok(365 * DAY));
        assert_eq!(parse_lifetime("90s"), Ok(Duration::from_secs(90)));
        for wrong in [
            "",
            "d",
            "-1d",
            "1.5h",
            "10",
            "1w",
            "0d",
            "4000000000d",
            "1dd",
        ] {
            assert!(parse_lifetime(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn refuses_what_could_not_be_rotated() {
        let options = CertificateOptions::new("ray/certs", "pod".to_owned()).unwrap();
        assert_eq!(options.check(), Ok(()));
        assert_eq!(
            options.hosts(),
            ["rayfit.ray.svc", "rayfit.ray.svc.cluster.local"]
        );
        let short = CertificateOptions {
            authority_lifetime: 400 * DAY,
            ..options.clone()
        };
        assert!(matches!(
            short.check(),
            Err(CertificateOptionsError::Lifetimes { .. })
        ));
        let hasty = CertificateOptions {
            leaf_lifetime: Duration::from_mins(1),
            ..options
        };
        assert!(matches!(
            hasty.check(),
            Err(CertificateOptionsError::TooShort { .. })
        ));
        for wrong in ["certs", "/certs", "ray/", "a/b/c"] {
            assert!(
                CertificateOptions::new(wrong, String::new()).is_err(),
                "{wrong}"
            );
        }
    }
}
