//! The answer to a review.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use json_patch::Patch;
use rayfit_core::report::message;
use serde_json::{Value, json};

use super::audit;
use super::decide::ReviewDecision;
use super::review::Review;

/// The most causes. Further findings are only in the message.
const CAUSES: usize = 500;

/// The AdmissionReview that answers `review`, as JSON.
pub fn render(review: &Review<'_>, decision: &ReviewDecision) -> serde_json::Result<Vec<u8>> {
    let mut response = json!({"uid": review.uid, "allowed": true});
    match decision {
        ReviewDecision::Skipped(_)
        | ReviewDecision::LeftAsMade(_)
        | ReviewDecision::OwnerUnread(_) => {}
        ReviewDecision::TooMuch(error) => {
            let message = format!("{error}; write fewer of them");
            deny(&mut response, review, 413, &message, &[]);
        }
        ReviewDecision::Judged(verdict) => {
            if !verdict.is_allowed() {
                let causes = verdict.denied.iter().take(CAUSES);
                let causes =
                    causes.map(|finding| cause(&message::cause(finding), &finding.path.field()));
                let causes: Vec<Value> = causes.collect();
                let message = message::denial(&verdict.denied);
                deny(&mut response, review, 422, &message, &causes);
            }
            let annotations = audit::of_verdict(verdict);
            if !annotations.is_empty() {
                response["auditAnnotations"] = json!(annotations);
            }
            warn(&mut response, message::warnings(&verdict.warned));
        }
        // API servers treat a patch type without a patch as a failure.
        ReviewDecision::Defaulted(defaulted) if defaulted.operations.0.is_empty() => {}
        ReviewDecision::Defaulted(defaulted) => {
            patch(&mut response, &defaulted.operations)?;
            if !defaulted.applied.is_empty() {
                let applied = audit::bounded(defaulted.applied.iter(), "; ");
                response["auditAnnotations"] = json!({"defaulted": applied});
            }
        }
        ReviewDecision::Enlarged(enlarged) => {
            patch(&mut response, &enlarged.patch)?;
            let size = enlarged.size.to_string();
            response["auditAnnotations"] = json!({"initial-size": size});
        }
        ReviewDecision::Policy(result) => {
            if !result.refused.is_empty() {
                let texts: Vec<String> = result.refused.iter().map(ToString::to_string).collect();
                let causes = result.refused.iter();
                let causes = causes.map(|fault| cause(&fault.problem, &fault.place));
                let causes: Vec<Value> = causes.collect();
                deny(&mut response, review, 422, &texts.join("; "), &causes);
            }
            warn(&mut response, message::remarks(&result.warnings));
        }
    }
    serde_json::to_vec(&json!({
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "response": response,
    }))
}

fn cause(message: &str, field: &str) -> Value {
    json!({"reason": "FieldValueInvalid", "message": message, "field": field})
}

/// Denies with a status of Kubernetes. kubectl shows the causes of an `Invalid` one, each as `field:
/// message`, instead of its message; other clients show the message. So both contain every finding.
fn deny(response: &mut Value, review: &Review<'_>, code: u16, message: &str, causes: &[Value]) {
    let reason = match code {
        413 => "RequestEntityTooLarge",
        _ => "Invalid",
    };
    response["allowed"] = false.into();
    response["status"] = json!({
        "code": code,
        "reason": reason,
        "message": message,
        "details": {
            "name": review.display_name(),
            "group": review.kind.group,
            "kind": review.kind.kind,
            "causes": causes,
        },
    });
}

fn patch(response: &mut Value, patch: &Patch) -> serde_json::Result<()> {
    response["patch"] = STANDARD.encode(serde_json::to_vec(patch)?).into();
    response["patchType"] = "JSONPatch".into();
    Ok(())
}

fn warn(response: &mut Value, warnings: Vec<String>) {
    if !warnings.is_empty() {
        response["warnings"] = warnings.into();
    }
}
