//! The envelope of a review. Objects stay raw text in it, because parsing them into a tree costs
//! six times as much as everything else, and many requests need no tree.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde_json::value::RawValue;

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

#[derive(Deserialize, Default)]
#[serde(default)]
struct Named {
    metadata: NamedMetadata,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct NamedMetadata {
    name: String,
    generate_name: String,
}

/// The error of a body that is no review. The messages quote nothing of the body, because they are
/// logged, and pod templates can contain secrets.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReviewError {
    /// Not JSON, or not of the form of a review.
    #[error("the body is not an AdmissionReview in JSON: {0}")]
    Json(JsonFault),
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
    Object(&'static str, JsonFault),
    /// An object with so many values that its tree would use up the memory.
    #[error(
        "the AdmissionReview's {0} has too many values: checking it would take more memory than \
         Rayfit has for one review"
    )]
    TooMuch(&'static str),
    /// An object that is a list or a scalar.
    #[error("the AdmissionReview's {0} is not a JSON object")]
    NotAnObject(&'static str),
}

/// The error in a JSON text, without quoting the text.
#[derive(Debug, PartialEq, Eq)]
pub struct JsonFault {
    what: &'static str,
    line: usize,
    column: usize,
}

impl fmt::Display for JsonFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} at line {} column {}",
            self.what, self.line, self.column
        )
    }
}

impl From<serde_json::Error> for JsonFault {
    fn from(error: serde_json::Error) -> Self {
        use serde_json::error::Category;
        let what = match error.classify() {
            Category::Eof => "it ends too early",
            Category::Data => "a field has the wrong type, or occurs twice",
            Category::Syntax | Category::Io => "its syntax is wrong, or it nests too deeply",
        };
        Self {
            what,
            line: error.line(),
            column: error.column(),
        }
    }
}

impl<'a> Review<'a> {
    /// Parses a body. The result borrows from it.
    pub fn parse(body: &'a [u8]) -> Result<Self, ReviewError> {
        let envelope: Envelope<'a> =
            serde_json::from_slice(body).map_err(|error| ReviewError::Json(error.into()))?;
        if envelope.api_version != "admission.k8s.io/v1" || envelope.kind != "AdmissionReview" {
            return Err(ReviewError::NotV1);
        }
        let review = envelope.request.ok_or(ReviewError::NoRequest)?;
        if review.uid.is_empty() {
            return Err(ReviewError::NoUid);
        }
        Ok(review)
    }

    /// A dry run: nothing will be stored, so it must not be counted as if it were.
    pub fn is_dry_run(&self) -> bool {
        self.dry_run == Some(true)
    }

    /// The object's name; on a create with `generateName` there is none yet, so its prefix.
    pub fn display_name(&self) -> Cow<'_, str> {
        if !self.name.is_empty() {
            return Cow::Borrowed(&self.name);
        }
        let named = self
            .object
            .and_then(|object| serde_json::from_str::<Named>(object.get()).ok());
        let metadata = named.unwrap_or_default().metadata;
        match (metadata.name, metadata.generate_name) {
            (name, _) if !name.is_empty() => Cow::Owned(name),
            (_, prefix) if !prefix.is_empty() => Cow::Owned(prefix + "*"),
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
        assert!(review.object.is_none() && review.is_dry_run());
    }
}
