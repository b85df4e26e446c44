//! The Events that wait to be published: within a budget for each cluster, and fairly among
//! namespaces, so that no tenant's Events keep out another's. Pure.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;

use crate::controller::events::announcement::{About, Announcement};
use crate::controller::events::bucket::{Bucket, Rate};
use crate::controller::observe::Key;
use crate::reconcile::events::event::{ClusterEvent, EventType};

/// The rate of one cluster's warnings. (The burst is that of Kubernetes' own event recorder.)
pub(crate) const WARNINGS: Rate = Rate {
    burst: 25.0,
    every_s: 30.0,
};

/// The rate of one cluster's other Events. They have a budget apart from the warnings: when both
/// shared one of 25 Events, resizes and drains used it up, and the warning about a deferred resize
/// was left out.
pub(crate) const NORMAL: Rate = Rate {
    burst: 100.0,
    every_s: 5.0,
};

fn rate(kind: EventType) -> Rate {
    match kind {
        EventType::Normal => NORMAL,
        EventType::Warning => WARNINGS,
    }
}

const KINDS: [EventType; 2] = [EventType::Normal, EventType::Warning];

/// The most Events of one namespace that wait.
const WAITING_OF_NAMESPACE: usize = 64;

/// The most Events that wait.
const WAITING: usize = 1024;

/// The waiting Events, and the counts of those that were left out.
#[derive(Debug, Default)]
pub(crate) struct Outbox {
    /// The budgets by name, not by UID, so that a cluster that is created anew gets no new budget.
    accounts: HashMap<Key, EventAccount>,
    queues: HashMap<Arc<str>, VecDeque<Announcement>>,
    /// The namespaces that have waiting Events, in the order in which they are served.
    turns: VecDeque<Arc<str>>,
    left_out: u64,
}

/// The budgets of one cluster.
#[derive(Debug)]
struct EventAccount {
    about: About,
    normal: EventBudget,
    warnings: EventBudget,
}

/// The budget of one type of Events, and the left-out Events that were not yet summed up.
#[derive(Debug, Default)]
struct EventBudget {
    bucket: Bucket,
    left_out: BTreeMap<&'static str, u64>,
    /// The message of the latest left-out Event.
    latest: Option<String>,
}

impl EventAccount {
    fn budget(&mut self, kind: EventType) -> &mut EventBudget {
        match kind {
            EventType::Normal => &mut self.normal,
            EventType::Warning => &mut self.warnings,
        }
    }

    fn owes(&self) -> bool {
        !self.normal.left_out.is_empty() || !self.warnings.left_out.is_empty()
    }
}

impl Outbox {
    /// Takes in an Event; false if it is left out. `now` is in seconds of any clock that only goes
    /// forward.
    pub(crate) fn put(&mut self, announcement: Announcement, now: f64) -> bool {
        let about = &announcement.about;
        let kind = announcement.news.kind;
        let account = self.account(about);
        account.about = about.clone();
        let budget = account.budget(kind);
        if budget.left_out.is_empty() && budget.bucket.take(rate(kind), now) {
            return self.queue(announcement);
        }
        let about = about.clone();
        self.leave_out(&announcement);
        self.sum_up(&about, kind, now);
        false
    }

    /// The next Event to publish; the namespaces take turns.
    pub(crate) fn take(&mut self) -> Option<Announcement> {
        let namespace = self.turns.pop_front()?;
        let queue = self.queues.get_mut(&namespace)?;
        let next = queue.pop_front();
        if queue.is_empty() {
            self.queues.remove(&namespace);
        } else {
            self.turns.push_back(namespace);
        }
        next
    }

    /// Sums up left-out Events where the budgets now allow it, and forgets clusters of which
    /// nothing has to be remembered.
    pub(crate) fn tick(&mut self, now: f64) {
        let owed = self.accounts.values().filter(|account| account.owes());
        let owed: Vec<About> = owed.map(|account| account.about.clone()).collect();
        for about in owed {
            for kind in KINDS {
                self.sum_up(&about, kind, now);
            }
        }
        self.accounts.retain(|_, account| {
            account.owes()
                || !account.normal.bucket.is_unused(NORMAL, now)
                || !account.warnings.bucket.is_unused(WARNINGS, now)
        });
    }

    /// The number of Events that were left out since the last call.
    pub(crate) fn count_left_out(&mut self) -> u64 {
        std::mem::take(&mut self.left_out)
    }

    fn account(&mut self, about: &About) -> &mut EventAccount {
        let new = || EventAccount {
            about: about.clone(),
            normal: EventBudget::default(),
            warnings: EventBudget::default(),
        };
        self.accounts.entry(about.key.clone()).or_insert_with(new)
    }

    /// Queues one Event for all left-out Events of a type.
    fn sum_up(&mut self, about: &About, kind: EventType, now: f64) {
        let budget = self.account(about).budget(kind);
        if budget.left_out.is_empty() || !budget.bucket.take(rate(kind), now) {
            return;
        }
        let left_out = std::mem::take(&mut budget.left_out);
        let latest = budget.latest.take();
        let news = summary(&left_out, latest.filter(|_| kind == EventType::Warning));
        let about = about.clone();
        self.queue(Announcement { about, news });
    }

    fn queue(&mut self, announcement: Announcement) -> bool {
        let namespace = announcement.about.key.namespace.clone();
        let of_namespace = self.queues.get(&namespace).map_or(0, VecDeque::len);
        if of_namespace >= WAITING_OF_NAMESPACE || !self.has_room(of_namespace) {
            self.leave_out(&announcement);
            return false;
        }
        let queue = self.queues.entry(namespace.clone()).or_default();
        if queue.is_empty() {
            self.turns.push_back(namespace);
        }
        queue.push_back(announcement);
        true
    }

    /// Whether one more Event of a namespace with so many waiting Events may wait. If the outbox is
    /// full, the latest Event of the namespace with the most waiting ones gives way to a namespace
    /// with fewer.
    fn has_room(&mut self, of_namespace: usize) -> bool {
        if self.queues.values().map(VecDeque::len).sum::<usize>() < WAITING {
            return true;
        }
        let longest = self.queues.values_mut().max_by_key(|queue| queue.len());
        let latest = longest
            .filter(|queue| queue.len() > of_namespace + 1)
            .and_then(VecDeque::pop_back);
        if let Some(latest) = &latest {
            self.leave_out(latest);
        }
        latest.is_some()
    }

    fn leave_out(&mut self, announcement: &Announcement) {
        self.left_out += 1;
        let news = &announcement.news;
        let budget = self.account(&announcement.about).budget(news.kind);
        *budget.left_out.entry(news.reason).or_default() += 1;
        budget.latest = Some(news.message.clone());
    }
}

fn summary(left_out: &BTreeMap<&'static str, u64>, warning: Option<String>) -> ClusterEvent {
    let parts = left_out.iter();
    let parts: Vec<String> = parts
        .map(|(reason, count)| format!("{count} x {reason}"))
        .collect();
    let mut message = format!(
        "left out, because there were too many Events of this RayCluster: {}",
        parts.join(", ")
    );
    let mut kind = EventType::Normal;
    if let Some(warning) = warning {
        kind = EventType::Warning;
        message = format!("{message}; the latest warning: {warning}");
    }
    message.truncate(message.floor_char_boundary(1000));
    ClusterEvent {
        reason: "EventsLeftOut",
        kind,
        message,
        action: "Reporting",
        pod: None,
    }
}
