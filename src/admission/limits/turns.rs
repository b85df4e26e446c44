//! Turns: one large review is processed at a time, and sources take turns, so that a source with
//! many reviews does not delay a source with one; of what a source sends, namespaces take turns, since
//! an API server sends the reviews of all tenants.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;

use super::refusal::Refusal;
use crate::fair_queue::FairQueue;
use crate::shares::ConnectionSource;

/// The flow of reviews that a source sends about objects of a namespace.
pub type ReviewFlow = (ConnectionSource, Arc<str>);

/// The queue for turns.
#[derive(Debug, Clone)]
pub struct Turns(Arc<Mutex<Line>>);

/// The ratio of the reviews that can wait of a source to those of one namespace.
const NAMESPACES: usize = 4;

#[derive(Debug)]
struct Line {
    is_taken: bool,
    each: usize,
    waiting: FairQueue<ReviewFlow, oneshot::Sender<ReviewTurn>>,
}

/// A turn, until dropped.
#[derive(Debug)]
pub struct ReviewTurn(Turns);

impl Turns {
    /// An empty queue, with room for `each` reviews that a source sends about one namespace, and for four times as
    /// many that it sends.
    pub fn new(each: usize) -> Self {
        Self(Arc::new(Mutex::new(Line {
            is_taken: false,
            each,
            waiting: FairQueue::new(each),
        })))
    }

    /// Waits for a turn.
    pub async fn take(&self, flow: ReviewFlow) -> Result<ReviewTurn, Refusal> {
        let turn = {
            let mut line = self.line();
            if !line.is_taken {
                line.is_taken = true;
                return Ok(ReviewTurn(self.clone()));
            }
            // Reviews that have gone away meanwhile are still in the queue.
            line.waiting.retain(&flow, |next| !next.is_closed());
            if line.waiting.len_of_group(&flow.0) >= line.each * NAMESPACES {
                return Err(Refusal::Busy);
            }
            let (next, turn) = oneshot::channel();
            let joined = line.waiting.push(flow, next);
            joined.map_err(|_| Refusal::Busy)?;
            turn
        };
        // The sender is dropped only with the whole queue.
        turn.await.map_err(|_| Refusal::Busy)
    }

    fn line(&self) -> MutexGuard<'_, Line> {
        // A panic elsewhere leaves the queue usable.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Line {
    /// The one that is next; nobody has the turn if nobody waits.
    fn next(&mut self) -> Option<oneshot::Sender<ReviewTurn>> {
        while let Some(next) = self.waiting.pop() {
            if !next.is_closed() {
                return Some(next);
            }
        }
        self.is_taken = false;
        None
    }
}

impl Drop for ReviewTurn {
    fn drop(&mut self) {
        let next = self.0.line().next();
        if let Some(next) = next {
            // If the receiver goes away at this moment, the turn is dropped, and so passed on to
            // the next.
            drop(next.send(Self(self.0.clone())));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::Future;
    use std::pin::Pin;
    use std::task::{Context, Poll, Waker};

    use super::*;

    type Waiting = Pin<Box<dyn Future<Output = Result<ReviewTurn, Refusal>>>>;

    fn source(last: u8) -> ReviewFlow {
        (ConnectionSource::of([10, 0, 0, last].into()), "ray".into())
    }

    fn wait(turns: &Turns, last: u8) -> Waiting {
        let turns = turns.clone();
        let mut waiting: Waiting = Box::pin(async move { turns.take(source(last)).await });
        assert!(poll(&mut waiting).is_none());
        waiting
    }

    fn poll(waiting: &mut Waiting) -> Option<Result<ReviewTurn, Refusal>> {
        match waiting
            .as_mut()
            .poll(&mut Context::from_waker(Waker::noop()))
        {
            Poll::Ready(turn) => Some(turn),
            Poll::Pending => None,
        }
    }

    #[tokio::test]
    async fn sources_take_turns_however_many_one_of_them_sends() {
        let turns = Turns::new(3);
        let first = turns.take(source(1)).await.unwrap();
        let mut flood: Vec<Waiting> = (0..3).map(|_| wait(&turns, 1)).collect();
        assert_eq!(turns.take(source(1)).await.unwrap_err(), Refusal::Busy);
        let mut neighbour = wait(&turns, 2);
        drop(first);
        let second = poll(&mut flood[0]).unwrap().unwrap();
        assert!(poll(&mut neighbour).is_none(), "one at a time");
        drop(second);
        assert!(poll(&mut flood[1]).is_none());
        let third = poll(&mut neighbour).unwrap().unwrap();
        // A review that has gone away is passed over, and so is a turn that nobody took.
        drop(flood.remove(1));
        drop(third);
        drop(flood);
        drop(turns.take(source(3)).await.unwrap());
        assert!(!turns.line().is_taken && turns.line().waiting.is_empty());
    }

    #[tokio::test]
    async fn an_api_server_serves_the_namespaces_in_turn() {
        let turns = Turns::new(9);
        let take = |namespace: &str| {
            let (turns, flow) = (
                turns.clone(),
                (ConnectionSource::default(), namespace.into()),
            );
            let waiting: Waiting = Box::pin(async move { turns.take(flow).await });
            waiting
        };
        let first = poll(&mut take("many")).unwrap().unwrap();
        let mut waiting = ["many", "many", "one"].map(take);
        for one in &mut waiting {
            assert!(poll(one).is_none());
        }
        drop(first);
        drop(poll(&mut waiting[0]).unwrap().unwrap());
        assert!(
            poll(&mut waiting[1]).is_none(),
            "it is the turn of the other namespace"
        );
        drop(poll(&mut waiting[2]).unwrap().unwrap());
        assert!(poll(&mut waiting[1]).unwrap().is_ok());
    }
}
