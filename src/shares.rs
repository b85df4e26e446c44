//! What strangers share: connections, and the memory of bodies that are on their way. Nobody may
//! hold so much of it that others are locked out.
//!
//! Everything is counted by the address that it is held for. While there is enough, everybody gets
//! what is asked for, up to a bound for each. When there is no more, who holds the most gives way:
//! of what is held for that address and only waits for its client, the oldest is taken back. What
//! is being worked on is never taken back. So whoever holds little, as API servers do, is served
//! however much others hold.

use std::collections::{BTreeMap, HashMap};
use std::net::{IpAddr, Ipv6Addr};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::Notify;

/// The address that something is held for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ConnectionSource(IpAddr);

impl ConnectionSource {
    /// Of a peer. The same IPv4 address is one source, in whichever form it comes.
    pub fn of(address: IpAddr) -> Self {
        Self(address.to_canonical())
    }
}

/// Somebody who is not known, as in tests without a network.
impl Default for ConnectionSource {
    fn default() -> Self {
        Self(Ipv6Addr::UNSPECIFIED.into())
    }
}

/// How much there is.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    /// For all together.
    pub all: usize,
    /// For each source.
    pub each: usize,
    /// Within one source, what has waited for less than this does not give way: of a source that
    /// many use, as behind address translation, only those do that are slow.
    pub patience: Duration,
}

/// There is no more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Full {
    /// This source holds all that one can hold.
    Source,
    /// Everything is held, and is being worked on.
    All,
}

/// What there is, and who holds how much of it.
#[derive(Debug, Clone)]
pub struct Shares {
    bounds: Bounds,
    start: Instant,
    ledger: Arc<Mutex<Ledger>>,
    returned: Arc<Notify>,
}

#[derive(Debug, Default)]
struct Ledger {
    used: usize,
    next: u64,
    sources: HashMap<ConnectionSource, Account>,
}

/// Of one source.
#[derive(Debug, Default)]
struct Account {
    used: usize,
    holders: BTreeMap<u64, (usize, Arc<Holder>)>,
}

/// What the one who holds something shares with the ledger.
#[derive(Debug, Default)]
struct Holder {
    /// Since when it waits for its client, in milliseconds after the start and one more; 0 while
    /// it is worked on.
    waiting: AtomicU64,
    is_asked: AtomicBool,
    asked: Notify,
}

/// Something that is held, until dropped.
#[derive(Debug)]
pub struct Share {
    shares: Shares,
    source: ConnectionSource,
    id: u64,
    holder: Arc<Holder>,
}

impl Shares {
    /// Nobody holds anything yet.
    pub fn new(bounds: Bounds) -> Self {
        Self {
            bounds,
            start: Instant::now(),
            ledger: Arc::default(),
            returned: Arc::default(),
        }
    }

    /// Takes `units` for `source`, from whoever holds the most if there is no more. It counts as
    /// waiting for its client from now on.
    pub fn take(&self, source: ConnectionSource, units: usize) -> Result<Share, Full> {
        let now = self.now();
        let mut ledger = self.ledger();
        ledger.make_room(&self.bounds, source, units, now, None)?;
        let holder = Arc::new(Holder::default());
        holder.waiting.store(now, Ordering::Relaxed);
        let id = ledger.next;
        ledger.next += 1;
        ledger.used += units;
        let account = ledger.sources.entry(source).or_default();
        account.used += units;
        account.holders.insert(id, (units, holder.clone()));
        Ok(Share {
            shares: self.clone(),
            source,
            id,
            holder,
        })
    }

    /// One who holds something gives way, if anybody waits.
    pub fn make_way(&self) {
        let mut ledger = self.ledger();
        if let Some(largest) = ledger.largest() {
            ledger.give_way(largest, None, |_| true);
        }
    }

    /// Waits until somebody has given something back.
    pub async fn returned(&self) {
        self.returned.notified().await;
    }

    fn now(&self) -> u64 {
        u64::try_from(self.start.elapsed().as_millis()).unwrap_or(u64::MAX - 1) + 1
    }

    /// A panic elsewhere leaves the ledger whole enough.
    fn ledger(&self) -> MutexGuard<'_, Ledger> {
        self.ledger.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Ledger {
    fn used_by(&self, source: ConnectionSource) -> usize {
        self.sources.get(&source).map_or(0, |account| account.used)
    }

    /// Of those who have something that waits, the one who holds the most.
    fn largest(&self) -> Option<ConnectionSource> {
        let can_give = self.sources.iter().filter(|(_, account)| {
            let mut holders = account.holders.values();
            holders.any(|(_, holder)| holder.waiting.load(Ordering::Relaxed) > 0)
        });
        let largest = can_give.max_by_key(|(_, account)| account.used)?;
        Some(*largest.0)
    }

    /// Until there are `units` for `source`, others give way, but never `except`.
    fn make_room(
        &mut self,
        bounds: &Bounds,
        source: ConnectionSource,
        units: usize,
        now: u64,
        except: Option<u64>,
    ) -> Result<(), Full> {
        let patience = u64::try_from(bounds.patience.as_millis()).unwrap_or(u64::MAX);
        loop {
            let own = self.used_by(source);
            let too_much = own + units > bounds.each;
            if !too_much && self.used + units <= bounds.all {
                return Ok(());
            }
            // Who would hold more than the largest does is the one to give way.
            let other = self.largest().filter(|largest| {
                !too_much && *largest != source && self.used_by(*largest) >= own + units
            });
            let found = match other {
                Some(other) => self.give_way(other, except, |_| true),
                None => self.give_way(source, except, |since| now - since.min(now) >= patience),
            };
            if !found {
                return Err(if too_much { Full::Source } else { Full::All });
            }
        }
    }

    /// The oldest that waits in `source`, and may be taken back, gives way; whether there was one.
    fn give_way(
        &mut self,
        source: ConnectionSource,
        except: Option<u64>,
        may: impl Fn(u64) -> bool,
    ) -> bool {
        let Some(account) = self.sources.get(&source) else {
            return false;
        };
        let waiting = account.holders.iter().filter_map(|(id, (_, holder))| {
            let since = holder.waiting.load(Ordering::Relaxed);
            (since > 0 && may(since) && Some(*id) != except).then_some((since, *id))
        });
        let Some((_, oldest)) = waiting.min() else {
            return false;
        };
        if let Some(holder) = self.remove(source, oldest) {
            holder.is_asked.store(true, Ordering::Release);
            holder.asked.notify_one();
        }
        true
    }

    fn remove(&mut self, source: ConnectionSource, id: u64) -> Option<Arc<Holder>> {
        let account = self.sources.get_mut(&source)?;
        let (units, holder) = account.holders.remove(&id)?;
        account.used -= units;
        self.used -= units;
        if account.holders.is_empty() {
            self.sources.remove(&source);
        }
        Some(holder)
    }
}

impl Share {
    /// Takes more. It fails, too, where this share was asked to give way.
    pub fn grow(&self, units: usize) -> Result<(), Full> {
        let Shares { bounds, .. } = &self.shares;
        let now = self.shares.now();
        let mut ledger = self.shares.ledger();
        ledger.make_room(bounds, self.source, units, now, Some(self.id))?;
        let account = ledger.sources.get_mut(&self.source).ok_or(Full::All)?;
        let (held, _) = account.holders.get_mut(&self.id).ok_or(Full::All)?;
        *held += units;
        account.used += units;
        ledger.used += units;
        Ok(())
    }

    /// It is worked on: it does not give way.
    pub fn works(&self) {
        self.holder.waiting.store(0, Ordering::Relaxed);
    }

    /// It waits for its client, from now on.
    pub fn waits(&self) {
        let now = self.shares.now();
        self.holder.waiting.store(now, Ordering::Relaxed);
    }

    /// Whether it waits for its client.
    pub fn is_waiting(&self) -> bool {
        self.holder.waiting.load(Ordering::Relaxed) > 0
    }

    /// It was asked to give way.
    pub fn is_asked(&self) -> bool {
        self.holder.is_asked.load(Ordering::Acquire)
    }

    /// Waits until it is asked to give way. What it held counts as given back by then.
    pub async fn asked(&self) {
        while !self.is_asked() {
            self.holder.asked.notified().await;
        }
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        drop(self.shares.ledger().remove(self.source, self.id));
        self.shares.returned.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(last: u8) -> ConnectionSource {
        ConnectionSource::of([10, 0, 0, last].into())
    }

    fn shares(all: usize, each: usize, patience: Duration) -> Shares {
        Shares::new(Bounds {
            all,
            each,
            patience,
        })
    }

    #[test]
    fn who_holds_the_most_gives_way_and_the_oldest_of_it_first() {
        let shares = shares(4, 4, Duration::ZERO);
        let many: Vec<Share> = (0..3).map(|_| shares.take(source(1), 1).unwrap()).collect();
        let few = shares.take(source(2), 1).unwrap();
        let next = shares.take(source(2), 1).unwrap();
        assert!(many[0].is_asked() && !many[1].is_asked() && !many[2].is_asked());
        assert!(!few.is_asked() && !next.is_asked());
        // Two each now: nobody is to take from who holds as little.
        let own = shares.take(source(2), 1).unwrap();
        assert!(few.is_asked() && !own.is_asked());
        assert!(!many[1].is_asked() && !many[2].is_asked());
        drop((many, few, next, own));
        assert_eq!(shares.ledger().used, 0);
        assert!(shares.ledger().sources.is_empty());
    }

    #[test]
    fn what_is_worked_on_stays() {
        let shares = shares(2, 2, Duration::ZERO);
        let busy = shares.take(source(1), 1).unwrap();
        busy.works();
        let idle = shares.take(source(1), 1).unwrap();
        let newcomer = shares.take(source(2), 1).unwrap();
        assert!(!busy.is_asked() && idle.is_asked());
        newcomer.works();
        assert_eq!(shares.take(source(3), 1).unwrap_err(), Full::All);
        busy.waits();
        let last = shares.take(source(3), 1).unwrap();
        assert!(busy.is_asked() && !newcomer.is_asked() && !last.is_asked());
    }

    #[test]
    fn each_has_a_bound_and_the_slow_ones_of_it_give_way() {
        let shares = shares(100, 2, Duration::from_hours(1));
        let held = [1, 1].map(|units| shares.take(source(1), units).unwrap());
        assert_eq!(shares.take(source(1), 1).unwrap_err(), Full::Source);
        held[0].holder.waiting.store(1, Ordering::Relaxed);
        let hour_later = 3_600_001;
        let room = shares
            .ledger()
            .make_room(&shares.bounds, source(1), 1, hour_later, None);
        room.unwrap();
        assert!(held[0].is_asked() && !held[1].is_asked());
    }

    #[test]
    fn growing_takes_from_others_but_never_from_itself() {
        let shares = shares(10, 10, Duration::ZERO);
        let large = shares.take(source(1), 8).unwrap();
        let small = shares.take(source(2), 1).unwrap();
        small.grow(3).unwrap();
        assert!(large.is_asked() && !small.is_asked());
        assert_eq!(large.grow(1), Err(Full::All), "it has been taken back");
        assert_eq!(small.grow(7), Err(Full::Source));
        small.grow(6).unwrap();
        assert_eq!(shares.ledger().used, 10);
    }

    #[test]
    fn both_forms_of_an_address_are_one_source() {
        assert_eq!(
            ConnectionSource::of("::ffff:10.0.0.1".parse().unwrap()),
            ConnectionSource::of("10.0.0.1".parse().unwrap())
        );
    }
}
