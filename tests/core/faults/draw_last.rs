//! What plans by seed got last: settings of pods in place, jobs that need growth, and faults that mislead.

use super::draw::{Draw, SPAN_S};
use super::plan::{Fault, FaultKind};
use super::scene::MEMORY_GI;
use super::scene::{Scene, SceneInPlace, SceneJob};
use crate::faults::lies::GcsLie;
use crate::faults::trouble::{CallEvent, CallKind, LostWatches};

/// The progress deadline where pods hang, in seconds: longer than the slowest pods take to start, and short of
/// the time in which all has to be served.
const DEADLINE_S: u32 = 110;

impl Draw {
    /// In a part of the scenes: other settings of pods in place, jobs that need a pod that has grown, and
    /// what else can go wrong.
    pub(super) fn what_came_last(&mut self, scene: &mut Scene, faults: &mut Vec<Fault>) {
        if self.one_in(3) {
            scene.settings.in_place = Some(SceneInPlace {
                shrink_after_seconds: self.one_of(&[0, 10, 15, 40]),
                keep_small_seconds: self.one_of(&[0, 60, 120, 200]),
                learn_gaps: self.0.bool(),
                follow_memory: !self.one_in(4),
            });
        }
        let grown: Vec<i64> = scene
            .groups
            .iter()
            .filter_map(|group| group.max_cores)
            .collect();
        if let Some(cores) = grown.iter().copied().max()
            && self.one_in(3)
        {
            self.needs_growth(&mut scene.jobs, cores);
        }
        let follows = (scene.settings.in_place.as_ref()).is_none_or(|one| one.follow_memory);
        if follows
            && scene.settings.strategy.is_rayfit()
            && grown.len() == scene.groups.len()
            && let Some(cores) = grown.iter().copied().min()
            && self.one_in(2)
        {
            self.climbs(&mut scene.jobs, cores);
        }
        if self.one_in(2) {
            let count = self.0.usize(1..=2);
            faults.extend((0..count).map(|_| self.later_kind()));
            // What Ray's own strategy makes of lies is its own; the rest is for scripts only.
            let is_rayfit = scene.settings.strategy.is_rayfit();
            faults.retain(|fault| match fault.kind {
                FaultKind::GcsLies { .. } => is_rayfit,
                FaultKind::HeadLost { .. } => false,
                _ => true,
            });
        }
        self.what_came_after_that(faults);
        // What Ray's own strategy makes of pods that have resources as a whole is its own.
        if scene.settings.strategy.is_rayfit() && self.one_in(4) {
            self.bounds_pods(scene);
        }
        scene.settings.initial_sizes = scene.settings.strategy.is_rayfit() && self.one_in(3);
        // Ray's own autoscaler waits for such pods for an hour, and for some for ever.
        if scene.settings.strategy.is_rayfit() && self.one_in(4) {
            scene.settings.progress_deadline_seconds = Some(DEADLINE_S);
            for _ in 0..self.0.usize(1..=2) {
                let (group, seconds) = (self.0.usize(..2), self.seconds(5.0, 60.0));
                let kind = if self.0.bool() {
                    FaultKind::DeletionsHang { group, seconds }
                } else {
                    FaultKind::InitContainersHang { group, seconds }
                };
                faults.push(self.sometime(kind));
            }
        }
    }

    /// Pods that may grow have resources as a whole, within which they do.
    fn bounds_pods(&mut self, scene: &mut Scene) {
        let uses = scene.jobs.iter().flat_map(|job| &job.uses_gi);
        let needed_gi = uses.fold(0.0, |most: f64, (_, gi)| most.max(*gi));
        for group in &mut scene.groups {
            let most = group.max_cores.filter(|most| *most > group.cores);
            let cores = most.map(|most| self.0.i64(group.cores + 1..=most));
            // A job that uses more would be killed for ever.
            #[expect(clippy::cast_precision_loss, reason = "some GiB")]
            let holds = |cores: &i64| needed_gi <= 0.8 * (cores * MEMORY_GI) as f64;
            group.pod_cores = cores.filter(holds);
        }
    }

    /// In a part of the scenes: the head is lost, reads are out of date, a burst is told of in parts.
    fn what_came_after_that(&mut self, faults: &mut Vec<Fault>) {
        if self.one_in(6) {
            let kind = FaultKind::HeadLost {
                node: self.0.bool(),
                again: true,
            };
            faults.push(self.sometime(kind));
        }
        if self.one_in(5) {
            let seconds = self.seconds(1.0, 40.0);
            faults.push(self.sometime(FaultKind::ReadsHeld { seconds }));
        }
        if self.one_in(6) {
            let kind = FaultKind::DemandInPart {
                percent: self.one_of(&[0, 10, 30, 60]),
                seconds: self.seconds(1.0, 30.0),
            };
            faults.push(self.sometime(kind));
        }
    }

    fn sometime(&mut self, kind: FaultKind) -> Fault {
        let at = self.seconds(0.0, SPAN_S);
        Fault { at, kind }
    }

    /// One or two tasks get a size that only a pod has that has grown so far.
    fn needs_growth(&mut self, jobs: &mut [SceneJob], cores: i64) {
        let count = self.0.usize(1..=2);
        let tasks = jobs.iter_mut().filter(|job| job.bundles.is_none());
        for job in tasks.take(count) {
            #[expect(clippy::cast_precision_loss, reason = "some cores")]
            let cpu = cores as f64;
            (job.cpu, job.memory_gi) = (cpu, 0.0);
        }
    }

    /// The memory that a task uses climbs to more than its share of a pod, and less than a pod of so many
    /// cores can have.
    fn climbs(&mut self, jobs: &mut [SceneJob], cores: i64) {
        #[expect(clippy::cast_precision_loss, reason = "some GiB")]
        let most = (cores * MEMORY_GI) as f64 * self.one_of(&[0.4, 0.6, 0.8]);
        let steps = self.0.u32(6..=30);
        let pause = self.seconds(1.0, 6.0);
        if let Some(job) = jobs.iter_mut().rfind(|job| job.bundles.is_none()) {
            let part = |step: u32| f64::from(step) / f64::from(steps);
            let steps = (1..=steps).map(|step| (pause * f64::from(step - 1), most * part(step)));
            job.uses_gi = steps.collect();
            job.seconds = job.uses_gi.last().map_or(10.0, |(at, _)| at + 10.0);
        }
    }

    fn later_kind(&mut self) -> Fault {
        let at = self.seconds(0.0, SPAN_S);
        let seconds = self.seconds(5.0, 60.0);
        let pick = self.0.usize(..100);
        let kind = match self.0.usize(..14) {
            0..=3 => FaultKind::GcsLies {
                lie: self.one_of(&GcsLie::ALL),
                seconds,
            },
            4..=6 => FaultKind::WatchOvertaken {
                of: self.one_of(&[
                    LostWatches::RayCluster,
                    LostWatches::Pods,
                    LostWatches::Nodes,
                ]),
                lag: self.seconds(0.2, 15.0),
                seconds,
            },
            7..=9 => FaultKind::AtCall {
                of: self.one_of(&CallKind::ALL),
                event: self.one_of(&CallEvent::ALL),
                seconds: 60.0,
            },
            10 => FaultKind::CallsSlow {
                takes: self.seconds(0.1, 3.5),
                seconds,
            },
            11 => FaultKind::NodeDrained { pick, seconds },
            12 => FaultKind::NodesFilled { seconds },
            _ => self.rare_kind(seconds),
        };
        Fault { at, kind }
    }

    fn rare_kind(&mut self, seconds: f64) -> FaultKind {
        if self.one_in(3) {
            return FaultKind::HeadLost {
                node: false,
                again: false,
            };
        }
        FaultKind::ResourcesRequested {
            cpu: self.one_of(&[1.0, 2.0]),
            bundles: self.0.i64(1..5),
            seconds,
        }
    }
}
