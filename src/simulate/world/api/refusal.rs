//! The API server's answers that refuse calls.

use crate::ray::resource::Amounts;
use crate::reconcile::Failure;
use crate::reconcile::effects::failure::{ApiStatus, GcsKind};

/// The message of the quota's admission. (`k8s.io/apiserver`, `resourcequota/controller.go`.)
pub(super) const EXCEEDED_QUOTA: &str = "exceeded quota: cores";

/// The GCS does not answer.
pub(super) fn no_answer_of_gcs() -> Failure {
    Failure::Gcs {
        kind: GcsKind::Unreachable,
        message: "played: deadline exceeded".to_owned(),
    }
}

/// An answer with this code, and the causes that it names.
pub(super) fn refused(code: u16, message: &str, causes: &[&str]) -> Failure {
    Failure::Api(ApiStatus {
        code,
        message: message.to_owned(),
        causes: causes.iter().map(|cause| (*cause).to_owned()).collect(),
        ..ApiStatus::default()
    })
}

/// The answer to a resize that its node could never hold.
pub(super) fn node_capacity(wanted: Amounts, allocatable: Amounts) -> Failure {
    let cpu = |amounts: Amounts| amounts.cpu.unwrap_or_default().ceil_milli();
    let memory = |amounts: Amounts| amounts.memory.unwrap_or_default().ceil_units();
    let mut parts = Vec::new();
    if cpu(wanted) > cpu(allocatable) {
        let (wanted, allocatable) = (cpu(wanted), cpu(allocatable));
        parts.push(format!(
            "cpu, requested: {wanted}, allocatable: {allocatable}"
        ));
    }
    if memory(wanted) > memory(allocatable) {
        let (wanted, allocatable) = (memory(wanted), memory(allocatable));
        parts.push(format!(
            "memory, requested: {wanted}, allocatable: {allocatable}"
        ));
    }
    let message = format!(
        "node didn't have enough allocatable resources: {}",
        parts.join("; ")
    );
    refused(403, &message, &["NodeCapacity"])
}
