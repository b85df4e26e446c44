//! Pictures for docs/elastic.md: what pods have over time, and what jobs use of it, with both strategies.

use std::fmt::Write as _;

use rayfit_core::plan::Strategy;
use rayfit_core::reconcile::RoundSettings;
use rayfit_core::simulate::report::chart::Panel;
use rayfit_core::simulate::report::curve;
use rayfit_core::simulate::settings::WorldSettings;
use rayfit_core::simulate::study::{Study, StudyRow};
use rayfit_core::simulate::trace::Trace;
use serde_json::{Value, json};

use super::made;
use super::pictures::joined;
use super::sets::Cluster;

const WIDTH: f64 = 800.0;

/// The height of the title of a chart.
const TITLE: f64 = 26.0;

/// What the pictures are between in docs/elastic.md.
pub const PLACE: (&str, &str) = (
    "<!-- pictures: make outcome SETS=none -->\n",
    "<!-- /pictures -->\n",
);

/// A workload that is drawn.
struct Scene {
    /// The name of its file.
    file: &'static str,
    /// What it is, as a sentence.
    what: &'static str,
    /// What there is to see, as a sentence.
    see: &'static str,
    trace: fn() -> Trace,
    /// How many seconds of the workload are drawn.
    seconds: f64,
    cluster: fn() -> Value,
}

const SCENES: [Scene; 3] = [
    Scene {
        file: "bursts",
        what: "Bursts of tasks of one CPU, with gaps between them.",
        see: "With Ray's autoscaler pods stay at their resize limits until they go. With Rayfit they come down between \
              bursts, few are kept small, and these grow at once when work comes.",
        trace: made::bursts,
        seconds: 4200.0,
        cluster: growing,
    },
    Scene {
        file: "mixed",
        what: "Tasks of one CPU, one in ten of which runs for 5 to 30 minutes, the others for seconds.",
        see: "Long tasks keep pods busy that were full once. With Ray's autoscaler these pods stay as large as they \
              were; with Rayfit they come down to what runs in them.",
        trace: made::mixed,
        seconds: 5400.0,
        cluster: growing,
    },
    Scene {
        file: "memory",
        what: "Tasks of two CPUs, one after the other, that ask for no memory and hold up to 4 to 24 GiB for a while, with \
               Ray's memory monitor turned off.",
        see: "Ray's autoscaler goes by what tasks have asked for: a task that needs more than 8 GiB is killed, and tried \
              again up to three times. With Rayfit pods get the memory that is really held, and give it back. (What Ray has counts the 8 GiB of the head.)",
        trace: made::climbing,
        seconds: 4200.0,
        cluster: unwatched,
    },
];

fn growing() -> Value {
    Cluster::Growing.manifest()
}

/// The same, without Ray's memory monitor, which goes by the memory that a pod starts with.
pub fn unwatched() -> Value {
    let mut cluster = growing();
    let container = "/spec/workerGroupSpecs/0/template/spec/containers/0";
    cluster.pointer_mut(container).unwrap()["env"] =
        json!([{"name": "RAY_memory_monitor_refresh_ms", "value": "0"}]);
    cluster
}

/// The pictures, each with the name of its file in docs, and what docs/elastic.md says of them.
pub fn all() -> (Vec<(String, String)>, String) {
    let (mut files, mut text) = (Vec::new(), String::new());
    for scene in &SCENES {
        let rows = scene.rows();
        let file = format!("elastic/{}.svg", scene.file);
        let _ = writeln!(
            text,
            "{} {}\n\n![{}]({file})\n",
            scene.what,
            scene.see,
            alternative(scene, &rows)
        );
        files.push((file, picture(&rows)));
    }
    (files, text)
}

/// The page with a text between two of its comments.
pub fn page_with(page: &str, (begin, end): (&str, &str), text: &str) -> Option<String> {
    let (before, rest) = page.split_once(begin)?;
    let (_, after) = rest.split_once(end)?;
    Some(format!("{before}{begin}{text}{end}{after}"))
}

impl Scene {
    fn rows(&self) -> Vec<StudyRow> {
        let mut trace = (self.trace)();
        trace.jobs.retain(|job| job.at < self.seconds);
        let mut world = WorldSettings::default();
        world.set_pod_start(60.0);
        let study = Study {
            price: None,
            cluster: (self.cluster)(),
            trace,
            world,
            reconciler: RoundSettings::default(),
            strategies: vec![Strategy::Ray, Strategy::Rayfit],
            variations: Vec::new(),
        };
        study.run(&mut |_| {}).unwrap()
    }
}

fn picture(rows: &[StudyRow]) -> String {
    let axes = curve::CurveAxes::of(rows, false);
    let panel = |row: &StudyRow| {
        let title = format!("{}: {}", name(row.strategy), figures(row));
        let panel = curve::panel(title, row, &axes, WIDTH, curve::MOST_POINTS);
        let (height, body) = (panel.height + TITLE, panel.body);
        Panel {
            height,
            body: format!("<g transform=\"translate(0 {TITLE})\">{body}</g>"),
            ..panel
        }
    };
    let panels: Vec<_> = rows.iter().map(panel).collect();
    joined(WIDTH, &panels)
}

fn name(strategy: Strategy) -> &'static str {
    match strategy {
        Strategy::Ray => "Ray's autoscaler",
        Strategy::Rayfit => "Rayfit",
    }
}

/// The main figures of a simulation, in words.
fn figures(row: &StudyRow) -> String {
    let result = &row.result;
    let mut said = format!(
        "mean wait {:.0} s, {:.1} CPU-hours of pods for {:.1} of work",
        result.wait.mean, result.cpu_hours.paid, result.cpu_hours.work
    );
    if result.curve.iter().any(|point| point.memory_held > 0.0) {
        let _ = write!(
            said,
            ", {:.0} GiB-hours, {} out of memory",
            result.gib_hours.paid, result.out_of_memory
        );
    }
    said
}

/// What is to be seen, for who cannot see it.
fn alternative(scene: &Scene, rows: &[StudyRow]) -> String {
    let rows = rows.iter();
    let said: Vec<String> = rows
        .map(|row| {
            format!(
                "{}: {}, at most {:.0} cores",
                name(row.strategy),
                figures(row),
                most(row)
            )
        })
        .collect();
    format!(
        "CPUs that jobs use and wait for against what pods have, over {:.0} minutes. {}.",
        scene.seconds / 60.0,
        said.join(". ")
    )
}

/// The most cores that worker pods had.
fn most(row: &StudyRow) -> f64 {
    let cores = row.result.curve.iter().map(|point| point.cores);
    cores.fold(0.0, f64::max)
}
