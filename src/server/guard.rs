//! Time limits on the bytes of one HTTP/1.1 connection.
//!
//! hyper's own header timeout starts when the connection becomes idle, so a short one would close
//! the connections that API servers keep for 90 s between calls, and a call sent at that moment
//! fails. This guard counts from the first byte of a request's headers. It costs nothing for a
//! request that arrives in one piece, because no timer is set before a read had to wait.

use std::io::{Error, ErrorKind, Result};
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep};

use crate::shares::Share;

/// The progress of a connection in its requests, shared by the guard, which sees bytes, and the
/// service, which sees requests. It tells the connection's share when it waits for the client.
///
/// The number counts state changes; its remainder modulo four is the state. So one atomic operation
/// updates the state and identifies the request.
#[derive(Debug)]
pub struct ExchangeProgress {
    state: AtomicU64,
    /// The share of the connection among all connections.
    pub place: Share,
}

const IDLE: u64 = 0;
const HEAD: u64 = 1;
/// The headers are complete; the body may still be incomplete.
pub const BODY: u64 = 2;
const BUSY: u64 = 3;
const STATES: u64 = 4;

impl ExchangeProgress {
    /// The state of a connection that has sent nothing yet and holds `place`.
    pub fn new(place: Share) -> Self {
        Self {
            state: AtomicU64::new(IDLE),
            place,
        }
    }

    /// The body is complete, if there is one.
    pub fn body_came(&self) {
        self.enter(BUSY);
        self.place.works();
    }

    /// The answer is ready.
    pub fn request_ended(&self) {
        self.enter(STATES);
        self.place.waits();
    }

    /// Enters a state of the current request.
    pub fn enter(&self, state: u64) {
        let now = self.state.load(Ordering::Relaxed);
        self.state
            .store(now - now % STATES + state, Ordering::Relaxed);
    }
}

/// A connection that fails when a request's headers, or the client's reading of an answer, take too
/// long.
#[derive(Debug)]
pub struct GuardedStream<S> {
    stream: S,
    progress: std::sync::Arc<ExchangeProgress>,
    head: Duration,
    write: Duration,
    head_timer: Option<(u64, Pin<Box<Sleep>>)>,
    write_timer: Option<Pin<Box<Sleep>>>,
}

impl<S> GuardedStream<S> {
    /// Guards `stream`; `head` is the time limit of a request's headers, `write` that of each wait
    /// for the client to read.
    pub fn new(
        stream: S,
        progress: std::sync::Arc<ExchangeProgress>,
        head: Duration,
        write: Duration,
    ) -> Self {
        Self {
            stream,
            progress,
            head,
            write,
            head_timer: None,
            write_timer: None,
        }
    }

    /// A read has to wait: fails if the headers of the current request have taken too long.
    fn check_head(&mut self, context: &mut Context<'_>) -> Result<()> {
        let request = self.progress.state.load(Ordering::Relaxed);
        if request % STATES != HEAD {
            self.head_timer = None;
            return Ok(());
        }
        let (counted, timer) = self
            .head_timer
            .get_or_insert_with(|| (request, Box::pin(tokio::time::sleep(self.head))));
        if *counted != request {
            *counted = request;
            timer.as_mut().reset(Instant::now() + self.head);
        }
        fail_if_elapsed(
            timer.as_mut(),
            context,
            "the headers of a request took too long",
        )
    }

    /// The result of a write, or a failure if it has waited too long.
    fn check_write<T>(
        &mut self,
        context: &mut Context<'_>,
        written: Poll<Result<T>>,
    ) -> Poll<Result<T>> {
        if written.is_ready() {
            self.write_timer = None;
            return written;
        }
        let timer = self
            .write_timer
            .get_or_insert_with(|| Box::pin(tokio::time::sleep(self.write)));
        match fail_if_elapsed(
            timer.as_mut(),
            context,
            "the client does not read its answer",
        ) {
            Ok(()) => Poll::Pending,
            Err(error) => Poll::Ready(Err(error)),
        }
    }
}

fn fail_if_elapsed(
    timer: Pin<&mut Sleep>,
    context: &mut Context<'_>,
    why: &'static str,
) -> Result<()> {
    match timer.poll(context) {
        Poll::Ready(()) => Err(Error::new(ErrorKind::TimedOut, why)),
        Poll::Pending => Ok(()),
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for GuardedStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<Result<()>> {
        let length = buffer.filled().len();
        match Pin::new(&mut self.stream).poll_read(context, buffer) {
            Poll::Pending => match self.check_head(context) {
                Ok(()) => Poll::Pending,
                Err(error) => Poll::Ready(Err(error)),
            },
            ready @ Poll::Ready(_) => {
                if buffer.filled().len() > length {
                    // If no request was in progress, one begins. The guard and the service are polled by the
                    // connection's one task, so nothing changes the state between a load and its store.
                    let progress = &self.progress;
                    let now = progress.state.load(Ordering::Relaxed);
                    if now % STATES == IDLE {
                        progress.enter(HEAD);
                        progress.place.waits();
                    }
                }
                ready
            }
        }
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for GuardedStream<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.check_write(context, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[std::io::IoSlice<'_>],
    ) -> Poll<Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, pieces);
        self.check_write(context, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<()>> {
        let flushed = Pin::new(&mut self.stream).poll_flush(context);
        self.check_write(context, flushed)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<()>> {
        let closed = Pin::new(&mut self.stream).poll_shutdown(context);
        self.check_write(context, closed)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;
    use crate::shares::{ConnectionSource, ShareBounds, Shares};

    const HEAD_TIME: Duration = Duration::from_secs(5);
    const WRITE_TIME: Duration = Duration::from_secs(7);

    fn connection() -> (
        tokio::io::DuplexStream,
        GuardedStream<tokio::io::DuplexStream>,
        Arc<ExchangeProgress>,
    ) {
        let (client, server) = tokio::io::duplex(64);
        let shares = Shares::new(ShareBounds {
            all: 1,
            each: 1,
            patience: Duration::ZERO,
        });
        let place = shares.take(ConnectionSource::default(), 1).unwrap();
        let progress = Arc::new(ExchangeProgress::new(place));
        let guarded = GuardedStream::new(server, progress.clone(), HEAD_TIME, WRITE_TIME);
        (client, guarded, progress)
    }

    async fn outcome_of_read(guarded: &mut GuardedStream<tokio::io::DuplexStream>) -> ErrorKind {
        let mut buffer = [0; 64];
        loop {
            match guarded.read(&mut buffer).await {
                Ok(0) => return ErrorKind::UnexpectedEof,
                Ok(_) => {}
                Err(error) => return error.kind(),
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_dripping_head_is_cut_off_counted_from_its_first_byte() {
        let (mut client, mut guarded, _) = connection();
        let start = Instant::now();
        tokio::spawn(async move {
            while client.write_all(b"x").await.is_ok() {
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
        });
        assert_eq!(outcome_of_read(&mut guarded).await, ErrorKind::TimedOut);
        assert_eq!(start.elapsed().as_secs(), HEAD_TIME.as_secs());
    }

    #[tokio::test(start_paused = true)]
    async fn idling_between_requests_is_not_counted() {
        let (mut client, mut guarded, progress) = connection();
        let mut buffer = [0; 64];
        for _ in 0..3 {
            let hour = Duration::from_hours(1);
            let idle = tokio::time::timeout(hour, guarded.read(&mut buffer)).await;
            assert!(idle.is_err(), "closed while idle");
            for piece in [b"he", b"ad"] {
                client.write_all(piece).await.unwrap();
                assert_eq!(guarded.read(&mut buffer).await.unwrap(), 2);
                let short = HEAD_TIME / 3;
                let wait = tokio::time::timeout(short, guarded.read(&mut buffer)).await;
                assert!(wait.is_err(), "closed in time");
            }
            progress.enter(BODY);
            assert!(progress.place.is_waiting(), "its body is on its way");
            let body = tokio::time::timeout(hour, guarded.read(&mut buffer)).await;
            assert!(body.is_err(), "a body's time is not the head's");
            progress.body_came();
            assert!(!progress.place.is_waiting(), "it is worked on");
            progress.request_ended();
            assert!(progress.place.is_waiting());
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_second_head_has_its_own_time() {
        let (mut client, mut guarded, progress) = connection();
        let mut buffer = [0; 64];
        client.write_all(b"he").await.unwrap();
        assert_eq!(guarded.read(&mut buffer).await.unwrap(), 2);
        let almost = HEAD_TIME.checked_sub(Duration::from_secs(1)).unwrap();
        assert!(
            tokio::time::timeout(almost, guarded.read(&mut buffer))
                .await
                .is_err()
        );
        client.write_all(b"ad").await.unwrap();
        assert_eq!(guarded.read(&mut buffer).await.unwrap(), 2);
        progress.enter(BODY);
        progress.request_ended();
        client.write_all(b"he").await.unwrap();
        assert_eq!(guarded.read(&mut buffer).await.unwrap(), 2);
        assert!(
            tokio::time::timeout(almost, guarded.read(&mut buffer))
                .await
                .is_err()
        );
        assert_eq!(outcome_of_read(&mut guarded).await, ErrorKind::TimedOut);
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_does_not_read_is_cut_off() {
        let (_client, mut guarded, _) = connection();
        let error = guarded.write_all(&[0; 1000]).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TimedOut);
    }
}
