//! The API server's answers that refuse calls.

use crate::reconcile::Failure;
use crate::reconcile::effects::failure::ApiStatus;

/// An answer with this code, and the causes that it names.
pub(super) fn refused(code: u16, message: &str, causes: &[&str]) -> Failure {
    Failure::Api(ApiStatus {
        code,
        message: message.to_owned(),
        causes: causes.iter().map(|cause| (*cause).to_owned()).collect(),
        ..ApiStatus::default()
    })
}
