//! Pictures of a set: for each pod start the wait of both strategies against what they cost.

use std::fmt::Write as _;

use rayfit_core::plan::Strategy;
use rayfit_core::report::html::{COLOURS, escaped};
use rayfit_core::simulate::report::chart::{Panel, STYLE, coordinate};
use rayfit_core::simulate::report::tradeoff;
use rayfit_core::simulate::result::{Cost, SimulationResult, WaitSummary};
use rayfit_core::simulate::study::StudyRow;

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
    joined(WIDTH, &panels)
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

/// A picture that is a file of its own, with its charts one under the other. It has the colours of the
/// reader's screen.
pub fn joined(width: f64, panels: &[Panel]) -> String {
    let (mut body, mut top) = (String::new(), 0.0);
    for (number, panel) in panels.iter().enumerate() {
        let (title, description) = (escaped(&panel.title), escaped(&panel.description));
        let _ = writeln!(
            body,
            "<g role=\"img\" aria-labelledby=\"title-{number} text-{number}\" transform=\"translate(0 {})\">\
             <title id=\"title-{number}\">{title}</title><desc id=\"text-{number}\">{description}</desc>\
             <text class=\"title\" x=\"4\" y=\"17\">{title}</text>{}</g>",
            coordinate(top),
            panel.body,
        );
        top += panel.height;
    }
    let (width, height) = (coordinate(width), coordinate(top));
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" \
         style=\"width:{width}px;height:{height}px\"><style>{COLOURS}{STYLE}svg .title{{font-weight:600}}</style>\
         <rect width=\"{width}\" height=\"{height}\" style=\"fill:var(--ground)\"/>\n{body}</svg>\n"
    )
}
