//! From a set to its figures.

use rayfit::facts::Facts;
use rayfit::plan::Strategy;
use rayfit::policy::Policies;
use rayfit::policy::settings::ReconcileSettings;
use rayfit::ray::RayObject;
use rayfit::reconcile::RoundSettings;
use rayfit::simulate::pools;
use rayfit::simulate::settings::WorldSettings;
use rayfit::simulate::study::Study;
use rayfit::simulate::trace::Trace;
use rayfit::simulate::vary::{Variation, VariedField};

use super::figures::{SetFigures, Setting};
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

    /// How many simulations of a set these are.
    pub fn simulations(&self) -> usize {
        2 * self.pod_starts.len() * self.idles.len() * self.seeds.len()
    }
}

/// Simulates a set with both strategies in all settings, Rayfit's as `policies` say. `progress` hears
/// the share that is done, from 0 to 1.
pub fn measure(
    set: &Set,
    trace: Trace,
    settings: &Settings,
    policies: &Policies,
    progress: &mut dyn FnMut(f64),
) -> SetFigures {
    let pools = set.nodes.map(|text| {
        let document = rayfit::yaml::read(text).remove(0).unwrap();
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
        trace,
        world: WorldSettings {
            pools: pools.unwrap_or_default(),
            ..WorldSettings::default()
        },
        strategies: vec![Strategy::Ray, Strategy::Rayfit],
        variations: vec![
            vary(VariedField::PodStartSeconds, &settings.pod_starts),
            vary(VariedField::IdleTimeoutSeconds, &settings.idles),
        ],
    };
    let mut found: Vec<Setting> = Vec::new();
    for pod_start in &settings.pod_starts {
        let settings = settings.idles.iter();
        found.extend(settings.map(|idle| Setting::new(*pod_start, *idle)));
    }
    for (number, seed) in settings.seeds.iter().enumerate() {
        study.world.seed = *seed;
        #[allow(clippy::cast_precision_loss, reason = "a share")]
        let mut part = |part: f64| progress((number as f64 + part) / settings.seeds.len() as f64);
        let rows = study.run(&mut part).unwrap();
        // They come in the order of what is varied, with both strategies of each.
        for (setting, pair) in found.iter_mut().zip(rows.chunks_exact(2)) {
            for row in pair {
                setting.of_mut(row.strategy).add(&row.result);
            }
        }
    }
    for setting in &mut found {
        setting.ray = std::mem::take(&mut setting.ray).kept();
        setting.rayfit = std::mem::take(&mut setting.rayfit).kept();
    }
    let work = study.trace.work("CPU") / 3600.0;
    SetFigures {
        name: set.name.to_owned(),
        jobs: study.trace.jobs.len(),
        work: (work * 1000.0).round() / 1000.0,
        settings: found,
    }
}
