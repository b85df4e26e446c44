//! Moments as Kubernetes writes them, and as numbers.

use k8s_openapi::jiff::Timestamp;

/// A moment, given in seconds since 1970, as Kubernetes writes it, to the nearest second. Unlike
/// the time that has passed since a moment, or the time until it, this text stays the same.
pub fn moment(seconds: f64) -> String {
    #[expect(clippy::cast_possible_truncation, reason = "seconds since 1970")]
    // Kubernetes writes whole seconds, so finer times would never equal what it returns.
    let whole = Timestamp::from_second(seconds.round() as i64);
    whole.map(|moment| moment.to_string()).unwrap_or_default()
}

/// A moment in whole seconds since 1970, as Kubernetes writes it.
#[expect(clippy::cast_precision_loss, reason = "whole seconds since 1970")]
pub fn whole_moment(seconds: i64) -> String {
    moment(seconds as f64)
}

/// A time in RFC 3339, in seconds since 1970.
pub(super) fn seconds(time: &str) -> Option<f64> {
    let time: Timestamp = time.parse().ok()?;
    Some(time.as_duration().as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_written_as_kubernetes_does() {
        assert_eq!(moment(1_768_392_000.4), "2026-01-14T12:00:00Z");
        assert_eq!(moment(f64::INFINITY), "", "no moment");
    }
}
