//! Refusals of requests before they are read.

/// The reason to refuse a request before it is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// Not JSON.
    #[error("send an AdmissionReview with content type application/json")]
    ContentType,
    /// Longer than [`AdmissionLimits::body`](super::AdmissionLimits::body).
    #[error("the body is longer than {:.1} MiB, more than an API server sends", mebibytes(*.0))]
    TooLong(usize),
    /// The body did not arrive in time.
    #[error("the body did not arrive in time")]
    Slow,
    /// The client went away.
    #[error("the body ended early")]
    Broken,
    /// Too many requests are in progress.
    #[error("rayfit is busy with other reviews: try again, or run more replicas")]
    Busy,
    /// The API server's timeout would pass before an answer.
    #[error("rayfit could not answer within the webhook's timeout: raise it, or run more replicas")]
    Deadline,
}

#[expect(clippy::cast_precision_loss, reason = "for people, with one digit")]
fn mebibytes(bytes: usize) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}
