//! Workloads that are made: the same ones on every machine. Only whole numbers are drawn.

use fastrand::Rng;
use rayfit_core::simulate::trace::{Job, JobDemand, JobShape, MemoryUse, PlacementStrategy, Trace};

const GIB: f64 = 1_073_741_824.0;

const HOUR_S: u32 = 3600;

/// A workload in the making.
struct Maker {
    random: Rng,
    jobs: Vec<Job>,
}

impl Maker {
    fn new(seed: u64) -> Self {
        Self {
            random: Rng::with_seed(seed),
            jobs: Vec::new(),
        }
    }

    fn add(&mut self, at: u32, seconds: u32, demand: JobDemand) {
        let id = format!("job-{}", self.jobs.len());
        self.jobs.push(Job {
            name: id.clone(),
            id,
            at: f64::from(at),
            after: Vec::new(),
            seconds: f64::from(seconds),
            retries: demand.usual_retries(),
            demand,
            memory: Vec::new(),
            output: 0,
        });
    }

    fn trace(mut self, name: &str) -> Trace {
        self.jobs.sort_by(|one, other| one.at.total_cmp(&other.at));
        Trace {
            name: name.to_owned(),
            jobs: self.jobs,
        }
    }
}

fn cpus(cpus: f64) -> JobShape {
    JobShape::from([("CPU".to_owned(), cpus)])
}

/// Tasks of one CPU that come in bursts, with gaps of 3 to 20 minutes between them.
pub fn bursts() -> Trace {
    let mut make = Maker::new(11);
    let mut at = 0;
    for _ in 0..24 {
        for _ in 0..make.random.u32(8..=64) {
            let seconds = make.random.u32(20..=90);
            make.add(at, seconds, JobDemand::Task(cpus(1.0)));
        }
        at += make.random.u32(180..=1200);
    }
    make.trace("bursts")
}

/// Three hours of tasks of one CPU, of which one in ten runs for 5 to 30 minutes, the others for seconds.
pub fn mixed() -> Trace {
    let mut make = Maker::new(12);
    let mut at = 0;
    while at < 3 * HOUR_S {
        let seconds = match make.random.u32(..10) {
            0 => make.random.u32(300..=1800),
            _ => make.random.u32(2..=30),
        };
        make.add(at, seconds, JobDemand::Task(cpus(1.0)));
        at += make.random.u32(0..=8);
    }
    make.trace("mixed")
}

/// Placement groups of two to six bundles of four CPUs, of all strategies that can be met by pods of that
/// size, and a few small tasks after each.
pub fn gangs() -> Trace {
    let mut make = Maker::new(13);
    let mut at = 0;
    while at < 4 * HOUR_S {
        let strategy = match make.random.u32(..3) {
            0 => PlacementStrategy::StrictSpread,
            1 => PlacementStrategy::Spread,
            _ => PlacementStrategy::Pack,
        };
        let bundles = vec![cpus(4.0); make.random.usize(2..=6)];
        let seconds = make.random.u32(120..=900);
        make.add(at, seconds, JobDemand::PlacementGroup { strategy, bundles });
        for _ in 0..make.random.u32(0..=12) {
            let (later, seconds) = (make.random.u32(0..=120), make.random.u32(10..=60));
            make.add(at + later, seconds, JobDemand::Task(cpus(1.0)));
        }
        at += make.random.u32(60..=600);
    }
    make.trace("gangs")
}

/// Tasks of one CPU that ask for no memory and use up to four GiB each: all at once, or more and more while
/// they run.
pub fn hungry() -> Trace {
    let mut make = Maker::new(15);
    let mut at = 0;
    while at < 2 * HOUR_S {
        for _ in 0..make.random.u32(2..=12) {
            let seconds = make.random.u32(60..=400);
            make.add(at, seconds, JobDemand::Task(cpus(1.0)));
            let steps = make.random.u32(1..=4);
            let (most, grows) = (make.random.u32(1..=4), make.random.bool());
            let step = |number: u32| MemoryUse {
                at: f64::from(seconds * number / steps),
                bytes: (u64::from(if grows {
                    most * (number + 1) / steps
                } else {
                    most
                }) << 30)
                    .max(1 << 28),
            };
            if let Some(job) = make.jobs.last_mut() {
                job.memory = (0..if grows { steps } else { 1 }).map(step).collect();
            }
        }
        at += make.random.u32(120..=900);
    }
    make.trace("hungry")
}

/// Tasks of two CPUs, one after the other, that ask for no memory: what they hold climbs to 4 to 24 GiB, and
/// falls again.
pub fn climbing() -> Trace {
    const STEPS: u32 = 40;
    let mut make = Maker::new(16);
    let mut at = 0;
    while at < HOUR_S {
        let seconds = make.random.u32(400..=900);
        let most = make.random.u32(4..=24);
        make.add(at, seconds, JobDemand::Task(cpus(2.0)));
        let climbs = (0..STEPS).map(|step| MemoryUse {
            at: f64::from(seconds * step) / f64::from(2 * STEPS),
            bytes: (u64::from(most) << 30) * u64::from(step + 1) / u64::from(STEPS),
        });
        let falls = MemoryUse {
            at: f64::from(seconds) * 0.6,
            bytes: 1 << 30,
        };
        if let Some(job) = make.jobs.last_mut() {
            job.memory = climbs.chain([falls]).collect();
        }
        at += seconds + make.random.u32(20..=240);
    }
    make.trace("climbing")
}

/// Waves of tasks that ask for half a CPU to six, and for half a GiB to twelve.
pub fn shapes() -> Trace {
    let mut make = Maker::new(14);
    let mut at = 0;
    while at < 4 * HOUR_S {
        for _ in 0..make.random.u32(4..=30) {
            let halves = [1, 1, 2, 2, 2, 4, 4, 8, 12][make.random.usize(..9)];
            let gib = [0.5, 1.0, 2.0, 4.0, 12.0][make.random.usize(..5)];
            let mut shape = cpus(f64::from(halves) / 2.0);
            shape.insert("memory".to_owned(), gib * GIB);
            let seconds = make.random.u32(20..=240);
            make.add(at, seconds, JobDemand::Task(shape));
        }
        at += make.random.u32(60..=900);
    }
    make.trace("shapes")
}
