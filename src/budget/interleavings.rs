//! Plays clusters, their owners and the record against each other: owners read old records, their
//! writes are lost or come late, other owners take over, the record is deleted or loses its content, and
//! clusters that run already come under the budget. Whatever happens in whatever order, no cluster grows
//! while all together use more than the budget.

use proptest::prelude::*;

use crate::budget::amounts::BudgetAmounts;
use crate::budget::keeper::{BudgetKeeper, SETTLING_S, WriteEnd};
use crate::budget::record::{ClusterUse, Grants};

const TOTAL: u64 = 100;
const CLUSTERS: usize = 4;

/// For how many seconds an owner may know nothing of what has become of the record.
const LAG_S: f64 = SETTLING_S - 1.0;

fn cpu(cpu_milli: u64) -> BudgetAmounts {
    BudgetAmounts {
        cpu_milli,
        ..BudgetAmounts::default()
    }
}

fn total() -> BudgetAmounts {
    BudgetAmounts::of([TOTAL, BudgetAmounts::UNBOUNDED, BudgetAmounts::UNBOUNDED])
}

/// What becomes of a write.
#[derive(Debug, Clone, Copy)]
enum Fate {
    Answered,
    /// It is stored, and the answer is lost.
    Unheard,
    /// It arrives later, or never; nobody knows.
    Late,
}

#[derive(Debug, Clone, Copy)]
enum Step {
    /// The demand of a cluster changes.
    Want(usize, u64),
    /// Its owner reads the record, and sees what the cluster uses.
    Read(usize),
    /// Its watch shows the record as it was so many versions ago.
    Observe(usize, usize),
    /// Its owner writes its entry, if it has to.
    Write(usize, Fate),
    /// It uses as much as it wants and may.
    Use(usize),
    /// Its owner sees more than it uses: pods that no longer exist.
    SeeMore(usize, u64),
    /// Work of it ends.
    Free(usize, u64),
    /// It gives back what it uses above its limit.
    GiveBack(usize),
    /// Another owner takes over, and no write of the old one is under way any more.
    TakeOver(usize),
    /// It is deleted, and another one comes in its place.
    Replace(usize),
    /// A late write arrives.
    Arrive,
    /// Somebody deletes the record.
    Delete,
    /// Somebody takes its content away.
    Empty,
    /// The budget is introduced anew, and this cluster's owner does not know it yet.
    Introduce(usize),
    /// So many seconds pass.
    Pass(u32),
}

#[derive(Default)]
struct Cluster {
    uid: String,
    keeper: BudgetKeeper,
    wants: u64,
    uses: u64,
    /// What its owner has seen that it uses at the most.
    seen: u64,
    /// Its owner knows the budget.
    is_under: bool,
    /// Since when its owner may go by a record that is not there any more, or by none.
    behind_since: Option<f64>,
    /// How far its owner's clock is ahead.
    ahead_s: f64,
}

impl Cluster {
    fn of(&self) -> ClusterUse {
        ClusterUse {
            uses: cpu(self.seen),
            wants: cpu(self.wants),
            weight: 1,
            priority: 0,
        }
    }

    fn limit(&self) -> u64 {
        if self.is_under {
            self.keeper.limit(total(), &self.of()).cpu_milli
        } else {
            u64::MAX
        }
    }
}

#[derive(Default)]
struct World {
    now: f64,
    version: u64,
    /// The record, if there is one.
    stored: Option<Grants>,
    /// What was stored before, with its version.
    before: Vec<(u64, Grants)>,
    clusters: Vec<Cluster>,
    /// Writes that were sent and may still arrive, with their sender.
    late: Vec<(usize, String, Grants)>,
    made: usize,
}

impl World {
    fn new() -> Self {
        let mut world = Self::default();
        for _ in 0..CLUSTERS {
            let cluster = world.make();
            world.clusters.push(cluster);
        }
        world.change(Some(Grants {
            revision: 1,
            made: 1,
            ..Grants::default()
        }));
        world
    }

    fn make(&mut self) -> Cluster {
        self.made += 1;
        // Each replica has a clock of its own.
        let ahead_s = f64::from(u32::try_from(self.made % 3).unwrap()) * 3600.0;
        let uid = format!("uid-{}", self.made);
        Cluster {
            keeper: BudgetKeeper::new(&uid),
            uid,
            is_under: true,
            ahead_s,
            ..Cluster::default()
        }
    }

    /// The version of the record; empty if there is none.
    fn version(&self) -> String {
        let version = self.stored.as_ref().map(|_| self.version.to_string());
        version.unwrap_or_default()
    }

    fn change(&mut self, stored: Option<Grants>) {
        if let Some(before) = self.stored.take() {
            self.before.push((self.version, before));
        }
        self.version += 1;
        self.stored = stored;
    }

    fn store(&mut self, version: &str, grants: Grants) -> bool {
        if version != self.version() {
            return false;
        }
        if self.stored.as_ref() != Some(&grants) {
            self.change(Some(grants));
        }
        true
    }

    /// Somebody else has changed the record so that no entry of before counts.
    fn lose(&mut self, stored: Option<Grants>) {
        self.change(stored);
        for cluster in &mut self.clusters {
            cluster.behind_since = Some(self.now);
        }
    }

    /// No owner goes on for long by what is not there any more: it hears of it, and writes what its
    /// cluster uses, or another owner does.
    fn pass(&mut self, seconds: f64) {
        for at in 0..CLUSTERS {
            let since = self.clusters[at].behind_since;
            if since.is_some_and(|since| self.now + seconds > since + LAG_S) {
                self.step(Step::Read(at));
                self.step(Step::Write(at, Fate::Answered));
            }
        }
        self.now += seconds;
    }

    fn step(&mut self, step: Step) {
        match step {
            Step::Want(at, wants) => self.clusters[at].wants = wants,
            Step::Read(at) => {
                let (version, stored) = (self.version(), self.stored.clone());
                let cluster = &mut self.clusters[at];
                cluster.keeper.read(&version, stored.unwrap_or_default());
                cluster.seen = cluster.uses;
                cluster.is_under = true;
            }
            Step::Observe(at, ago) => {
                let old = self.before.len().checked_sub(ago);
                let old = old.and_then(|old| self.before.get(old)).cloned();
                let now = || Some((self.version, self.stored.clone()?));
                if let Some((version, grants)) = old.or_else(now) {
                    let keeper = &mut self.clusters[at].keeper;
                    keeper.observe(&version.to_string(), &grants);
                }
            }
            Step::Write(at, fate) => self.write(at, fate),
            Step::Use(at) => {
                let cluster = &mut self.clusters[at];
                let limit = cluster.limit();
                cluster.uses = cluster.uses.max(cluster.wants.min(limit));
                cluster.seen = cluster.seen.max(cluster.uses);
            }
            Step::SeeMore(at, amount) => self.clusters[at].seen += amount,
            Step::Free(at, amount) => {
                let cluster = &mut self.clusters[at];
                cluster.uses = cluster.uses.saturating_sub(amount);
            }
            Step::GiveBack(at) => {
                let cluster = &mut self.clusters[at];
                cluster.uses = cluster.uses.min(cluster.limit());
            }
            Step::TakeOver(at) => {
                self.late.retain(|(sender, ..)| *sender != at);
                let cluster = &mut self.clusters[at];
                cluster.keeper = BudgetKeeper::new(&cluster.uid);
                cluster.seen = cluster.uses;
            }
            Step::Replace(at) => {
                self.late.retain(|(sender, ..)| *sender != at);
                self.clusters[at] = self.make();
            }
            Step::Arrive => {
                if let Some((_, version, grants)) = self.late.pop() {
                    self.store(&version, grants);
                }
            }
            Step::Delete => self.lose(None),
            Step::Empty => self.lose(Some(Grants::default())),
            Step::Introduce(at) => {
                self.lose(None);
                for cluster in &mut self.clusters {
                    cluster.keeper = BudgetKeeper::new(&cluster.uid);
                }
                self.clusters[at].is_under = false;
            }
            Step::Pass(seconds) => self.pass(f64::from(seconds)),
        }
    }

    fn write(&mut self, at: usize, fate: Fate) {
        let there: Vec<String> = self.clusters.iter().map(|one| one.uid.clone()).collect();
        let now = self.now + self.clusters[at].ahead_s;
        let cluster = &mut self.clusters[at];
        if !cluster.is_under {
            return;
        }
        let of = cluster.of();
        let is_gone = |uid: &str| there.iter().all(|there| there != uid);
        let Some((version, grants)) = cluster.keeper.write(total(), &of, now, is_gone) else {
            return;
        };
        let version_now;
        let end = match fate {
            Fate::Late => {
                self.late.push((at, version, grants.clone()));
                WriteEnd::Unknown
            }
            Fate::Answered | Fate::Unheard => {
                let is_stored = self.store(&version, grants.clone());
                version_now = self.version();
                if is_stored {
                    self.clusters[at].behind_since = None;
                }
                match fate {
                    Fate::Answered if is_stored => WriteEnd::Stored(&version_now),
                    Fate::Answered => WriteEnd::Refused,
                    _ => WriteEnd::Unknown,
                }
            }
        };
        self.clusters[at].keeper.wrote(grants, end);
    }

    fn uses(&self) -> u64 {
        self.clusters.iter().map(|cluster| cluster.uses).sum()
    }
}

fn step() -> impl Strategy<Value = Step> {
    let at = || 0..CLUSTERS;
    let fate = prop_oneof![
        4 => Just(Fate::Answered),
        1 => Just(Fate::Unheard),
        1 => Just(Fate::Late),
    ];
    prop_oneof![
        3 => (at(), 0..150_u64).prop_map(|(at, wants)| Step::Want(at, wants)),
        4 => at().prop_map(Step::Read),
        3 => (at(), 0..5_usize).prop_map(|(at, ago)| Step::Observe(at, ago)),
        5 => (at(), fate).prop_map(|(at, fate)| Step::Write(at, fate)),
        5 => at().prop_map(Step::Use),
        1 => (at(), 0..60_u64).prop_map(|(at, amount)| Step::SeeMore(at, amount)),
        2 => (at(), 0..60_u64).prop_map(|(at, amount)| Step::Free(at, amount)),
        2 => at().prop_map(Step::GiveBack),
        1 => at().prop_map(Step::TakeOver),
        1 => at().prop_map(Step::Replace),
        1 => Just(Step::Arrive),
        1 => Just(Step::Delete),
        1 => Just(Step::Empty),
        1 => at().prop_map(Step::Introduce),
        4 => (0..200_u32).prop_map(Step::Pass),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn the_budget_is_never_exceeded(steps in prop::collection::vec(step(), 1..150)) {
        let mut world = World::new();
        for step in &steps {
            let before = world.uses();
            // Who does not know the budget yet may use anything.
            let free = match step {
                Step::Use(at) => !world.clusters[*at].is_under,
                _ => false,
            };
            world.step(*step);
            let uses = world.uses();
            prop_assert!(uses <= TOTAL.max(before) || free, "{uses} after {step:?}");
            let stored = world.stored.iter();
            prop_assert!(stored.map(Grants::sum).all(|sum| sum.cpu_milli <= TOTAL));
        }
    }

    /// Whatever happened before, once nothing fails any more each cluster comes to its fair share.
    #[test]
    fn everybody_comes_to_the_fair_share(
        steps in prop::collection::vec(step(), 0..100),
        wants in prop::array::uniform4(0..150_u64),
    ) {
        let mut world = World::new();
        for step in steps {
            world.step(step);
        }
        world.late.clear();
        for (at, wants) in wants.iter().enumerate() {
            world.step(Step::Want(at, *wants));
        }
        for _ in 0..20 {
            for at in 0..CLUSTERS {
                world.step(Step::Read(at));
                world.step(Step::GiveBack(at));
                world.step(Step::Read(at));
                world.step(Step::Write(at, Fate::Answered));
                world.step(Step::Use(at));
            }
            world.step(Step::Pass(30));
        }
        let served: u64 = world.clusters.iter().map(|one| one.uses.min(one.wants)).sum();
        let wanted: u64 = wants.iter().sum();
        // What rounding of wants keeps from others is an eighth of it at the most.
        prop_assert!(served * 8 >= wanted.min(TOTAL) * 7, "{served} of {wanted}");
        let least = TOTAL / CLUSTERS as u64;
        for (cluster, wants) in world.clusters.iter().zip(wants) {
            prop_assert!(cluster.uses >= wants.min(least), "{} {wants}", cluster.uses);
        }
    }
}

#[test]
fn at_rest_nothing_is_written() {
    let mut world = World::new();
    for at in 0..CLUSTERS {
        world.step(Step::Want(at, 20));
        world.step(Step::Read(at));
        world.step(Step::Write(at, Fate::Answered));
    }
    let version = world.version;
    for _ in 0..5 {
        for at in 0..CLUSTERS {
            world.step(Step::Want(at, 5 + at as u64));
            world.step(Step::Use(at));
            world.step(Step::Read(at));
            world.step(Step::Write(at, Fate::Answered));
        }
    }
    assert_eq!(world.version, version);
}
