//! The options for certificates that Rayfit issues itself.

use std::time::Duration;

use rayfit_core::manifests::names;
use rayfit_core::text::Misread;

use super::issue::AUTHORITY_LIFETIME;

/// The options for certificates that Rayfit issues itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CertificateOptions {
    /// The namespace of the Secret and of Rayfit's pods.
    pub namespace: String,
    /// The Secret's name.
    pub secret: String,
    /// The lifetime of a serving certificate.
    pub leaf_lifetime: Duration,
    /// The time in which a change of a webhook configuration reaches every API server.
    pub propagation: Duration,
}

const DAY: Duration = Duration::from_hours(24);

impl CertificateOptions {
    /// The default options: certificates for 90 days. `secret` is `NAMESPACE/NAME`.
    pub fn new(secret: &str) -> Result<Self, Misread> {
        let wrong = || {
            Misread(format!(
                "{secret:?} is not the name of a Secret: write NAMESPACE/NAME, for example rayfit-system/{}",
                names::OWN_SECRET
            ))
        };
        let (namespace, name) = secret.split_once('/').ok_or_else(wrong)?;
        if namespace.is_empty() || name.is_empty() || name.contains('/') {
            return Err(wrong());
        }
        Ok(Self {
            namespace: namespace.to_owned(),
            secret: name.to_owned(),
            leaf_lifetime: 90 * DAY,
            propagation: Duration::from_mins(1),
        })
    }

    /// Checks that certificates with these lifetimes can be rotated without a gap.
    pub fn check(&self) -> Result<(), Misread> {
        let (leaf, propagation) = (self.leaf_lifetime, self.propagation);
        if leaf * 5 > AUTHORITY_LIFETIME {
            return Err(Misread(format!(
                "a certificate that lives {leaf:?} is too long-lived: its authority lives ten years, and is \
                 replaced when less than two lifetimes of a certificate are left, so give it two years at most"
            )));
        }
        // A leaf is renewed when a quarter of its lifetime is left, and until then former authorities
        // have to be gone.
        if leaf < propagation * 20 {
            return Err(Misread(format!(
                "a certificate that lives {leaf:?} would expire before API servers know another authority, \
                 which takes {propagation:?}: give it at least twenty times as long"
            )));
        }
        Ok(())
    }

    /// The names under which API servers, and other clients in the cluster, call the webhooks.
    pub fn hosts(&self) -> Vec<String> {
        let host = names::service_host(&self.namespace);
        vec![host.clone(), format!("{host}.cluster.local")]
    }
}

/// Reads a lifetime such as `365d`, `12h`, `30m` or `45s`, for flags.
pub fn parse_lifetime(text: &str) -> Result<Duration, Misread> {
    let wrong = || {
        Misread(format!(
            "{text:?} is not a duration: write a number and s, m, h or d, for example 365d"
        ))
    };
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
        let options = CertificateOptions::new("ray/certs").unwrap();
        assert_eq!(options.check(), Ok(()));
        assert_eq!(
            options.hosts(),
            ["rayfit.ray.svc", "rayfit.ray.svc.cluster.local"]
        );
        let lasting = CertificateOptions {
            leaf_lifetime: 800 * DAY,
            ..options.clone()
        };
        let fault = |options: &CertificateOptions| options.check().unwrap_err().to_string();
        assert!(fault(&lasting).contains("is too long-lived"));
        let hasty = CertificateOptions {
            leaf_lifetime: Duration::from_mins(1),
            ..options
        };
        assert!(fault(&hasty).contains("would expire before"));
        for wrong in ["certs", "/certs", "ray/", "a/b/c"] {
            assert!(CertificateOptions::new(wrong).is_err(), "{wrong}");
        }
    }
}
