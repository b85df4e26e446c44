//! What is wanted and used at a moment, by worker group and by node pool.

use super::ledger::Capacity;
use super::ledger::curves::{CurveLevel, MOST_PARTS, OTHERS, Part, PartPoint, Point};
use super::state::World;
use crate::ray::Resource;
use crate::ray::group::HEAD_NAME;
use crate::simulate::ray::jobs::Need;
use crate::simulate::ray::resources::{Bundle, ResourceNames, fixed, float};
use crate::snapshot::amounts::Amounts;

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

/// What is waited for, used, there and paid for, of a group, of a pool, or in all.
#[derive(Debug, Clone, Default)]
struct Sum {
    waiting: Three,
    used: Three,
    total: Three,
    paid: Three,
    count: f64,
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

    fn point(&self, at: f64) -> PartPoint {
        PartPoint {
            at,
            cpus: self.level(|three| three.cpus),
            memory: self.level(|three| three.memory),
            gpus: self.level(|three| three.gpus),
            count: self.count,
        }
    }
}

/// Groups or pools by name, of which those beyond [`MOST_PARTS`] are one.
#[derive(Debug, Default)]
struct Sums(Vec<(String, Sum)>);

impl Sums {
    fn of(&mut self, name: &str) -> &mut Sum {
        let known = |sums: &[(String, Sum)], name: &str| sums.iter().position(|one| one.0 == name);
        let name = match known(&self.0, name) {
            None if self.0.len() >= MOST_PARTS => OTHERS,
            _ => name,
        };
        let at = known(&self.0, name).unwrap_or_else(|| {
            self.0.push((name.to_owned(), Sum::default()));
            self.0.len() - 1
        });
        &mut self.0[at].1
    }

    fn parts(self, at: f64) -> Vec<Part> {
        let part = |(name, sum): (String, Sum)| Part {
            name,
            point: sum.point(at),
        };
        self.0.into_iter().map(part).collect()
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
        let (mut groups, pools) = (Sums::default(), self.pool_sums());
        let (mut all, on_head) = self.used_sums(&mut groups);
        let waiting_jobs = self.waiting_sums(&mut all, &mut groups);
        self.paid_sums(&mut groups);
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
        let (groups, pools) = (groups.parts(at), pools.parts(at));
        self.ledger.curves.add(point, groups, pools);
    }

    /// The bytes that processes of jobs hold on all of Ray's nodes.
    #[expect(clippy::cast_precision_loss, reason = "what is drawn is a float")]
    fn memory_held(&self) -> f64 {
        let nodes = self.ray.living();
        let bytes = nodes.map(|(number, _)| self.ray.memory_in_use(number, self.now));
        bytes.fold(0_i64, i64::saturating_add) as f64
    }

    /// What Ray's nodes have, and what jobs use of them; beside it, what jobs use of the head.
    fn used_sums(&self, groups: &mut Sums) -> (Sum, Three) {
        let numbers = Numbers::of(&self.ray.names);
        let (mut all, mut on_head) = (Sum::default(), Three::default());
        for group in self.groups.iter().filter(|group| !group.is_head()) {
            groups.of(&group.name);
        }
        for (_, node) in self.ray.living() {
            let (used, total) = (numbers.read(&node.used), numbers.read(&node.total));
            all.used.add(used);
            all.total.add(total);
            if node.group == HEAD_NAME {
                on_head.add(used);
            } else {
                let sum = groups.of(&node.group);
                sum.used.add(used);
                sum.total.add(total);
            }
        }
        (all, on_head)
    }

    /// What jobs wait for, and how many do. It counts for each group of which a pod can hold it.
    #[expect(clippy::cast_precision_loss, reason = "numbers of jobs")]
    fn waiting_sums(&self, all: &mut Sum, groups: &mut Sums) -> f64 {
        let numbers = Numbers::of(&self.ray.names);
        let largest: Vec<(&str, Bundle)> = (self.groups.iter())
            .filter(|group| !group.is_head())
            .map(|group| (group.name.as_str(), self.largest_node(&group.name)))
            .collect();
        let mut waits = |bundle: &Bundle, count: usize| {
            let amounts = numbers.read(bundle).times(count as f64);
            all.waiting.add(amounts);
            for (name, _) in largest.iter().filter(|(_, most)| bundle.fits(most)) {
                groups.of(name).waiting.add(amounts);
            }
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

    /// What a Ray node of a group has when its pod has grown as far as it may.
    fn largest_node(&self, name: &str) -> Bundle {
        let group = self.groups.iter().find(|group| group.name == name);
        let resources = group.map_or(&[][..], |group| &group.resources);
        let limits = self.cluster.ippr.resize_limits(name);
        let mut largest = Bundle::default();
        for (resource, amount) in resources {
            let Some(number) = self.ray.names.find(resource) else {
                continue;
            };
            #[expect(clippy::cast_precision_loss, reason = "bytes and cores")]
            let limit = match resource.as_str() {
                "CPU" => limits
                    .and_then(|limits| limits.amount(Resource::Cpu))
                    .map(|cpu| cpu.ceil_milli() as f64 / 1000.0),
                "memory" => limits
                    .and_then(|limits| limits.amount(Resource::Memory))
                    .map(|memory| memory.ceil_units() as f64),
                _ => None,
            };
            largest.set(
                number,
                fixed(limit.map_or(*amount, |most| most.max(*amount))),
            );
        }
        largest
    }

    /// What the worker pods of each group have.
    fn paid_sums(&self, groups: &mut Sums) {
        for pod in self.own().map(|pod| &self.machines.pods[pod]) {
            if let Some((cpus, memory, gpus)) = pod.paid() {
                let sum = groups.of(pod.group());
                sum.paid.add(Three { cpus, memory, gpus });
                sum.count += 1.0;
            }
        }
    }

    /// What pods request of each node pool, and what its nodes have. A pod without a node counts for the
    /// first pool whose nodes can hold it, as for the node autoscaler.
    fn pool_sums(&self) -> Sums {
        let mut sums = Sums::default();
        let pools = &self.machines.pools;
        for pool in pools {
            sums.of(&pool.name);
        }
        if pools.is_empty() {
            return sums;
        }
        for node in self
            .machines
            .nodes
            .iter()
            .filter(|node| node.removed.is_none())
        {
            let pool = &pools[node.pool];
            let (sum, has) = (sums.of(&pool.name), three(pool.allocatable, pool.gpus));
            sum.paid.add(has);
            sum.count += 1.0;
            if node.is_ready {
                sum.total.add(has);
            }
        }
        let machines = &self.machines;
        for pod in machines.all().map(|pod| &machines.pods[pod]) {
            let (wanted, gpus) = (pod.requests(), pod.gpus);
            if let Some(node) = pod.node.filter(|_| !pod.has_ended()) {
                let name = &pools[self.machines.nodes[node].pool].name;
                sums.of(name).used.add(three(wanted, gpus));
            } else if pod.bound.is_none() && !pod.is_deleting() && !pod.is_gated() {
                let mut able = pools.iter().enumerate();
                let able = able.find(|(number, pool)| pod.fits_in(*number, pool));
                if let Some((_, pool)) = able {
                    sums.of(&pool.name).waiting.add(three(wanted, gpus));
                }
            }
        }
        sums
    }
}

#[expect(clippy::cast_precision_loss, reason = "what is drawn is a float")]
fn three(amounts: Amounts, gpus: i64) -> Three {
    Three {
        cpus: amounts
            .cpu
            .map_or(0.0, |cpu| cpu.ceil_milli() as f64 / 1000.0),
        memory: (amounts.memory).map_or(0.0, |memory| memory.ceil_units() as f64),
        gpus: gpus as f64,
    }
}
