//! The answer to a review.

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use json_patch::Patch;
use serde::Serialize;

use super::audit::{self, Annotations};
use super::decide::Decision;
use super::review::{Review, ReviewError};
use crate::defaults::Defaulted;
use crate::finding::Finding;
use crate::judge::Verdict;
use crate::raypolicy;
use crate::report::message;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Envelope<'a> {
    api_version: &'static str,
    kind: &'static str,
    response: Response<'a>,
}

#[derive(Serialize, Default)]
#[serde(rename_all = "camelCase")]
struct Response<'a> {
    uid: &'a str,
    allowed: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<Status<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    patch: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    patch_type: Option<&'static str>,
    #[serde(skip_serializing_if = "Annotations::is_empty")]
    audit_annotations: Annotations,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    warnings: Vec<String>,
}

/// Kubernetes' status object. kubectl shows the causes of an `Invalid` one, each as `field:
/// message`, instead of its message; other clients show the message. So both contain every finding.
#[derive(Serialize)]
struct Status<'a> {
    code: u16,
    reason: &'static str,
    message: String,
    details: Details<'a>,
}

#[derive(Serialize)]
struct Details<'a> {
    name: Cow<'a, str>,
    group: &'a str,
    kind: &'a str,
    causes: Vec<Cause>,
}

#[derive(Serialize)]
struct Cause {
    reason: &'static str,
    message: String,
    field: String,
}

/// The most causes. Further findings are only in the message.
const CAUSES: usize = 500;

/// An answer that could not be written.
#[derive(Debug, thiserror::Error)]
#[error("the answer could not be written as JSON: {0}; please report this as a bug of Rayfit")]
pub struct RenderError(#[from] serde_json::Error);

/// The AdmissionReview that answers `review`, as JSON.
pub fn render(review: &Review<'_>, decision: &Decision) -> Result<Vec<u8>, RenderError> {
    let response = match decision {
        Decision::Skipped(_) | Decision::LeftAsMade(_) | Decision::OwnerUnread(_) => allowed(),
        Decision::TooMuch(error) => too_much(review, error),
        Decision::Judged(verdict) => judged(review, verdict),
        Decision::Defaulted(defaulted) => defaulted_by(defaulted)?,
        Decision::Enlarged(enlarged) => patched(&enlarged.patch, audit::of_initial_size(enlarged))?,
        Decision::Policy(found) => reviewed(review, found),
    };
    let envelope = Envelope {
        api_version: "admission.k8s.io/v1",
        kind: "AdmissionReview",
        response: Response {
            uid: &review.uid,
            ..response
        },
    };
    Ok(serde_json::to_vec(&envelope)?)
}

fn allowed<'a>() -> Response<'a> {
    Response {
        allowed: true,
        ..Response::default()
    }
}

fn judged<'a>(review: &'a Review<'_>, verdict: &Verdict) -> Response<'a> {
    Response {
        allowed: verdict.is_allowed(),
        status: (!verdict.is_allowed()).then(|| invalid(review, &verdict.denied)),
        audit_annotations: audit::of_verdict(verdict),
        warnings: message::warnings(&verdict.warned),
        ..Response::default()
    }
}

fn too_much<'a>(review: &'a Review<'_>, error: &ReviewError) -> Response<'a> {
    let status = Status {
        code: 413,
        reason: "RequestEntityTooLarge",
        message: format!("{error}; write fewer of them"),
        details: details(review, Vec::new()),
    };
    Response {
        allowed: false,
        status: Some(status),
        ..Response::default()
    }
}

/// The answer with the patch that fills in the defaults.
fn defaulted_by<'a>(defaulted: &Defaulted) -> Result<Response<'a>, RenderError> {
    // API servers treat a patch type without a patch as a failure.
    if defaulted.operations.0.is_empty() {
        return Ok(allowed());
    }
    patched(&defaulted.operations, audit::of_defaults(defaulted))
}

fn patched<'a>(patch: &Patch, annotations: Annotations) -> Result<Response<'a>, RenderError> {
    let patch = serde_json::to_vec(patch)?;
    Ok(Response {
        patch: Some(STANDARD.encode(patch)),
        patch_type: Some("JSONPatch"),
        audit_annotations: annotations,
        ..allowed()
    })
}

/// The answer to a RayPolicy.
fn reviewed<'a>(review: &'a Review<'_>, found: &raypolicy::review::PolicyReview) -> Response<'a> {
    let causes = found.refused.iter().map(|fault| Cause {
        reason: "FieldValueInvalid",
        message: fault.problem.clone(),
        field: fault.place.clone(),
    });
    let texts: Vec<String> = found.refused.iter().map(ToString::to_string).collect();
    Response {
        allowed: found.refused.is_empty(),
        status: (!found.refused.is_empty()).then(|| Status {
            code: 422,
            reason: "Invalid",
            message: texts.join("; "),
            details: details(review, causes.collect()),
        }),
        warnings: message::remarks(&found.doubted),
        ..Response::default()
    }
}

fn details<'a>(review: &'a Review<'_>, causes: Vec<Cause>) -> Details<'a> {
    Details {
        name: review.display_name(),
        group: &review.kind.group,
        kind: &review.kind.kind,
        causes,
    }
}

fn invalid<'a>(review: &'a Review<'_>, findings: &[Finding]) -> Status<'a> {
    Status {
        code: 422,
        reason: "Invalid",
        message: message::denial(findings),
        details: details(review, findings.iter().take(CAUSES).map(cause).collect()),
    }
}

fn cause(finding: &Finding) -> Cause {
    Cause {
        reason: "FieldValueInvalid",
        message: message::cause(finding),
        field: finding.path.field(),
    }
}
