//! Plans of faults by seed.

use super::plan::{Fault, FaultKind, FaultPlan};
use crate::simulate::world::trouble::{Answer, ResizeRefusal};

/// In how many seconds from the first job on faults begin.
const SPAN_S: f64 = 240.0;

/// The most faults of a plan.
const MOST_FAULTS: usize = 8;

/// The plan of a seed.
pub fn plan(seed: u64) -> FaultPlan {
    let mut draw = Draw(fastrand::Rng::with_seed(seed ^ 0x000F_A017));
    let count = draw.0.usize(1..=MOST_FAULTS);
    let faults = (0..count).map(|_| Fault {
        at: draw.seconds(0.0, SPAN_S),
        kind: draw.kind(),
    });
    let mut faults: Vec<Fault> = faults.collect();
    faults.sort_by(|one, other| one.at.total_cmp(&other.at));
    FaultPlan { seed, faults }
}

struct Draw(fastrand::Rng);

impl Draw {
    /// Seconds in whole tenths, which are easy to read.
    fn seconds(&mut self, from: f64, to: f64) -> f64 {
        let seconds = from + self.0.f64() * (to - from);
        (seconds * 10.0).round() / 10.0
    }

    fn kind(&mut self) -> FaultKind {
        let group = self.0.usize(..2);
        let pick = self.0.usize(..100);
        match self.0.usize(..20) {
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
            7 => FaultKind::WatchStops {
                seconds: self.seconds(1.0, 60.0),
            },
            8 => FaultKind::GcsAway {
                seconds: self.seconds(1.0, 60.0),
            },
            9 => FaultKind::GcsRestarts {
                seconds: self.seconds(0.5, 20.0),
            },
            10 => FaultKind::ResizesRefused {
                refusal: ResizeRefusal::Deferred,
                seconds: self.seconds(5.0, 120.0),
            },
            11 => FaultKind::ResizesRefused {
                refusal: ResizeRefusal::Infeasible,
                seconds: self.seconds(5.0, 60.0),
            },
            12 => FaultKind::NodeLost { pick },
            13 => FaultKind::PodFails { pick },
            14 => FaultKind::PodsStartSlowly {
                takes: self.seconds(20.0, 200.0),
                seconds: self.seconds(10.0, 60.0),
            },
            15 => FaultKind::MaxReplicas {
                group,
                max: self.0.i64(0..3),
                seconds: self.seconds(5.0, 120.0),
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
            _ => FaultKind::ClockAhead {
                by: self.seconds(1.0, 3600.0),
                seconds: self.seconds(5.0, 60.0),
            },
        }
    }

    fn answer(&mut self) -> Answer {
        let answers = [
            Answer::Conflict,
            Answer::Invalid,
            Answer::TooManyRequests,
            Answer::InternalError,
            Answer::Unavailable,
            Answer::Silence,
        ];
        answers[self.0.usize(..answers.len())]
    }
}
