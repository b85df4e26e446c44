//! Plans of faults by seed.

use rayfit_core::plan::Strategy;
use rayfit_core::simulate::trace::PlacementStrategy;

use super::plan::{Cut, Fault, FaultKind, FaultPlan};
use super::scene::{Scene, SceneGroup, SceneJob, SceneSettings};
use super::standby::{SceneSchedule, SceneStandby};
use crate::faults::trouble::{Answer, CallKind, LostWatches, ResizeRefusal};

/// In how many seconds from the first job on jobs are submitted and faults begin.
pub(super) const SPAN_S: f64 = 90.0;

/// The most faults of a plan.
const MOST_FAULTS: usize = 5;

/// The plan of a seed.
pub(crate) fn plan(seed: u64) -> FaultPlan {
    // The world has the seed itself, and would draw the same numbers.
    let mut draw = Draw(fastrand::Rng::with_seed(seed ^ 0x000F_A017));
    let scene = draw.scene(seed);
    let count = draw.0.usize(1..=MOST_FAULTS);
    let faults = (0..count).map(|_| Fault {
        at: draw.seconds(0.0, SPAN_S),
        kind: draw.kind(),
    });
    let mut faults: Vec<Fault> = faults.collect();
    // What came later is drawn last, so that a seed goes on meaning what it did.
    let mut scene = scene;
    scene.settings.standby = draw.one_in(4).then(|| draw.standby());
    scene.settings.judged = draw.one_in(4);
    if draw.one_in(6) {
        faults.push(draw.quota());
    }
    if draw.one_in(4) {
        scene.settings.replicas = Some(2);
        let count = draw.0.usize(1..=3);
        faults.extend((0..count).map(|_| draw.of_replica()));
    }
    if draw.one_in(3) {
        for job in scene.jobs.iter_mut().filter(|job| job.bundles.is_none()) {
            job.uses_gi = draw.uses(job.cpu, job.seconds);
        }
    }
    draw.what_came_last(&mut scene, &mut faults);
    faults.sort_by(|one, other| one.at.total_cmp(&other.at));
    FaultPlan { scene, faults }
}

/// Draws by one seed.
pub(super) struct Draw(pub(super) fastrand::Rng);

impl Draw {
    /// Seconds in whole tenths, which are easy to read.
    pub(super) fn seconds(&mut self, from: f64, to: f64) -> f64 {
        let seconds = from + self.0.f64() * (to - from);
        (seconds * 10.0).round() / 10.0
    }

    /// Whether it is the one case in so many.
    pub(super) fn one_in(&mut self, many: usize) -> bool {
        self.0.usize(..many) == 0
    }

    pub(super) fn one_of<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.0.usize(..of.len())]
    }

    fn scene(&mut self, seed: u64) -> Scene {
        let strategy = self.one_of(&[Strategy::Rayfit, Strategy::Rayfit, Strategy::Ray]);
        let grows = !self.one_in(4);
        let small = SceneGroup {
            name: "small".to_owned(),
            cores: 1,
            max_cores: grows.then_some(self.0.i64(2..=4)),
            pod_cores: None,
            min: self.0.i64(0..=1),
            max: self.0.i64(3..=6),
            hosts: 1,
        };
        let large = SceneGroup {
            name: "large".to_owned(),
            cores: 2,
            max_cores: (grows && self.0.bool()).then_some(4),
            pod_cores: None,
            min: 0,
            max: self.0.i64(1..=3),
            // Ray rounds launches down to whole replicas, and so may never make one.
            hosts: if strategy == Strategy::Rayfit && self.one_in(4) {
                2
            } else {
                1
            },
        };
        let settings = SceneSettings {
            seed,
            strategy,
            idle_timeout_seconds: self.0.u32(10..=30),
            node_cores: self.0.i64(6..=16),
            max_workers: self.one_in(4).then_some(self.0.u64(4..=6)),
            // With strategy Ray the replicas of pods that end by themselves are made anew.
            pod_end_seconds: (strategy == Strategy::Rayfit && self.0.bool()).then_some(1.0),
            stranger: self.one_in(4),
            ..SceneSettings::default()
        };
        let uses_memory = self.one_in(3);
        let jobs = (0..self.0.usize(8..=15)).map(|_| self.job(uses_memory));
        Scene {
            settings,
            groups: vec![small, large],
            jobs: jobs.collect(),
        }
    }

    fn standby(&mut self) -> SceneStandby {
        let has_room = self.0.bool();
        SceneStandby {
            cpus: if has_room { self.0.u32(0..4) } else { 0 },
            share_percent: if has_room {
                self.one_of(&[0, 0, 25, 50])
            } else {
                0
            },
            schedule: (!has_room || self.0.bool()).then(|| SceneSchedule {
                from: self.0.i64(1..3),
                minutes: self.0.i64(1..3),
                min: self.0.u32(0..4),
                cpus: self.0.u32(0..4),
            }),
        }
    }

    fn quota(&mut self) -> Fault {
        Fault {
            at: self.seconds(0.0, SPAN_S),
            kind: FaultKind::QuotaSet {
                cores: self.0.i64(1..8),
                seconds: self.seconds(5.0, 60.0),
            },
        }
    }

    fn of_replica(&mut self) -> Fault {
        let replica = self.0.usize(..2);
        let seconds = self.seconds(0.5, 40.0);
        Fault {
            at: self.seconds(0.0, SPAN_S),
            kind: match self.0.usize(..5) {
                0 => FaultKind::ReplicaDies { replica, seconds },
                1 => FaultKind::ReplicaStops { replica, seconds },
                2 => FaultKind::ReplicaCut {
                    replica,
                    what: self.one_of(&[Cut::Requests, Cut::Answers]),
                    seconds,
                },
                3 => FaultKind::ReplicaFrozen { replica, seconds },
                _ => FaultKind::CallsSlow {
                    takes: self.seconds(0.1, 3.5),
                    seconds,
                },
            },
        }
    }

    fn job(&mut self, uses_memory: bool) -> SceneJob {
        let kind = self.0.usize(..10);
        let bundles = [PlacementStrategy::Pack, PlacementStrategy::StrictSpread];
        SceneJob {
            at: self.seconds(0.0, SPAN_S),
            seconds: f64::from(self.0.u32(3..40)),
            cpu: self.one_of(&[0.5, 1.0, 1.0, 2.0]),
            memory_gi: if uses_memory {
                self.one_of(&[0.0, 1.0, 2.0, 5.0])
            } else {
                0.0
            },
            uses_gi: Vec::new(),
            actor: (1..3).contains(&kind),
            bundles: (kind == 0).then(|| self.one_of(&bundles)),
        }
    }

    /// The memory that a job uses: it climbs in steps to its share of a pod at the most, and may free it
    /// again.
    fn uses(&mut self, cpu: f64, seconds: f64) -> Vec<(f64, f64)> {
        let steps = self.0.u32(1..=6);
        let most = 4.0 * cpu * self.one_of(&[0.2, 0.5, 0.9]);
        let part = |step: u32| f64::from(step) / f64::from(steps);
        let mut uses: Vec<(f64, f64)> = (1..=steps)
            .map(|step| (seconds * 0.7 * (part(step) - part(1)), most * part(step)))
            .collect();
        if self.0.bool() {
            uses.push((seconds * 0.75, 0.1));
        }
        uses
    }

    fn kind(&mut self) -> FaultKind {
        let group = self.0.usize(..2);
        let pick = self.0.usize(..100);
        match self.0.usize(..28) {
            0..=2 => FaultKind::ScalerDies {
                calls: self.0.u32(..4),
                is_done: self.0.bool(),
                seconds: self.seconds(0.1, 20.0),
            },
            3..=5 => FaultKind::CallsFail {
                calls: self.0.u32(1..12),
                answer: self.answer(),
                is_done: self.0.bool(),
            },
            6 => FaultKind::WatchLags {
                lag: self.seconds(0.2, 15.0),
                seconds: self.seconds(5.0, 90.0),
            },
            7 | 8 => FaultKind::WatchStops {
                of: self.one_of(&[
                    LostWatches::All,
                    LostWatches::RayCluster,
                    LostWatches::Pods,
                    LostWatches::Nodes,
                ]),
                seconds: self.seconds(1.0, 60.0),
            },
            9 => FaultKind::GcsAway {
                seconds: self.seconds(1.0, 60.0),
            },
            10 => FaultKind::GcsRestarts {
                seconds: self.seconds(0.5, 20.0),
            },
            11 => FaultKind::ResizesRefused {
                refusal: self.one_of(&[ResizeRefusal::Deferred, ResizeRefusal::Infeasible]),
                seconds: self.seconds(5.0, 90.0),
            },
            12 => FaultKind::NodeLost { pick },
            13 => FaultKind::PodFails { pick },
            14 => FaultKind::PodsStartSlowly {
                takes: self.seconds(20.0, 100.0),
                seconds: self.seconds(10.0, 60.0),
            },
            15 => FaultKind::MaxReplicas {
                group,
                max: self.0.i64(0..3),
                seconds: self.seconds(5.0, 90.0),
            },
            16 => FaultKind::GroupSuspended {
                group,
                seconds: self.seconds(5.0, 60.0),
            },
            17 if self.0.bool() => FaultKind::GroupRemoved,
            17 | 18 => FaultKind::ReplicasReset {
                group,
                replicas: self.0.i64(0..4),
            },
            19 => FaultKind::WatchRepeats {
                ago: self.seconds(0.5, 30.0),
            },
            20 => FaultKind::LeaseLost {
                seconds: self.seconds(0.1, 20.0),
            },
            21 | 22 => FaultKind::CallsRefused {
                of: self.one_of(&CallKind::ALL),
                answer: self.answer(),
                seconds: self.seconds(5.0, 60.0),
            },
            23 => FaultKind::MinReplicas {
                group,
                min: self.0.i64(0..3),
                seconds: self.seconds(5.0, 90.0),
            },
            24 => FaultKind::ManifestApplied,
            25 => FaultKind::GrowthRemoved {
                seconds: self.seconds(5.0, 60.0),
            },
            26 => self.one_of(&[FaultKind::PodDeleted { pick }, FaultKind::NotesRemoved]),
            _ => FaultKind::ClockAhead {
                by: self.seconds(-600.0, 3600.0),
                seconds: self.seconds(5.0, 60.0),
            },
        }
    }

    fn answer(&mut self) -> Answer {
        self.one_of(&[
            Answer::Conflict,
            Answer::Invalid,
            Answer::QuotaExceeded,
            Answer::TooManyRequests,
            Answer::InternalError,
            Answer::Unavailable,
            Answer::Silence,
        ])
    }
}
