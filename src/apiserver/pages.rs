//! Lists and watches as the API server sends them, read object by object: an object that cannot be
//! read does not affect the others, and only its name is ever logged.

use std::borrow::Cow;
use std::time::Duration;

use http_body_util::BodyExt as _;
use hyper::StatusCode;
use hyper::body::Bytes;
use kube::Client;
use kube::client::Body;
use kube::core::{Status, request};
use rayfit_core::flow_control::Flow;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::patience::{RequestFlow, retry_after};
use crate::apiserver::error_chain;

/// The largest page of a list.
// A larger answer is requested again in smaller pages, down to one object.
const LARGEST_PAGE: usize = 16 << 20;

/// The largest event, and the largest page of a single object.
// By default etcd takes no object above 1.5 MiB, and the API server none above 3 MiB.
const LARGEST_OBJECT: usize = 8 << 20;

/// The most bytes of an error's body that are read.
const LARGEST_STATUS: usize = 64 << 10;

/// The reason why a request to the API server gave no usable answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PageFault {
    /// The API server refused the request.
    #[error("HTTP {code}: {message}")]
    Refused {
        /// The HTTP status.
        code: u16,
        /// The message of the refusal.
        message: String,
        /// The pause before the next try, if the API server named one.
        retry_after: Option<Duration>,
    },
    /// The known version is too old for the API server to tell what has changed since.
    #[error("the API server no longer knows what changed since the last list")]
    Expired,
    /// There was no answer.
    #[error("no answer: {0}")]
    NoAnswer(String),
    /// There was no answer in time.
    #[error("no answer within {} s", .0.as_secs())]
    TooSlow(Duration),
    /// A watch ended as soon as it began.
    #[error("the watch ended as soon as it began")]
    Cut,
    /// The answer is larger than what may be read.
    #[error("an answer of more than {} MiB", .0 >> 20)]
    TooLarge(usize),
    /// The answer is not what an API server sends.
    #[error("the answer is not a {0}")]
    Malformed(&'static str),
    /// The request cannot be built.
    #[error("the request cannot be built: {0}")]
    Unsendable(String),
}

impl PageFault {
    /// The pause before the next try, if the API server named one.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Refused { retry_after, .. } => *retry_after,
            _ => None,
        }
    }

    /// Returns whether the resource does not exist, because it is not installed.
    pub fn is_not_found(&self) -> bool {
        matches!(self, Self::Refused { code: 404, .. })
    }
}

/// The name of an object.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectName {
    /// Its namespace, if it has one.
    pub namespace: Option<String>,
    /// Its name.
    pub name: String,
}

/// An object as it was sent, with its name and version as far as they can be read.
#[derive(Debug)]
pub struct SentObject<'a> {
    /// The name.
    pub name: ObjectName,
    /// The resource version.
    pub version: Option<String>,
    /// The object itself.
    pub object: &'a RawValue,
}

/// A page of a list.
#[derive(Debug)]
pub struct ListPage<'a> {
    /// Its objects.
    pub objects: Vec<SentObject<'a>>,
    /// The token with which the next page is requested, if there is one.
    pub next: Option<String>,
    /// The version of the list.
    pub version: Option<String>,
}

/// A line of a watch.
#[derive(Debug)]
pub enum WatchLine<'a> {
    /// An object is new or has changed.
    Applied(SentObject<'a>),
    /// An object is gone.
    Deleted(SentObject<'a>),
    /// Nothing has changed up to this version.
    Bookmark(Option<String>),
    /// The API server ended the watch with an error.
    Failed(PageFault),
    /// A line of another type, which is skipped.
    Other,
}

#[derive(Deserialize)]
struct RawList<'a> {
    #[serde(default)]
    metadata: RawMeta,
    // Go writes a list that was never filled as null.
    #[serde(borrow, default)]
    items: Option<Vec<&'a RawValue>>,
}

#[derive(Deserialize)]
struct RawEvent<'a> {
    #[serde(rename = "type", borrow)]
    kind: Cow<'a, str>,
    #[serde(borrow)]
    object: &'a RawValue,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct RawHead {
    metadata: RawMeta,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct RawMeta {
    namespace: Option<String>,
    name: Option<String>,
    resource_version: Option<String>,
    /// The token of the next page, of lists only.
    #[serde(rename = "continue")]
    next: Option<String>,
}

/// Reads a page of a list.
pub fn page(body: &[u8]) -> Result<ListPage<'_>, PageFault> {
    let list: RawList<'_> =
        serde_json::from_slice(body).map_err(|_| PageFault::Malformed("list"))?;
    let some = |text: Option<String>| text.filter(|text| !text.is_empty());
    Ok(ListPage {
        // Go writes a list that was never filled as null.
        objects: list.items.into_iter().flatten().map(sent).collect(),
        next: some(list.metadata.next),
        version: some(list.metadata.resource_version),
    })
}

/// Reads a line of a watch.
pub fn line(text: &[u8]) -> WatchLine<'_> {
    let Ok(event) = serde_json::from_slice::<RawEvent<'_>>(text) else {
        return WatchLine::Failed(PageFault::Malformed("event of a watch"));
    };
    match &*event.kind {
        "ADDED" | "MODIFIED" => WatchLine::Applied(sent(event.object)),
        "DELETED" => WatchLine::Deleted(sent(event.object)),
        "BOOKMARK" => WatchLine::Bookmark(sent(event.object).version),
        // The HTTP status was 200, so that of the object counts. Without one it is taken for the
        // server's trouble, after which the watch goes on without a new list.
        "ERROR" => WatchLine::Failed(status(event.object.get().as_bytes(), 500, None)),
        _ => WatchLine::Other,
    }
}

fn sent(object: &RawValue) -> SentObject<'_> {
    let RawHead { metadata } = serde_json::from_str(object.get()).unwrap_or_default();
    SentObject {
        name: ObjectName {
            namespace: metadata.namespace,
            name: metadata.name.unwrap_or_default(),
        },
        version: metadata.resource_version.filter(|text| !text.is_empty()),
        object,
    }
}

fn status(body: &[u8], code: u16, header_wait: Option<Duration>) -> PageFault {
    let Ok(status) = serde_json::from_slice::<Status>(body) else {
        return PageFault::Refused {
            code,
            message: "the answer is not a Status".to_owned(),
            retry_after: header_wait,
        };
    };
    let code = if status.code == 0 { code } else { status.code };
    if code == 410 {
        return PageFault::Expired;
    }
    let seconds = status
        .details
        .map_or(0, |details| details.retry_after_seconds);
    let body_wait = (seconds > 0).then(|| Duration::from_secs(u64::from(seconds)));
    PageFault::Refused {
        code,
        message: if status.message.is_empty() {
            status.reason
        } else {
            status.message
        },
        retry_after: header_wait.or(body_wait),
    }
}

/// A request, unless it could not be built.
pub type Built = Result<hyper::http::Request<Vec<u8>>, request::Error>;

/// Sends a request, which belongs to a flow if it is about a cluster. Returns the body of a successful answer.
pub async fn ask(client: &Client, request: Built, flow: Option<Flow>) -> Result<Body, PageFault> {
    let request = request.map_err(|error| PageFault::Unsendable(error.to_string()))?;
    let mut request = request.map(Body::from);
    if let Some(flow) = flow {
        request.extensions_mut().insert(RequestFlow(flow));
    }
    let answer = client.send(request).await;
    let answer = answer.map_err(|error| PageFault::NoAnswer(error_chain::text(&error)))?;
    let code = answer.status();
    if code.is_success() || code == StatusCode::SWITCHING_PROTOCOLS {
        return Ok(answer.into_body());
    }
    let header_wait = retry_after(answer.headers());
    let body = whole(answer.into_body(), LARGEST_STATUS).await;
    Err(status(
        &body.unwrap_or_default(),
        code.as_u16(),
        header_wait,
    ))
}

/// Reads the body of a page that may have up to `objects` objects.
pub async fn body_of(body: Body, objects: u32) -> Result<Bytes, PageFault> {
    let largest = if objects > 1 {
        LARGEST_PAGE
    } else {
        LARGEST_OBJECT
    };
    whole(body, largest).await
}

/// Reads a body of up to `largest` bytes.
pub async fn whole(body: Body, largest: usize) -> Result<Bytes, PageFault> {
    let limited = http_body_util::Limited::new(body, largest);
    match limited.collect().await {
        Ok(body) => Ok(body.to_bytes()),
        Err(error) if error.is::<http_body_util::LengthLimitError>() => {
            Err(PageFault::TooLarge(largest))
        }
        Err(error) => Err(PageFault::NoAnswer(error_chain::text(&*error))),
    }
}

/// The lines of a watch, as they arrive.
#[derive(Debug)]
pub struct Lines {
    body: Body,
    buffer: Vec<u8>,
    /// The bytes of the buffer that have been searched for the end of a line.
    searched: usize,
}

impl Lines {
    /// The lines of a body.
    pub fn new(body: Body) -> Self {
        Self {
            body,
            buffer: Vec::new(),
            searched: 0,
        }
    }

    /// The next line; `None` at the end, where the connection breaks, and where a line is too long for an object.
    /// A line that is cut off is dropped.
    pub async fn next(&mut self) -> Option<Vec<u8>> {
        loop {
            let rest = self.buffer.get(self.searched..).unwrap_or_default();
            if let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
                let tail = self.buffer.split_off(self.searched + end + 1);
                self.searched = 0;
                return Some(std::mem::replace(&mut self.buffer, tail));
            }
            self.searched = self.buffer.len();
            if self.searched > LARGEST_OBJECT {
                return None;
            }
            let frame = self.body.frame().await?.ok()?;
            if let Some(data) = frame.data_ref() {
                self.buffer.extend_from_slice(data);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn spec(object: &RawValue) -> Value {
        serde_json::from_str::<Value>(object.get()).unwrap()["spec"].clone()
    }

    #[test]
    fn one_object_that_cannot_be_read_costs_no_other_anything() {
        let list = json!({
            "metadata": { "resourceVersion": "7", "continue": "c" },
            "items": [
                { "metadata": { "namespace": "a", "name": "good" }, "spec": 1 },
                { "metadata": { "namespace": "a", "name": "bad" }, "spec": "s3cret" },
                { "metadata": 5 }, null,
                { "metadata": { "namespace": "b", "name": "neighbour" }, "spec": 2 },
            ]
        });
        let list = list.to_string();
        let page = page(list.as_bytes()).unwrap();
        assert_eq!(
            (page.next.as_deref(), page.version.as_deref()),
            (Some("c"), Some("7"))
        );
        let sent = page.objects.iter();
        let sent: Vec<_> = sent
            .map(|sent| (sent.name.name.as_str(), spec(sent.object)))
            .collect();
        let expected = [
            ("good", json!(1)),
            ("bad", json!("s3cret")),
            ("", Value::Null),
            ("", Value::Null),
            ("neighbour", json!(2)),
        ];
        assert_eq!(sent, expected);
    }

    #[test]
    fn lines_of_watches_are_distinguished() {
        let event = |kind: &str| {
            let object = json!({ "metadata": { "name": "a", "resourceVersion": "9" }, "spec": 1 });
            json!({ "type": kind, "object": object }).to_string()
        };
        let modified = event("MODIFIED");
        let WatchLine::Applied(SentObject { object, .. }) = line(modified.as_bytes()) else {
            panic!("{modified}")
        };
        assert_eq!(spec(object), 1);
        let deleted = event("DELETED");
        assert!(
            matches!(line(deleted.as_bytes()), WatchLine::Deleted(sent) if sent.name.name == "a")
        );
        let bookmark = event("BOOKMARK");
        assert!(
            matches!(line(bookmark.as_bytes()), WatchLine::Bookmark(Some(version)) if version == "9")
        );
        assert!(matches!(
            line(event("NEW-IN-2030").as_bytes()),
            WatchLine::Other
        ));
        let gone = json!({ "type": "ERROR", "object": { "kind": "Status", "code": 410 } });
        let gone = gone.to_string();
        let gone = line(gone.as_bytes());
        assert!(
            matches!(gone, WatchLine::Failed(PageFault::Expired)),
            "{gone:?}"
        );
        let garbage = line(b"{\"s3cret\"");
        let WatchLine::Failed(fault) = garbage else {
            panic!("{garbage:?}")
        };
        assert!(!fault.to_string().contains("s3cret"));
    }

    #[tokio::test]
    async fn what_is_cut_off_in_the_middle_of_a_line_was_none() {
        let mut lines = Lines::new(Body::from(b"one\ntwo\nthr".to_vec()));
        assert_eq!(lines.next().await, Some(b"one\n".to_vec()));
        assert_eq!(lines.next().await, Some(b"two\n".to_vec()));
        assert!(lines.next().await.is_none());
    }
}
