//! The two strategies beside each other: ratios of Rayfit's figures to Ray's, and who is better.

use std::cmp::Ordering;

use super::figures::{Figures, SetFigures, Setting, mean};

/// Ratios nearer to 1 than this are no difference.
pub const SAME: f64 = 0.01;

/// Something that is better when it is less.
#[derive(Debug, Clone, Copy)]
pub struct Metric {
    /// Its name.
    pub name: &'static str,
    /// Its figures, by seed.
    pub of: fn(&Figures) -> &Vec<f64>,
    /// What is below this counts as this, as a ratio to nearly nothing says nothing.
    pub floor: f64,
}

/// The mean wait.
pub const WAIT: Metric = Metric {
    name: "mean wait",
    of: |figures| &figures.wait,
    floor: 0.1,
};

/// The wait of the 99th of 100 jobs.
pub const P99: Metric = Metric {
    name: "p99 wait",
    of: |figures| &figures.p99,
    floor: 0.1,
};

/// CPU-hours of worker pods.
pub const CPU_HOURS: Metric = Metric {
    name: "CPU-hours",
    of: |figures| &figures.cpu_hours,
    floor: 0.001,
};

/// GPU-hours of worker pods.
pub const GPU_HOURS: Metric = Metric {
    name: "GPU-hours",
    of: |figures| &figures.gpu_hours,
    floor: 0.001,
};

/// Jobs that were harmed, lost, or never ran.
pub const HARMED: Metric = Metric {
    name: "jobs harmed or never run",
    of: |figures| &figures.harmed,
    floor: 0.5,
};

/// All of them.
pub const ALL: [Metric; 5] = [WAIT, P99, CPU_HOURS, GPU_HOURS, HARMED];

impl Metric {
    /// The mean over all seeds.
    pub fn mean(&self, figures: &Figures) -> f64 {
        mean((self.of)(figures))
    }

    /// Rayfit's mean as a multiple of Ray's.
    pub fn ratio(&self, setting: &Setting) -> f64 {
        self.divided(self.mean(&setting.rayfit), self.mean(&setting.ray))
    }

    /// Rayfit's mean as a multiple of that of the decider without delay, where there is one.
    pub fn regret(&self, setting: &Setting) -> Option<f64> {
        let limit = self.mean(setting.limit.as_ref()?);
        Some(self.divided(self.mean(&setting.rayfit), limit))
    }

    /// A mean as a multiple of another one.
    pub fn divided(&self, one: f64, other: f64) -> f64 {
        one.max(self.floor) / other.max(self.floor)
    }

    /// Whether Rayfit has less or more. Equal is what differs by less than [`SAME`], and where one seed
    /// says less and another one more.
    pub fn order(&self, setting: &Setting) -> Ordering {
        let side = |ratio: f64| match ratio {
            _ if ratio < 1.0 - SAME => Ordering::Less,
            _ if ratio > 1.0 + SAME => Ordering::Greater,
            _ => Ordering::Equal,
        };
        let (rayfit, ray) = ((self.of)(&setting.rayfit), (self.of)(&setting.ray));
        let at = |figures: &[f64], seed: usize| figures.get(seed).copied().unwrap_or(0.0);
        let order = side(self.ratio(setting));
        let seeds = 0..rayfit.len().max(ray.len());
        let mut sides = seeds.map(|seed| side(self.divided(at(rayfit, seed), at(ray, seed))));
        if sides.any(|side| side == order.reverse() && side != Ordering::Equal) {
            return Ordering::Equal;
        }
        order
    }
}

/// How Rayfit does beside Ray in a setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Something is better, and nothing worse.
    Better,
    /// Nothing differs.
    Same,
    /// Something is better, and something else worse.
    Traded,
    /// Something is worse, and nothing better.
    Worse,
}

impl Verdict {
    /// The verdict on a setting.
    pub fn on(setting: &Setting) -> Self {
        let has = |order: Ordering| ALL.iter().any(|metric| metric.order(setting) == order);
        match (has(Ordering::Less), has(Ordering::Greater)) {
            (true, false) => Self::Better,
            (false, false) => Self::Same,
            (true, true) => Self::Traded,
            (false, true) => Self::Worse,
        }
    }
}

/// The part of the avoidable wait that is gone: Ray's wait less Rayfit's, of Ray's less that of the decider without delay,
/// both as parts of Ray's wait, so that each setting counts as much as the others. `None` where little can be avoided.
pub fn wait_gone<'a>(settings: impl IntoIterator<Item = &'a Setting>) -> Option<f64> {
    let (mut gone, mut avoidable) = (0.0, 0.0);
    for setting in settings {
        let wait = |figures: &Figures| WAIT.mean(figures).max(WAIT.floor);
        let Some(limit) = setting.limit.as_ref().map(wait) else {
            continue;
        };
        let ray = wait(&setting.ray);
        gone += (ray - wait(&setting.rayfit)) / ray;
        avoidable += (ray - limit) / ray;
    }
    (avoidable > SAME).then(|| gone / avoidable)
}

/// The geometric mean of ratios; `None` without any.
pub fn geometric_mean(ratios: impl IntoIterator<Item = f64>) -> Option<f64> {
    let (mut sum, mut count) = (0.0, 0.0);
    for ratio in ratios {
        sum += f64::ln(ratio);
        count += 1.0;
    }
    (count > 0.0).then(|| f64::exp(sum / count))
}

/// Of the settings of a set with one pod start: how many points of one strategy are beaten by a point of
/// the other one, with whatever idle timeout, that waits no longer, costs no more, and differs. First
/// Ray's points that Rayfit beats, then Rayfit's that Ray beats.
pub fn beaten(set: &SetFigures, pod_start: u32) -> (usize, usize) {
    let settings = || set.settings.iter().filter(|one| one.pod_start == pod_start);
    let point = |figures: &Figures| (WAIT.mean(figures).max(WAIT.floor), CPU_HOURS.mean(figures));
    let ray: Vec<_> = settings().map(|setting| point(&setting.ray)).collect();
    let rayfit: Vec<_> = settings().map(|setting| point(&setting.rayfit)).collect();
    let beats = |one: &(f64, f64), other: &(f64, f64)| {
        let is_less = |one: f64, other: f64| one < other * (1.0 - SAME);
        let no_worse = one.0 <= other.0 && one.1 <= other.1;
        no_worse && (is_less(one.0, other.0) || is_less(one.1, other.1))
    };
    let count = |losers: &[(f64, f64)], winners: &[(f64, f64)]| {
        let is_beaten = |point: &&(f64, f64)| winners.iter().any(|winner| beats(winner, point));
        losers.iter().filter(is_beaten).count()
    };
    (count(&ray, &rayfit), count(&rayfit, &ray))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn setting(ray: [[f64; 2]; 2], rayfit: [[f64; 2]; 2]) -> Setting {
        let figures = |[wait, cpu_hours]: [[f64; 2]; 2]| Figures {
            p99: wait.to_vec(),
            wait: wait.to_vec(),
            cpu_hours: cpu_hours.to_vec(),
            ..Figures::default()
        };
        Setting {
            ray: figures(ray),
            rayfit: figures(rayfit),
            ..Setting::new(1, 10)
        }
    }

    #[test]
    fn nobody_wins_by_trading() {
        let ray = [[10.0, 12.0], [2.0, 2.0]];
        for (rayfit, verdict) in [
            ([[5.0, 6.0], [2.0, 2.0]], Verdict::Better),
            ([[10.0, 12.05], [2.0, 2.0]], Verdict::Same),
            ([[5.0, 6.0], [3.0, 3.0]], Verdict::Traded),
            ([[10.0, 12.0], [2.0, 2.2]], Verdict::Worse),
            // The seeds do not agree.
            ([[5.0, 20.0], [2.0, 2.0]], Verdict::Same),
        ] {
            assert_eq!(Verdict::on(&setting(ray, rayfit)), verdict, "{rayfit:?}");
        }
    }

    #[test]
    fn what_is_gone_is_a_part_of_what_can_be_avoided() {
        let with_limit = |rayfit: f64, limit: f64| Setting {
            limit: Some(Figures {
                wait: vec![limit],
                ..Figures::default()
            }),
            ..setting([[8.0; 2], [2.0; 2]], [[rayfit; 2], [2.0; 2]])
        };
        assert_eq!(wait_gone([&with_limit(3.0, 2.0)]), Some(5.0 / 6.0));
        assert_eq!(wait_gone([&with_limit(9.0, 10.0)]), None);
        let both = [&with_limit(2.0, 2.0), &with_limit(8.0, 2.0)];
        assert_eq!(wait_gone(both), Some(0.5));
    }

    #[test]
    fn a_point_is_beaten_by_one_that_is_nowhere_worse() {
        let set = SetFigures {
            name: String::new(),
            jobs: 1,
            work: 1.0,
            settings: vec![
                setting([[10.0; 2], [2.0; 2]], [[12.0; 2], [1.0; 2]]),
                setting([[20.0; 2], [1.5; 2]], [[30.0; 2], [3.0; 2]]),
            ],
        };
        assert_eq!(beaten(&set, 1), (1, 1));
        assert_eq!(beaten(&set, 60), (0, 0));
    }
}
