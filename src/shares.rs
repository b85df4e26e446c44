//! Shares of what unknown clients use together: connections, and the memory of request bodies that
//! are being received. No client may hold so much that others are locked out.
//!
//! Everything is counted by the client's address. While there is enough, each client gets what it
//! asks for, up to a bound. When everything is in use, the client that holds the most gives way: of
//! its shares that only wait for the client, the oldest is taken back. A share that is being worked
//! on is never taken back. So a client that holds little, as an API server does, is served however
//! much others hold.

use std::collections::{BTreeMap, HashMap};
use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::sync::Notify;

/// The address for which a share is held.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ConnectionSource(IpAddr);

impl ConnectionSource {
    /// The source of a peer's address. The same IPv4 address is one source, in whichever form it
    /// comes.
    pub fn of(address: IpAddr) -> Self {
        Self(address.to_canonical())
    }
}

/// An unknown source, as in tests without a network.
impl Default for ConnectionSource {
    fn default() -> Self {
        Self(Ipv6Addr::UNSPECIFIED.into())
    }
}

/// The bounds of what can be held.
#[derive(Debug, Clone, Copy)]
pub struct ShareBounds {
    /// The bound for all sources together.
    pub all: usize,
    /// The bound for each source.
    pub each: usize,
    /// Within one source, a share that has waited for less than this does not give way. So of a
    /// source that many clients use, as behind address translation, only the slow clients give way.
    pub patience: Duration,
}

/// The reason why nothing more can be held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Full {
    /// The source holds as much as one source may hold.
    Source,
    /// Everything is held, and no share may be taken back.
    All,
}

/// The shares of all sources.
#[derive(Debug, Clone)]
pub struct Shares {
    bounds: ShareBounds,
    ledger: Arc<Mutex<Ledger>>,
    returned: Arc<Notify>,
}

#[derive(Debug, Default)]
struct Ledger {
    used: usize,
    next: u64,
    sources: HashMap<ConnectionSource, Account>,
}

/// The shares of one source.
#[derive(Debug, Default)]
struct Account {
    used: usize,
    holders: BTreeMap<u64, (usize, Arc<Holder>)>,
}

/// The state that the holder of a share has in common with the ledger.
#[derive(Debug, Default)]
struct Holder {
    /// The time since which the share waits for its client; none while it is being worked on.
    waiting: Mutex<Option<Instant>>,
    is_recalled: AtomicBool,
    recall: Notify,
}

/// Something that is held until this is dropped.
#[derive(Debug)]
pub struct Share {
    shares: Shares,
    source: ConnectionSource,
    id: u64,
    holder: Arc<Holder>,
}

impl Shares {
    /// Shares of which nothing is held yet.
    pub fn new(bounds: ShareBounds) -> Self {
        Self {
            bounds,
            ledger: Arc::default(),
            returned: Arc::default(),
        }
    }

    /// Takes `units` for `source`, and makes the largest holder give way if there is no more. The
    /// share counts as waiting for its client from now on.
    pub fn take(&self, source: ConnectionSource, units: usize) -> Result<Share, Full> {
        let mut ledger = self.ledger.lock();
        ledger.make_room(&self.bounds, source, units, None)?;
        let holder = Arc::new(Holder::default());
        *holder.waiting.lock() = Some(Instant::now());
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

    /// Makes one share give way, if any waits for its client.
    pub fn make_way(&self) {
        let mut ledger = self.ledger.lock();
        if let Some(largest) = ledger.largest() {
            ledger.give_way(largest, None, |_| true);
        }
    }

    /// Waits until a share has been given back.
    pub async fn returned(&self) {
        self.returned.notified().await;
    }
}

impl Ledger {
    fn used_by(&self, source: ConnectionSource) -> usize {
        self.sources.get(&source).map_or(0, |account| account.used)
    }

    /// The source that holds the most among those that have a waiting share.
    fn largest(&self) -> Option<ConnectionSource> {
        let can_give = self.sources.iter().filter(|(_, account)| {
            let mut holders = account.holders.values();
            holders.any(|(_, holder)| holder.waiting.lock().is_some())
        });
        let largest = can_give.max_by_key(|(_, account)| account.used)?;
        Some(*largest.0)
    }

    /// Makes other shares give way until there are `units` for `source`, but never the share
    /// `except`.
    fn make_room(
        &mut self,
        bounds: &ShareBounds,
        source: ConnectionSource,
        units: usize,
        except: Option<u64>,
    ) -> Result<(), Full> {
        loop {
            let own = self.used_by(source);
            let too_much = own + units > bounds.each;
            if !too_much && self.used + units <= bounds.all {
                return Ok(());
            }
            // A source that would then hold more than the largest one does gives way itself.
            let other = self.largest().filter(|largest| {
                !too_much && *largest != source && self.used_by(*largest) >= own + units
            });
            let has_given = match other {
                Some(other) => self.give_way(other, except, |_| true),
                None => self.give_way(source, except, |since| since.elapsed() >= bounds.patience),
            };
            if !has_given {
                return Err(if too_much { Full::Source } else { Full::All });
            }
        }
    }

    /// Makes the oldest waiting share of `source` that may be taken back give way; says whether
    /// there was one.
    fn give_way(
        &mut self,
        source: ConnectionSource,
        except: Option<u64>,
        may: impl Fn(Instant) -> bool,
    ) -> bool {
        let Some(account) = self.sources.get(&source) else {
            return false;
        };
        let waiting = account.holders.iter().filter_map(|(id, (_, holder))| {
            let since = (*holder.waiting.lock())?;
            (may(since) && Some(*id) != except).then_some((since, *id))
        });
        let Some((_, oldest)) = waiting.min() else {
            return false;
        };
        if let Some(holder) = self.remove(source, oldest) {
            holder.is_recalled.store(true, Ordering::Release);
            holder.recall.notify_one();
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
    /// Takes more units. This fails as well if the share was asked to give way.
    pub fn grow(&self, units: usize) -> Result<(), Full> {
        let Shares { bounds, .. } = &self.shares;
        let mut ledger = self.shares.ledger.lock();
        ledger.make_room(bounds, self.source, units, Some(self.id))?;
        let account = ledger.sources.get_mut(&self.source).ok_or(Full::All)?;
        let (count, _) = account.holders.get_mut(&self.id).ok_or(Full::All)?;
        *count += units;
        account.used += units;
        ledger.used += units;
        Ok(())
    }

    /// Marks the share as being worked on, so that it does not give way.
    pub fn works(&self) {
        *self.holder.waiting.lock() = None;
    }

    /// Marks the share as waiting for its client from now on.
    pub fn waits(&self) {
        *self.holder.waiting.lock() = Some(Instant::now());
    }

    /// Returns whether the share waits for its client.
    pub fn is_waiting(&self) -> bool {
        self.holder.waiting.lock().is_some()
    }

    /// Returns whether the share was asked to give way.
    pub fn is_recalled(&self) -> bool {
        self.holder.is_recalled.load(Ordering::Acquire)
    }

    /// Waits until the share is asked to give way. Its units already count as given back then.
    pub async fn recall(&self) {
        while !self.is_recalled() {
            self.holder.recall.notified().await;
        }
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        drop(self.shares.ledger.lock().remove(self.source, self.id));
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
        Shares::new(ShareBounds {
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
        assert!(many[0].is_recalled() && !many[1].is_recalled() && !many[2].is_recalled());
        assert!(!few.is_recalled() && !next.is_recalled());
        // Both sources hold two now, so neither gives way to the other.
        let own = shares.take(source(2), 1).unwrap();
        assert!(few.is_recalled() && !own.is_recalled());
        assert!(!many[1].is_recalled() && !many[2].is_recalled());
        drop((many, few, next, own));
        assert_eq!(shares.ledger.lock().used, 0);
        assert!(shares.ledger.lock().sources.is_empty());
    }

    #[test]
    fn what_is_worked_on_stays() {
        let shares = shares(2, 2, Duration::ZERO);
        let busy = shares.take(source(1), 1).unwrap();
        busy.works();
        let idle = shares.take(source(1), 1).unwrap();
        let newcomer = shares.take(source(2), 1).unwrap();
        assert!(!busy.is_recalled() && idle.is_recalled());
        newcomer.works();
        assert_eq!(shares.take(source(3), 1).unwrap_err(), Full::All);
        busy.waits();
        let last = shares.take(source(3), 1).unwrap();
        assert!(busy.is_recalled() && !newcomer.is_recalled() && !last.is_recalled());
    }

    #[test]
    fn each_has_a_bound_and_the_slow_ones_of_it_give_way() {
        let shares = shares(100, 2, Duration::from_hours(1));
        let held = [1, 1].map(|units| shares.take(source(1), units).unwrap());
        assert_eq!(shares.take(source(1), 1).unwrap_err(), Full::Source);
        let an_hour_before = |since: Instant| since.checked_sub(Duration::from_hours(1));
        let mut since = held[0].holder.waiting.lock();
        *since = since.and_then(an_hour_before);
        drop(since);
        shares.take(source(1), 1).unwrap();
        assert!(held[0].is_recalled() && !held[1].is_recalled());
    }

    #[test]
    fn growing_takes_from_others_but_never_from_itself() {
        let shares = shares(10, 10, Duration::ZERO);
        let large = shares.take(source(1), 8).unwrap();
        let small = shares.take(source(2), 1).unwrap();
        small.grow(3).unwrap();
        assert!(large.is_recalled() && !small.is_recalled());
        assert_eq!(large.grow(1), Err(Full::All), "it has been taken back");
        assert_eq!(small.grow(7), Err(Full::Source));
        small.grow(6).unwrap();
        assert_eq!(shares.ledger.lock().used, 10);
    }

    #[test]
    fn both_forms_of_an_address_are_one_source() {
        assert_eq!(
            ConnectionSource::of("::ffff:10.0.0.1".parse().unwrap()),
            ConnectionSource::of("10.0.0.1".parse().unwrap())
        );
    }
}
