//! Pictures of a set: for each pod start the wait of both strategies against what they cost.

use rayfit::plan::Strategy;
use rayfit::simulate::report::{chart, tradeoff};
use rayfit::simulate::result::{Cost, SimulationResult, WaitSummary};
use rayfit::simulate::study::StudyRow;

use super::compare::{CPU_HOURS, WAIT};
use super::figures::{Results, SetFigures};
use super::page::pod_starts;

const WIDTH: f64 = 800.0;
const HEIGHT: f64 = 260.0;

/// The pictures, each with the name of its file beside the page.
pub fn all(results: &Results) -> Vec<(String, String)> {
    let picture = |set: &SetFigures| (file(set), picture(set));
    results.sets.iter().map(picture).collect()
}

/// The name of the file with the picture of a set.
pub fn file(set: &SetFigures) -> String {
    format!("outcome/{}.svg", set.name)
}

fn picture(set: &SetFigures) -> String {
    let panel = |pod_start: u32| {
        let rows = rows(set, pod_start);
        let title = format!("pods start in {pod_start} s");
        tradeoff::panel(&rows, &title, (WIDTH, HEIGHT))
    };
    let panels: Vec<_> = pod_starts(&set.settings).into_iter().map(panel).collect();
    chart::picture(WIDTH, &panels)
}

/// The mean figures of a set with one pod start, as rows of a study that varies the idle timeout.
fn rows(set: &SetFigures, pod_start: u32) -> Vec<StudyRow> {
    let settings = set.settings.iter().filter(|one| one.pod_start == pod_start);
    let row = |(strategy, idle, figures)| StudyRow {
        strategy,
        set: vec![("idleTimeoutSeconds".to_owned(), f64::from(idle))],
        result: SimulationResult {
            wait: WaitSummary {
                mean: WAIT.mean(figures),
                ..WaitSummary::default()
            },
            cpu_hours: Cost {
                paid: CPU_HOURS.mean(figures),
                work: set.work,
                ..Cost::default()
            },
            ..SimulationResult::default()
        },
    };
    let both = [Strategy::Ray, Strategy::Rayfit];
    settings
        .flat_map(|one| both.map(|strategy| row((strategy, one.idle, one.of(strategy)))))
        .collect()
}
