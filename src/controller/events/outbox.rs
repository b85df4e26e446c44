//! The Events that wait to be published: within a budget for each cluster, and fairly among
//! namespaces, so that no tenant's Events keep out another's.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use governor::middleware::NoOpMiddleware;
use governor::state::keyed::HashMapStateStore;
use governor::{Quota, RateLimiter};
use rayfit_core::fair_queue::FairQueue;
use rayfit_core::reconcile::events::event::{ClusterEvent, EventType};

use crate::controller::clock::LimiterClock;
use crate::controller::observe::Key;

/// The burst of one cluster's warnings, and the time until the next one after it.
// The burst is that of Kubernetes' own event recorder.
pub(crate) const WARNINGS: (u32, Duration) = (25, Duration::from_secs(30));

/// The burst of one cluster's other Events, likewise.
// They have a budget apart from the warnings: when both shared one of 25 Events, resizes and drains used it up, and
// the warning about a deferred resize was left out.
const NORMAL: (u32, Duration) = (100, Duration::from_secs(5));

/// The most Events of one namespace that wait.
const WAITING_OF_NAMESPACE: usize = 64;

/// The most Events that wait.
const WAITING: usize = 1024;

/// An Event to be published.
#[derive(Debug, Clone)]
pub(super) struct QueuedEvent {
    pub(super) about: About,
    pub(super) event: ClusterEvent,
}

/// The RayCluster that an Event is on.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct About {
    /// The RayCluster's namespace and name.
    pub key: Key,
    /// The RayCluster's UID.
    pub uid: String,
}

/// The waiting Events, and the counts of those that were left out.
pub(crate) struct Outbox {
    pub(super) normal: Budgets,
    pub(super) warnings: Budgets,
    /// Events that were left out and not yet summed up.
    owed: BTreeMap<(Key, EventType), LeftOut>,
    /// The Events that wait, by namespace; the namespaces take turns.
    pub(super) waiting: FairQueue<Arc<str>, QueuedEvent>,
    pub(super) left_out: u64,
}

/// The budgets of all clusters for one type of Events: by name, not by UID, so that a cluster that
/// is created anew gets no new budget.
type Budgets = RateLimiter<Key, HashMapStateStore<Key>, LimiterClock, NoOpMiddleware<Duration>>;

fn budgets((burst, every): (u32, Duration)) -> Budgets {
    let burst = NonZeroU32::new(burst).unwrap_or(NonZeroU32::MIN);
    let quota = Quota::with_period(every).unwrap_or(Quota::per_second(burst));
    RateLimiter::hashmap_with_clock(quota.allow_burst(burst), LimiterClock::default())
}

/// The left-out Events of one type about one cluster.
#[derive(Debug)]
struct LeftOut {
    about: About,
    counts: BTreeMap<&'static str, u64>,
    /// The message of the latest one.
    latest: String,
}

impl Default for Outbox {
    fn default() -> Self {
        Self {
            normal: budgets(NORMAL),
            warnings: budgets(WARNINGS),
            owed: BTreeMap::new(),
            waiting: FairQueue::new(WAITING_OF_NAMESPACE),
            left_out: 0,
        }
    }
}

impl Outbox {
    /// Takes in an Event; false if it is left out.
    pub(crate) fn put(&mut self, announcement: QueuedEvent) -> bool {
        let about = &announcement.about;
        let account = (about.key.clone(), announcement.event.kind);
        // The summary of what was left out goes first: new Events would use up the budget again and
        // again, and it would never come.
        if !self.owed.contains_key(&account) && self.may(&account) {
            return self.queue(announcement);
        }
        self.leave_out(announcement);
        self.sum_up(&account);
        false
    }

    /// Sums up left-out Events where the budgets now allow it, and forgets budgets that are full
    /// again.
    pub(crate) fn tick(&mut self) {
        let owed: Vec<_> = self.owed.keys().cloned().collect();
        for account in owed {
            self.sum_up(&account);
        }
        self.normal.retain_recent();
        self.warnings.retain_recent();
    }

    /// Takes one Event from the budget, if it allows one more.
    fn may(&self, (key, kind): &(Key, EventType)) -> bool {
        let budgets = match kind {
            EventType::Normal => &self.normal,
            EventType::Warning => &self.warnings,
        };
        budgets.check_key(key).is_ok()
    }

    /// Queues one Event for all left-out Events of a type.
    fn sum_up(&mut self, account: &(Key, EventType)) {
        if !self.owed.contains_key(account) || !self.may(account) {
            return;
        }
        let Some(left_out) = self.owed.remove(account) else {
            return;
        };
        let parts = left_out.counts.iter();
        let parts: Vec<String> = parts
            .map(|(reason, count)| format!("{count} x {reason}"))
            .collect();
        let mut message = format!(
            "left out, because there were too many Events of this RayCluster: {}",
            parts.join(", ")
        );
        if account.1 == EventType::Warning {
            message = format!("{message}; the latest warning: {}", left_out.latest);
        }
        message.truncate(message.floor_char_boundary(1000));
        self.queue(QueuedEvent {
            about: left_out.about,
            event: ClusterEvent {
                reason: "EventsLeftOut",
                kind: account.1,
                message,
                action: "Reporting",
                pod: None,
            },
        });
    }

    fn queue(&mut self, announcement: QueuedEvent) -> bool {
        let namespace = Arc::clone(&announcement.about.key.namespace);
        // If the outbox is full, the latest Event of the namespace with the most waiting ones gives way to a
        // namespace with fewer.
        let mut has_room = self.waiting.len() < WAITING;
        if !has_room {
            let of_namespace = self.waiting.len_of(&namespace);
            let latest = self.waiting.shorten_longest(of_namespace + 1);
            has_room = latest.map(|latest| self.leave_out(latest)).is_some();
        }
        let refused = if has_room {
            self.waiting.push(namespace, announcement).err()
        } else {
            Some(announcement)
        };
        refused.map(|refused| self.leave_out(refused)).is_none()
    }

    fn leave_out(&mut self, announcement: QueuedEvent) {
        let QueuedEvent { about, event } = announcement;
        self.left_out += 1;
        let account = (about.key.clone(), event.kind);
        let left_out = self.owed.entry(account).or_insert_with(|| LeftOut {
            about: about.clone(),
            counts: BTreeMap::new(),
            latest: String::new(),
        });
        left_out.about = about;
        left_out.latest = event.message;
        *left_out.counts.entry(event.reason).or_default() += 1;
    }
}
