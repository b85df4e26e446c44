//! From a set to its figures.

use rayfit_core::facts::Facts;
use rayfit_core::plan::{SizedFor, Slice, Strategy};
use rayfit_core::policy::Policies;
use rayfit_core::policy::settings::ReconcileSettings;
use rayfit_core::ray::RayObject;
use rayfit_core::reconcile::RoundSettings;
use rayfit_core::simulate::pools;
use rayfit_core::simulate::settings::WorldSettings;
use rayfit_core::simulate::study::Study;
use rayfit_core::simulate::trace::Trace;
use rayfit_core::simulate::vary::{Variation, VariedField};

use super::figures::{Figures, LIMIT_IDLE_S, SetFigures, Setting};
use super::sets::Set;

/// What is varied.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// From a pod's node to its Ray node, in seconds.
    pub pod_starts: Vec<u32>,
    /// `idleTimeoutSeconds`.
    pub idles: Vec<u32>,
    /// Seeds.
    pub seeds: Vec<u64>,
}

impl Settings {
    /// Those of the page.
    pub fn of_page() -> Self {
        Self {
            pod_starts: vec![1, 60, 300],
            idles: vec![10, 60, 300],
            seeds: vec![1],
        }
    }

    /// Those by which each slice is left out in turn.
    pub fn of_ablation() -> Self {
        Self {
            idles: vec![LIMIT_IDLE_S],
            ..Self::of_page()
        }
    }

    /// How many simulations of a set these are.
    pub fn simulations(&self) -> usize {
        let limits = self.idles.iter().filter(|idle| **idle == LIMIT_IDLE_S);
        self.pod_starts.len() * self.seeds.len() * (2 * self.idles.len() + limits.count())
    }
}

/// Who decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decider {
    /// Strategy `ray`.
    Ray,
    /// Strategy `rayfit`.
    Rayfit,
    /// Strategy `rayfit` without any delay and without foresight, with pods that are made as large as all that waits for
    /// them needs: the limit of what reacting can give.
    Limit,
    /// Strategy `rayfit` without these slices.
    Without(&'static [Slice]),
}

impl Decider {
    /// Has it decide in a study.
    fn decides(self, study: &mut Study) {
        let is_ray = self == Self::Ray;
        study.strategies = vec![if is_ray {
            Strategy::Ray
        } else {
            Strategy::Rayfit
        }];
        let plan = &mut study.reconciler.plan;
        match self {
            Self::Ray | Self::Rayfit => {}
            Self::Without(slices) => plan.left_out.extend(slices),
            Self::Limit => {
                plan.left_out.extend([Slice::SmallPods, Slice::Gaps]);
                plan.initial_sizes = Some(SizedFor::Demand);
                // The scaler sees the true state at every moment: KubeRay, kubelets and pods take the time that they
                // take, and nothing else does. No two moments are nearer to each other than a millisecond.
                let least = 0.001;
                study.world = WorldSettings {
                    watch_lag_s: least,
                    gcs_pull_s: least,
                    call_s: 0.0,
                    tells_at_once: true,
                    ..study.world.clone()
                };
            }
        }
    }
}

/// What a decider leads to with a set, in each setting, in their order; Rayfit decides as `policies` say. `progress` hears
/// the share that is done, from 0 to 1.
pub fn figures(
    (set, trace): (&Set, &Trace),
    decider: Decider,
    settings: &Settings,
    policies: &Policies,
    progress: &mut dyn FnMut(f64),
) -> Vec<Figures> {
    let pools = set.nodes.map(|text| {
        let document = rayfit_core::yaml::read(text).remove(0).unwrap();
        pools::read(&document.value).unwrap()
    });
    let vary = |field, values: &[u32]| Variation {
        field,
        group: None,
        values: values.iter().copied().map(f64::from).collect(),
    };
    let cluster = set.cluster.manifest();
    let object = RayObject::parse(&cluster).unwrap();
    let scaled = policies.reconcile_for(&ReconcileSettings::default(), &object, &Facts::default());
    let mut study = Study {
        price: None,
        reconciler: RoundSettings::of(&scaled),
        cluster,
        trace: trace.clone(),
        world: WorldSettings {
            pools: pools.unwrap_or_default(),
            ..WorldSettings::default()
        },
        strategies: Vec::new(),
        variations: vec![
            vary(VariedField::PodStartSeconds, &settings.pod_starts),
            vary(VariedField::IdleTimeoutSeconds, &settings.idles),
        ],
    };
    decider.decides(&mut study);
    let mut found = vec![Figures::default(); settings.pod_starts.len() * settings.idles.len()];
    for (number, seed) in settings.seeds.iter().enumerate() {
        study.world.seed = *seed;
        #[allow(clippy::cast_precision_loss, reason = "a share")]
        let mut part = |part: f64| progress((number as f64 + part) / settings.seeds.len() as f64);
        // They come in the order of what is varied.
        for (figures, row) in found.iter_mut().zip(study.run(&mut part).unwrap()) {
            figures.add(&row.result);
        }
    }
    found.into_iter().map(Figures::kept).collect()
}

/// Simulates a set with each decider: without delay with one idle timeout only.
pub fn measure(
    set: &Set,
    trace: &Trace,
    settings: &Settings,
    policies: &Policies,
    progress: &mut dyn FnMut(f64),
) -> SetFigures {
    let mut at_limit = settings.clone();
    at_limit.idles.retain(|idle| *idle == LIMIT_IDLE_S);
    let mut done = 0.0;
    let deciders = [
        (Decider::Ray, settings),
        (Decider::Rayfit, settings),
        (Decider::Limit, &at_limit),
    ];
    let [ray, rayfit, mut limit] = deciders.map(|(decider, settings)| {
        let mut part = |part: f64| progress((done + part) / 3.0);
        let found = figures((set, trace), decider, settings, policies, &mut part);
        done += 1.0;
        found.into_iter()
    });
    let starts = settings.pod_starts.iter();
    let mut found: Vec<Setting> = starts
        .flat_map(|start| {
            let idles = settings.idles.iter();
            idles.map(move |idle| Setting::new(*start, *idle))
        })
        .collect();
    for (setting, (ray, rayfit)) in found.iter_mut().zip(ray.zip(rayfit)) {
        (setting.ray, setting.rayfit) = (ray, rayfit);
        let has_limit = setting.idle == LIMIT_IDLE_S;
        setting.limit = has_limit.then(|| limit.next()).flatten();
    }
    let work = trace.work("CPU") / 3600.0;
    SetFigures {
        name: set.name.to_owned(),
        jobs: trace.jobs.len(),
        work: (work * 1000.0).round() / 1000.0,
        settings: found,
    }
}
