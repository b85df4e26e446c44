//! The envelope of a review. Objects stay raw text in it, because parsing them into a tree costs
//! six times as much as everything else, and many requests need no tree.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::error::Category;
use serde_json::value::RawValue;

/// One of the two webhooks, by its name in logs and metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, strum::IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
pub enum Webhook {
    /// Fills in defaults; never denies.
    Mutate,
    /// Checks; never changes anything.
    Validate,
}

/// The request of a review.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Review<'a> {
    /// The request's identity, echoed in the answer.
    #[serde(borrow)]
    pub uid: Cow<'a, str>,
    /// The kind as which the object is sent (after conversion, if it was asked for as another).
    #[serde(borrow)]
    pub kind: GroupKind<'a>,
    /// `status`, `scale` and the like; empty for the object itself.
    #[serde(borrow)]
    pub sub_resource: Cow<'a, str>,
    /// The object's name; empty on a create with `generateName`.
    #[serde(borrow)]
    pub name: Cow<'a, str>,
    /// The object's namespace.
    #[serde(borrow)]
    pub namespace: Cow<'a, str>,
    /// CREATE, UPDATE, DELETE or CONNECT.
    #[serde(borrow)]
    pub operation: Cow<'a, str>,
    /// The user who sends the request.
    #[serde(borrow)]
    pub user_info: UserInfo<'a>,
    /// The object as it would be stored.
    #[serde(borrow)]
    pub object: Option<&'a RawValue>,
    /// The object as it is stored now.
    #[serde(borrow)]
    pub old_object: Option<&'a RawValue>,
    /// Nothing will be stored.
    pub dry_run: Option<bool>,
}

/// A kind of object.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct GroupKind<'a> {
    /// The API group.
    #[serde(borrow)]
    pub group: Cow<'a, str>,
    /// The kind.
    #[serde(borrow)]
    pub kind: Cow<'a, str>,
}

/// The user who sends a request.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct UserInfo<'a> {
    /// The user's name.
    #[serde(borrow)]
    pub username: Cow<'a, str>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Envelope<'a> {
    #[serde(borrow)]
    api_version: Cow<'a, str>,
    #[serde(borrow)]
    kind: Cow<'a, str>,
    #[serde(borrow)]
    request: Option<Review<'a>>,
}

/// The parts of an object that are read without a tree.
#[derive(Deserialize, Default)]
#[serde(default)]
pub(super) struct ObjectParts<'a> {
    #[serde(borrow)]
    pub(super) metadata: MetadataParts<'a>,
    #[serde(borrow)]
    pub(super) spec: Option<&'a RawValue>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct MetadataParts<'a> {
    #[serde(borrow)]
    pub(super) name: Cow<'a, str>,
    #[serde(borrow)]
    pub(super) generate_name: Cow<'a, str>,
    #[serde(borrow)]
    pub(super) labels: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) annotations: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) deletion_timestamp: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) finalizers: Option<Vec<&'a RawValue>>,
}

/// The reason for which a review has no decision. The messages quote nothing of the body, because they are
/// logged, and pod templates can contain secrets.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReviewError {
    /// Not JSON, or not of the form of a review.
    #[error("the body is not an AdmissionReview in JSON: {0}")]
    Json(String),
    /// Another API than the one that webhooks are registered with.
    #[error(
        "the body is not an AdmissionReview of admission.k8s.io/v1: list \"v1\" in the webhook's \
         admissionReviewVersions"
    )]
    NotV1,
    /// The body contains no request.
    #[error("the AdmissionReview has no request: this endpoint answers requests of an API server")]
    NoRequest,
    /// An answer without the request's uid would be discarded.
    #[error("the AdmissionReview's request has no uid: API servers send one and want it back")]
    NoUid,
    /// A create or update without an object.
    #[error("the AdmissionReview's request has no {0}, which {1} needs")]
    NoObject(&'static str, &'static str),
    /// An object that cannot be read into a tree.
    #[error("the AdmissionReview's {0} cannot be read: {1}")]
    Object(&'static str, String),
    /// An object with so many values that its tree would use up the memory.
    #[error(
        "the AdmissionReview's {0} has too many values: checking it would take more memory than \
         Rayfit has for one review"
    )]
    TooMuch(&'static str),
    /// An object that is a list or a scalar.
    #[error("the AdmissionReview's {0} is not a JSON object")]
    NotAnObject(&'static str),
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
    /// The answer is not JSON.
    #[error("the answer could not be written as JSON: {0}; please report this as a bug of Rayfit")]
    Render(String),
    /// A bug in Rayfit.
    #[error("rayfit failed on this object; its log says where. Please report this as a bug")]
    Panic,
}

#[expect(clippy::cast_precision_loss, reason = "for people, with one digit")]
fn mebibytes(bytes: usize) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}

/// The error in a JSON text, without quoting the text.
pub(super) fn json_fault(error: &serde_json::Error) -> String {
    let fault = match error.classify() {
        Category::Eof => "it ends too early",
        Category::Data => "a field has the wrong type, or occurs twice",
        Category::Syntax | Category::Io => "its syntax is wrong, or it nests too deeply",
    };
    format!("{fault} at line {} column {}", error.line(), error.column())
}

impl<'a> Review<'a> {
    /// Parses a body. The result borrows from it.
    pub fn parse(body: &'a [u8]) -> Result<Self, ReviewError> {
        let envelope: Envelope<'a> =
            serde_json::from_slice(body).map_err(|error| ReviewError::Json(json_fault(&error)))?;
        if envelope.api_version != "admission.k8s.io/v1" || envelope.kind != "AdmissionReview" {
            return Err(ReviewError::NotV1);
        }
        let review = envelope.request.ok_or(ReviewError::NoRequest)?;
        if review.uid.is_empty() {
            return Err(ReviewError::NoUid);
        }
        Ok(review)
    }

    /// The object and, for an update, the stored one; both raw.
    pub fn objects(&self) -> Result<(&'a RawValue, Option<&'a RawValue>), ReviewError> {
        let is_update = self.operation == "UPDATE";
        let needs = if is_update { "an update" } else { "a create" };
        let object = self.object.ok_or(ReviewError::NoObject("object", needs))?;
        match self.old_object {
            None if is_update => Err(ReviewError::NoObject("oldObject", needs)),
            old => Ok((object, old.filter(|_| is_update))),
        }
    }

    /// The object's name; on a create with `generateName` there is none yet, so its prefix.
    pub fn display_name(&self) -> Cow<'_, str> {
        if !self.name.is_empty() {
            return Cow::Borrowed(&self.name);
        }
        let parts = self
            .object
            .and_then(|object| serde_json::from_str::<ObjectParts<'_>>(object.get()).ok());
        let metadata = parts.unwrap_or_default().metadata;
        match (metadata.name, metadata.generate_name) {
            (name, _) if !name.is_empty() => name,
            (_, prefix) if !prefix.is_empty() => Cow::Owned(prefix.into_owned() + "*"),
            _ => Cow::Borrowed(""),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_quote_nothing_of_the_body() {
        let body = br#"{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview",
            "request":{"uid":"1","operation":{"secret":"hunter2"}}}"#;
        let error = Review::parse(body).unwrap_err().to_string();
        assert!(
            error.contains("wrong type, or occurs twice at line 2"),
            "{error}"
        );
        assert!(!error.contains("hunter2") && !error.contains("secret"));
    }

    #[test]
    fn escapes_in_names_are_read() {
        let body = br#"{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview",
            "request":{"uid":"\u0031","object":null,"dryRun":true}}"#;
        let review = Review::parse(body).unwrap();
        assert_eq!(review.uid, "1");
        assert!(review.object.is_none() && review.dry_run == Some(true));
    }
}
