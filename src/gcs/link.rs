//! The connection of a client, and when it may try to connect again.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;
use tonic::transport::{Channel, Endpoint as Transport};

use super::Endpoint;
use super::connect::Connector;

/// The longest wait between two attempts.
const LONGEST_PAUSE: Duration = Duration::from_secs(15);

/// A channel, and how often in a row it failed.
pub(super) struct Link {
    endpoint: Arc<Endpoint>,
    channel: Option<Channel>,
    /// Numbers the channels, because the result of a call on an earlier one says nothing about this
    /// one.
    generation: u64,
    failures: u32,
    not_before: Option<Instant>,
}

impl Link {
    pub(super) fn new(endpoint: Arc<Endpoint>) -> Self {
        Self {
            endpoint,
            channel: None,
            generation: 0,
            failures: 0,
            not_before: None,
        }
    }

    /// The channel to use now and its generation, or how long to wait after failures.
    pub(super) fn channel(&mut self, now: Instant) -> Result<(Channel, u64), Duration> {
        let wait = self
            .not_before
            .map(|then| then.saturating_duration_since(now));
        if let Some(wait) = wait.filter(|wait| !wait.is_zero()) {
            return Err(wait);
        }
        let endpoint = &self.endpoint;
        let channel = self.channel.get_or_insert_with(|| open(endpoint)).clone();
        Ok((channel, self.generation))
    }

    /// The GCS answered, even if with an error.
    pub(super) fn answered(&mut self, generation: u64) {
        if generation == self.generation {
            self.failures = 0;
            self.not_before = None;
        }
    }

    /// There was no answer. The channel is dropped.
    pub(super) fn failed(&mut self, generation: u64, now: Instant) {
        if generation != self.generation {
            return;
        }
        // Its connection may be dead without having been closed. Pings would detect that too, but
        // gRPC servers disconnect clients that ping them.
        self.channel = None;
        self.generation += 1;
        self.not_before = Some(now + wait(self.failures));
        self.failures = self.failures.saturating_add(1);
    }
}

/// The pause after one more failure than `earlier`.
fn wait(earlier: u32) -> Duration {
    match earlier {
        // The first failure may be a connection that a restart of the GCS has cut.
        0 => Duration::ZERO,
        more => Duration::from_secs(1 << (more - 1).min(5)).min(LONGEST_PAUSE),
    }
}

/// A channel that connects when it is first used, and again when the connection was closed.
fn open(endpoint: &Arc<Endpoint>) -> Channel {
    // The connector decides where to connect; the address here only sets `:authority`.
    Transport::from_static("http://gcs")
        .buffer_size(8)
        .connect_with_connector_lazy(Connector(Arc::clone(endpoint)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gcs::Address;

    fn link() -> Link {
        Link::new(Arc::new(Endpoint::plain(Address::new("127.0.0.1", 1))))
    }

    #[tokio::test(start_paused = true)]
    async fn attempts_become_rarer_and_an_answer_ends_that() {
        let (mut link, mut now) = (link(), Instant::now());
        let mut waits = Vec::new();
        for _ in 0..7 {
            let (_, generation) = link.channel(now).unwrap();
            link.failed(generation, now);
            let wait = link.channel(now).err().unwrap_or_default();
            waits.push(wait.as_secs());
            now += wait;
        }
        assert_eq!(waits, [0, 1, 2, 4, 8, 15, 15]);
        let (_, generation) = link.channel(now).unwrap();
        link.answered(generation);
        link.failed(generation, now);
        assert!(link.channel(now).is_ok(), "the count begins anew");
    }

    #[tokio::test(start_paused = true)]
    async fn calls_that_fail_together_count_once() {
        let (mut link, now) = (link(), Instant::now());
        let calls: Vec<u64> = (0..3).map(|_| link.channel(now).unwrap().1).collect();
        for generation in calls {
            link.failed(generation, now);
        }
        assert!(link.channel(now).is_ok());
    }
}
