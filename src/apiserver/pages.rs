//! Lists and watches as the API server sends them, read object by object: one that cannot be read
//! costs nobody else anything, and nothing of it but its name is ever repeated.

use std::borrow::Cow;
use std::time::Duration;

use http_body_util::BodyExt as _;
use hyper::body::Bytes;
use hyper::{Response, StatusCode};
use kube::client::Body;
use kube::core::Status;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use super::patience::retry_after;
use crate::apiserver::error_chain;

/// The largest answer that is read at once: a page of it is made smaller then, down to one object.
const LARGEST_PAGE: usize = 16 << 20;

/// The largest event, and the largest page of one object. etcd takes no object above 1.5 MiB by
/// default, and the API server none above 3 MiB.
const LARGEST_OBJECT: usize = 8 << 20;

/// The most bytes of an error that are read.
const LARGEST_STATUS: usize = 64 << 10;

/// Why nothing can be had from the API server now.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PageFault {
    /// It refused.
    #[error("HTTP {code}: {message}")]
    Refused {
        /// The HTTP status.
        code: u16,
        /// What it said.
        message: String,
        /// When to come again, if it said so.
        retry_after: Option<Duration>,
    },
    /// What is known is too old for it to tell what has changed since.
    #[error("the API server no longer knows what changed since the last list")]
    Expired,
    /// No answer.
    #[error("no answer: {0}")]
    NoAnswer(String),
    /// None in time.
    #[error("no answer within {} s", .0.as_secs())]
    TooSlow(Duration),
    /// A watch that says nothing.
    #[error("nothing was heard for {} s, not even a bookmark", .0.as_secs())]
    Silent(Duration),
    /// A watch that ends as soon as it begins.
    #[error("the watch ended as soon as it began")]
    Cut,
    /// An answer above what is read at once.
    #[error("an answer of more than {} MiB", .0 >> 20)]
    TooLarge(usize),
    /// Not what an API server sends.
    #[error("the answer is no {0}")]
    Malformed(&'static str),
    /// The request cannot be made.
    #[error("the request cannot be built: {0}")]
    Unsendable(String),
}

impl PageFault {
    /// When to come again, if the API server said so.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Refused { retry_after, .. } => *retry_after,
            _ => None,
        }
    }

    /// The resource does not exist: it is not installed.
    pub fn is_not_found(&self) -> bool {
        matches!(self, Self::Refused { code: 404, .. })
    }
}

/// Name, namespace and version of an object.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Head {
    /// Its namespace, if it has one.
    pub namespace: Option<String>,
    /// Its name.
    pub name: String,
    /// Its resource version.
    pub version: Option<String>,
}

/// An object that was read, or whose name at most could be.
pub type Read<K> = (Head, Result<K, serde_json::Error>);

/// A page of a list.
#[derive(Debug)]
pub struct Page<K> {
    /// Its objects.
    pub objects: Vec<Read<K>>,
    /// Where the next page goes on, if there is one.
    pub next: Option<String>,
    /// The version of the list.
    pub version: Option<String>,
}

/// A line of a watch.
#[derive(Debug)]
pub enum LineReader<K> {
    /// An object is new or has changed.
    Applied(Read<K>),
    /// An object is gone.
    Deleted(Head),
    /// Nothing has changed up to this version.
    Bookmark(Option<String>),
    /// The API server gives up.
    Failed(PageFault),
    /// Something else, which is passed over.
    Other,
}

#[derive(Deserialize)]
struct RawList<'a> {
    #[serde(default)]
    metadata: RawListMeta,
    #[serde(borrow, default)]
    items: Option<Vec<&'a RawValue>>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct RawListMeta {
    resource_version: Option<String>,
    #[serde(rename = "continue")]
    next: Option<String>,
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
}

/// Reads a page of a list.
pub fn page<K: DeserializeOwned>(body: &[u8]) -> Result<Page<K>, PageFault> {
    let list: RawList<'_> =
        serde_json::from_slice(body).map_err(|_| PageFault::Malformed("list"))?;
    let some = |text: Option<String>| text.filter(|text| !text.is_empty());
    Ok(Page {
        objects: list.items.into_iter().flatten().map(read).collect(),
        next: some(list.metadata.next),
        version: some(list.metadata.resource_version),
    })
}

/// Reads a line of a watch.
pub fn line<K: DeserializeOwned>(text: &[u8]) -> LineReader<K> {
    let Ok(event) = serde_json::from_slice::<RawEvent<'_>>(text) else {
        return LineReader::Failed(PageFault::Malformed("event of a watch"));
    };
    match &*event.kind {
        "ADDED" | "MODIFIED" => LineReader::Applied(read(event.object)),
        "DELETED" => LineReader::Deleted(head(event.object)),
        "BOOKMARK" => LineReader::Bookmark(head(event.object).version),
        "ERROR" => LineReader::Failed(status(event.object.get().as_bytes(), 500, None)),
        _ => LineReader::Other,
    }
}

fn read<K: DeserializeOwned>(object: &RawValue) -> Read<K> {
    (head(object), serde_json::from_str(object.get()))
}

fn head(object: &RawValue) -> Head {
    let RawHead { metadata } = serde_json::from_str(object.get()).unwrap_or_default();
    Head {
        namespace: metadata.namespace,
        name: metadata.name.unwrap_or_default(),
        version: metadata.resource_version.filter(|text| !text.is_empty()),
    }
}

fn status(body: &[u8], code: u16, asked: Option<Duration>) -> PageFault {
    let Ok(status) = serde_json::from_slice::<Status>(body) else {
        return PageFault::Refused {
            code,
            message: "the answer is no Status".to_owned(),
            retry_after: asked,
        };
    };
    let code = if status.code == 0 { code } else { status.code };
    if code == 410 {
        return PageFault::Expired;
    }
    let seconds = status
        .details
        .map_or(0, |details| details.retry_after_seconds);
    let said = (seconds > 0).then(|| Duration::from_secs(u64::from(seconds)));
    PageFault::Refused {
        code,
        message: if status.message.is_empty() {
            status.reason
        } else {
            status.message
        },
        retry_after: asked.or(said),
    }
}

/// An error of the client.
pub fn no_answer(error: &kube::Error) -> PageFault {
    PageFault::NoAnswer(error_chain::text(error))
}

/// The answer, or why the API server refused.
pub async fn accepted(answer: Response<Body>) -> Result<Body, PageFault> {
    let code = answer.status();
    if code.is_success() || code == StatusCode::SWITCHING_PROTOCOLS {
        return Ok(answer.into_body());
    }
    let asked = retry_after(answer.headers());
    let body = whole(answer.into_body(), LARGEST_STATUS).await;
    Err(status(&body.unwrap_or_default(), code.as_u16(), asked))
}

/// The whole body of a page of so many objects.
pub async fn body_of(body: Body, objects: u32) -> Result<Bytes, PageFault> {
    let largest = if objects > 1 {
        LARGEST_PAGE
    } else {
        LARGEST_OBJECT
    };
    whole(body, largest).await
}

async fn whole(body: Body, largest: usize) -> Result<Bytes, PageFault> {
    let limited = http_body_util::Limited::new(body, largest);
    match limited.collect().await {
        Ok(body) => Ok(body.to_bytes()),
        Err(error) if error.is::<http_body_util::LengthLimitError>() => {
            Err(PageFault::TooLarge(largest))
        }
        Err(error) => Err(PageFault::NoAnswer(error_chain::text(&*error))),
    }
}

/// The lines of a watch, as they come.
#[derive(Debug)]
pub struct Lines {
    body: Body,
    buffer: Vec<u8>,
    /// So much of the buffer has been searched for the end of a line.
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

    /// The next line; `None` at the end. What is cut off in the middle of a line was none.
    pub async fn next(&mut self) -> Option<Result<Vec<u8>, PageFault>> {
        loop {
            let rest = self.buffer.get(self.searched..).unwrap_or_default();
            if let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
                let after = self.buffer.split_off(self.searched + end + 1);
                self.searched = 0;
                return Some(Ok(std::mem::replace(&mut self.buffer, after)));
            }
            self.searched = self.buffer.len();
            if self.searched > LARGEST_OBJECT {
                return Some(Err(PageFault::TooLarge(LARGEST_OBJECT)));
            }
            match self.body.frame().await? {
                Ok(frame) => {
                    if let Some(data) = frame.data_ref() {
                        self.buffer.extend_from_slice(data);
                    }
                }
                Err(error) => return Some(Err(PageFault::NoAnswer(error_chain::text(&error)))),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[derive(Debug, Deserialize)]
    struct WithSpec {
        spec: u32,
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
        let page = page::<WithSpec>(list.to_string().as_bytes()).unwrap();
        assert_eq!(
            (page.next.as_deref(), page.version.as_deref()),
            (Some("c"), Some("7"))
        );
        let read: Vec<_> = page
            .objects
            .iter()
            .map(|(head, read)| (head.name.as_str(), read.as_ref().ok().map(|read| read.spec)))
            .collect();
        let expected = [
            ("good", Some(1)),
            ("bad", None),
            ("", None),
            ("", None),
            ("neighbour", Some(2)),
        ];
        assert_eq!(read, expected);
    }

    #[test]
    fn lines_of_watches_are_told_apart() {
        let event = |kind: &str| {
            let object = json!({ "metadata": { "name": "a", "resourceVersion": "9" }, "spec": 1 });
            line::<WithSpec>(
                json!({ "type": kind, "object": object })
                    .to_string()
                    .as_bytes(),
            )
        };
        assert!(matches!(
            event("MODIFIED"),
            LineReader::Applied((_, Ok(WithSpec { spec: 1 })))
        ));
        assert!(matches!(event("DELETED"), LineReader::Deleted(head) if head.name == "a"));
        assert!(matches!(event("BOOKMARK"), LineReader::Bookmark(Some(version)) if version == "9"));
        assert!(matches!(event("NEW-IN-2030"), LineReader::Other));
        let gone = json!({ "type": "ERROR", "object": { "kind": "Status", "code": 410 } });
        let gone = line::<WithSpec>(gone.to_string().as_bytes());
        assert!(
            matches!(gone, LineReader::Failed(PageFault::Expired)),
            "{gone:?}"
        );
        let garbage = line::<WithSpec>(b"{\"s3cret\"");
        let LineReader::Failed(fault) = garbage else {
            panic!("{garbage:?}")
        };
        assert!(!fault.to_string().contains("s3cret"));
    }

    #[tokio::test]
    async fn what_is_cut_off_in_the_middle_of_a_line_was_none() {
        let mut lines = Lines::new(Body::from(b"one\ntwo\nthr".to_vec()));
        assert_eq!(lines.next().await.unwrap().unwrap(), b"one\n");
        assert_eq!(lines.next().await.unwrap().unwrap(), b"two\n");
        assert!(lines.next().await.is_none());
    }
}
