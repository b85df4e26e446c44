//! Demand and use at a moment.

use super::ledger::Capacity;
use super::ledger::curves::{CurveLevel, Point};
use super::state::World;
use crate::ray::group::HEAD_NAME;
use crate::simulate::ray::jobs::Need;
use crate::simulate::ray::resources::{Bundle, ResourceNames, float};

/// Amounts of CPU, memory and GPUs.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Three {
    cpus: f64,
    memory: f64,
    gpus: f64,
}

impl Three {
    fn add(&mut self, other: Self) {
        self.cpus += other.cpus;
        self.memory += other.memory;
        self.gpus += other.gpus;
    }

    fn times(self, count: f64) -> Self {
        Self {
            cpus: self.cpus * count,
            memory: self.memory * count,
            gpus: self.gpus * count,
        }
    }
}

/// The numbers by which bundles know these resources; `None` for a resource that nobody has named.
#[derive(Debug, Clone, Copy)]
struct Numbers([Option<usize>; 3]);

impl Numbers {
    fn of(names: &ResourceNames) -> Self {
        Self(["CPU", "memory", "GPU"].map(|name| names.find(name)))
    }

    fn read(self, bundle: &Bundle) -> Three {
        let [cpus, memory, gpus] = self
            .0
            .map(|number| number.map_or(0.0, |number| float(bundle.get(number))));
        Three { cpus, memory, gpus }
    }
}

/// Amounts that are waited for, used, there and paid for.
#[derive(Debug, Clone, Default)]
struct Sum {
    waiting: Three,
    used: Three,
    total: Three,
    paid: Three,
}

impl Sum {
    fn level(&self, of: fn(&Three) -> f64) -> CurveLevel {
        CurveLevel {
            waiting: of(&self.waiting),
            used: of(&self.used),
            total: of(&self.total),
            paid: of(&self.paid),
        }
    }
}

impl World {
    /// Something that is drawn has changed.
    pub(super) fn draw(&mut self) {
        self.ledger.is_due = true;
    }

    /// Nothing more happens at this moment: what it led to is drawn, and holds until the next change.
    pub(super) fn settle(&mut self) {
        if !std::mem::take(&mut self.ledger.is_due) {
            return;
        }
        let (now, rate) = (self.now, self.ledger.rate());
        let (mut all, on_head) = self.used_in_all();
        let waiting_jobs = self.waiting_in_all(&mut all);
        // The head is not paid for, so what jobs use of it does not count either.
        let less = |paid: f64, all: f64, on_head: f64| (paid - (all - on_head)).max(0.0);
        let unused = Capacity {
            cpus: less(rate.cpus, all.used.cpus, on_head.cpus),
            memory: less(rate.memory, all.used.memory, on_head.memory),
            gpus: less(rate.gpus, all.used.gpus, on_head.gpus),
            nodes: 0.0,
        };
        self.ledger.set_unused(unused, now);
        all.paid = Three {
            cpus: rate.cpus,
            memory: rate.memory,
            gpus: rate.gpus,
        };
        let at = now.seconds();
        let cpus = all.level(|three| three.cpus);
        let point = Point {
            at,
            waiting: cpus.waiting,
            used: cpus.used,
            total: cpus.total,
            cores: rate.cpus,
            nodes: rate.nodes,
            waiting_jobs,
            memory: all.level(|three| three.memory),
            memory_held: self.memory_held(),
            gpus: all.level(|three| three.gpus),
        };
        self.ledger.curves.add(point);
    }

    /// The bytes that processes of jobs hold on all of Ray's nodes.
    #[expect(clippy::cast_precision_loss, reason = "what is drawn is a float")]
    fn memory_held(&self) -> f64 {
        let nodes = self.ray.living();
        let bytes = nodes.map(|(number, _)| self.ray.memory_in_use(number, self.now));
        bytes.fold(0_i64, i64::saturating_add) as f64
    }

    /// The resources of Ray's nodes, and those of them that jobs use; beside it, those of the head that jobs use.
    fn used_in_all(&self) -> (Sum, Three) {
        let numbers = Numbers::of(&self.ray.names);
        let (mut all, mut on_head) = (Sum::default(), Three::default());
        for (_, node) in self.ray.living() {
            let used = numbers.read(&node.used);
            all.used.add(used);
            all.total.add(numbers.read(&node.total));
            if node.group == HEAD_NAME {
                on_head.add(used);
            }
        }
        (all, on_head)
    }

    /// Adds what jobs wait for, and returns how many do.
    #[expect(clippy::cast_precision_loss, reason = "numbers of jobs")]
    fn waiting_in_all(&self, all: &mut Sum) -> f64 {
        let numbers = Numbers::of(&self.ray.names);
        let mut waits = |bundle: &Bundle, count: usize| {
            all.waiting.add(numbers.read(bundle).times(count as f64));
        };
        let mut jobs = 0;
        for (bundle, count) in self.ray.waiting_shapes() {
            waits(bundle, count);
            jobs += count;
        }
        for need in self.ray.waiting_gangs() {
            jobs += 1;
            if let Need::Gang { bundles, .. } = need {
                for bundle in bundles {
                    waits(bundle, 1);
                }
            }
        }
        jobs as f64
    }
}
