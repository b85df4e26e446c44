//! The API server's clock, as the header `Date` of its answers shows it.

use std::sync::Arc;

use hyper::HeaderMap;
use hyper::header::DATE;
use k8s_openapi::jiff::Timestamp;
use k8s_openapi::jiff::fmt::rfc2822;
use parking_lot::Mutex;

use rayfit_core::reconcile::observed::clock_skew::ClockSkew;

/// A difference of so many seconds is logged, once it changes by as much.
const LOGGED_S: f64 = 10.0;

/// The clock of the API server, as far as it is known. All clones know the same.
#[derive(Debug, Clone, Default)]
pub struct ServerTime {
    /// The skew, and the one that was logged last, in seconds.
    skew: Arc<Mutex<(ClockSkew, f64)>>,
}

impl ServerTime {
    /// The time by the API server's clock, as far as it is known, in seconds since 1970.
    pub fn now(&self) -> f64 {
        let skew = self.skew.lock();
        own_now() - skew.0.ahead_s()
    }

    /// Takes in the headers of an answer to a request that was sent at `asked`, by the own clock.
    pub(super) fn hear(&self, headers: &HeaderMap, sent_at: f64) {
        let Some(date) = date(headers) else {
            return;
        };
        let mut guard = self.skew.lock();
        let (skew, logged_s) = &mut *guard;
        skew.note_answer(date, sent_at, own_now());
        let ahead_s = skew.ahead_s();
        if (ahead_s - *logged_s).abs() >= LOGGED_S {
            *logged_s = ahead_s;
            tracing::warn!(
                ahead_s,
                "this machine's clock differs from the API server's, whose time is used"
            );
        }
    }
}

/// The own clock, in seconds since 1970.
pub(crate) fn own_now() -> f64 {
    own_timestamp().as_duration().as_secs_f64()
}

/// The own clock.
pub(crate) fn own_timestamp() -> Timestamp {
    #[expect(clippy::disallowed_methods, reason = "the shell's clock")]
    Timestamp::now()
}

/// The header `Date`, in seconds since 1970.
fn date(headers: &HeaderMap) -> Option<f64> {
    let text = headers.get(DATE)?.to_str().ok()?;
    // HTTP's form of dates (RFC 9110, 5.6.7) is one of those of RFC 2822.
    let parser = rfc2822::DateTimeParser::new();
    let date = parser.parse_timestamp(text).ok()?;
    #[expect(clippy::cast_precision_loss, reason = "seconds since 1970 are exact")]
    let seconds = date.as_second() as f64;
    Some(seconds)
}

#[cfg(test)]
mod tests {
    use hyper::{Request, Response};
    use kube::client::{Body, ClientBuilder};

    use super::*;
    use crate::apiserver::ApiServer;

    fn headers(date: &str) -> HeaderMap {
        HeaderMap::from_iter([(DATE, date.parse().unwrap())])
    }

    #[test]
    fn the_date_of_an_answer_is_read_and_what_is_none_is_not() {
        assert_eq!(
            date(&headers("Wed, 14 Jan 2026 12:00:00 GMT")),
            Some(1_768_392_000.0)
        );
        for text in [
            "",
            "yesterday",
            "14.01.2026",
            "Wed, 99 Jan 2026 12:00:00 GMT",
        ] {
            assert_eq!(date(&headers(text)), None, "{text}");
        }
        assert_eq!(date(&HeaderMap::new()), None);
    }

    /// With the client that everything uses: its own clock is months ahead of this API server's.
    #[tokio::test]
    async fn the_time_is_the_servers_where_the_clocks_differ() {
        let answer = |_: Request<Body>| async {
            let answer = Response::builder().header(DATE, "Wed, 14 Jan 2026 12:00:00 GMT");
            answer.body(Body::from(b"{}".to_vec()))
        };
        let api = ApiServer::of_builder(ClientBuilder::new(tower::service_fn(answer), "rayfit"));
        let time = &api.time;
        assert!((time.now() - own_now()).abs() < 1.0);
        let request = Request::get("/version").body(Vec::new()).unwrap();
        api.client.request_text(request).await.unwrap();
        let now = time.now();
        assert!((1_768_391_990.0..1_768_392_010.0).contains(&now), "{now}");
    }
}
