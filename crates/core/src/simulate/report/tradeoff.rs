//! Cost against waiting: each simulation of a study as a point.

use std::fmt::Write as _;

use crate::plan::Strategy;
use crate::report::html::escaped;
use crate::simulate::report::axis::{Axis, number_of};
use crate::simulate::report::chart::{Frame, Panel, coordinate, svg};
use crate::simulate::report::table::row_name;
use crate::simulate::study::StudyRow;

const SIZE: (f64, f64) = (1000.0, 400.0);

/// The cost of a simulation and its unit: a multiple of the work, or CPU-hours where jobs ask for
/// no CPUs.
fn cost(row: &StudyRow) -> (f64, &'static str) {
    let hours = row.result.cpu_hours;
    hours
        .ratio()
        .map_or((hours.paid, " CPU-hours"), |ratio| (ratio, "x"))
}

/// The chart.
pub fn chart(rows: &[StudyRow]) -> String {
    let title = "Cost against mean wait, by simulation";
    let panel = panel(rows, title, SIZE);
    svg("tradeoff", SIZE, title, &panel.description, &panel.body)
}

/// The chart as a part of a picture, in a size. Simulations of one strategy that differ in the last field
/// that is varied are joined.
pub fn panel(rows: &[StudyRow], title: &str, size: (f64, f64)) -> Panel {
    let frame = Frame {
        left: 56.0,
        top: 50.0,
        right: size.0 - 16.0,
        bottom: size.1 - 50.0,
    };
    let costs = rows.iter().map(|row| cost(row).0);
    let waits = rows.iter().map(|row| row.result.wait.mean);
    let unit = rows.first().map_or("", |row| cost(row).1);
    let (least, most) = range(costs);
    let across = Axis::around(least, most, unit);
    let (least, most) = range(waits);
    let up = Axis::around(least, most, "s");
    let what = if unit == "x" {
        "CPU-hours of worker pods, as a multiple of the work"
    } else {
        "CPU-hours of worker pods"
    };
    let place = |row: &StudyRow| {
        let x = frame.x(&across, cost(row).0);
        (x, frame.y(&up, row.result.wait.mean))
    };
    let mut body = String::new();
    frame.draw_height(&mut body, &up, "mean wait (s)");
    frame.draw_width(&mut body, &across, what);
    legend(&mut body, rows, frame.left + 160.0);
    for line in lines(rows) {
        let places = line.iter().map(|row| {
            let (x, y) = place(row);
            format!("{} {}", coordinate(x), coordinate(y))
        });
        let (class, path) = (line[0].strategy, places.collect::<Vec<_>>().join("L"));
        let _ = write!(body, "<path class=\"{class} path\" d=\"M{path}\"/>");
    }
    for row in rows {
        let (x, y) = place(row);
        let text = escaped(&summary(row));
        let class = row.strategy;
        let mark = mark(row.strategy, x, y);
        let _ = write!(body, "<g class=\"{class}\"><title>{text}</title>{mark}</g>");
    }
    labels(&mut body, rows, &frame, place);
    let description: Vec<String> = rows.iter().take(MOST_SAID).map(summary).collect();
    let more = if rows.len() > MOST_SAID {
        " The table below has them all."
    } else {
        ""
    };
    Panel {
        height: size.1,
        title: title.to_owned(),
        description: format!("{}.{more}", description.join("; ")),
        body,
    }
}

/// The number of simulations that the description names.
const MOST_SAID: usize = 20;

fn summary(row: &StudyRow) -> String {
    let (cost, unit) = cost(row);
    let (name, wait) = (row_name(row), row.result.wait.mean);
    format!("{name}: {cost:.2}{unit}, {wait:.1} s")
}

fn range(values: impl Iterator<Item = f64>) -> (f64, f64) {
    let ends = (f64::INFINITY, f64::NEG_INFINITY);
    let (least, most) = values.fold(ends, |(least, most), value| {
        (least.min(value), most.max(value))
    });
    if least.is_finite() && most.is_finite() {
        (least, most)
    } else {
        (0.0, 1.0)
    }
}

/// The simulations that differ in nothing but the last field that is varied, in its order.
fn lines(rows: &[StudyRow]) -> Vec<Vec<&StudyRow>> {
    let mut lines: Vec<Vec<&StudyRow>> = Vec::new();
    for row in rows {
        let others = row.set.len().saturating_sub(1);
        let belongs = |line: &&mut Vec<&StudyRow>| {
            line[0].strategy == row.strategy && line[0].set[..others] == row.set[..others]
        };
        match lines.iter_mut().find(belongs) {
            Some(line) => line.push(row),
            None => lines.push(vec![row]),
        }
    }
    lines.retain(|line| line.len() > 1);
    lines
}

/// A round mark or an angular one, so that strategies differ without colours too.
fn mark(strategy: Strategy, x: f64, y: f64) -> String {
    let (left, upper) = (coordinate(x), coordinate(y));
    match strategy {
        Strategy::Rayfit => {
            format!("<circle class=\"mark\" cx=\"{left}\" cy=\"{upper}\" r=\"5\"/>")
        }
        Strategy::Ray => {
            let top = coordinate(y - 6.0);
            format!("<path class=\"mark\" d=\"M{left} {top}l6 6-6 6-6-6z\"/>")
        }
    }
}

/// The legend, from `x` on.
fn legend(out: &mut String, rows: &[StudyRow], mut x: f64) {
    for strategy in [Strategy::Rayfit, Strategy::Ray] {
        if !rows.iter().any(|row| row.strategy == strategy) {
            continue;
        }
        let (mark, after) = (mark(strategy, x, 13.0), coordinate(x + 12.0));
        let _ = write!(
            out,
            "<g class=\"{strategy}\">{mark}</g><text x=\"{after}\" y=\"17\">strategy {strategy}</text>"
        );
        x += 140.0;
    }
}

/// Writes the varied values beside the points, where there is room.
fn labels(
    out: &mut String,
    rows: &[StudyRow],
    within: &Frame,
    place: impl Fn(&StudyRow) -> (f64, f64),
) {
    const HEIGHT: f64 = 14.0;
    let around = |(x, y): (f64, f64)| Frame {
        left: x - 6.0,
        top: y - 6.0,
        right: x + 6.0,
        bottom: y + 6.0,
    };
    let mut taken: Vec<Frame> = rows.iter().map(|row| around(place(row))).collect();
    for row in rows {
        let values: Vec<String> = row.set.iter().map(|(_, value)| number_of(*value)).collect();
        let text = values.join(" / ");
        let letters = u16::try_from(text.chars().count()).unwrap_or(u16::MAX);
        let (width, (x, y)) = (7.0 * f64::from(letters) + 2.0, place(row));
        let corners = [
            (x - width / 2.0, y - 8.0 - HEIGHT),
            (x - width / 2.0, y + 8.0),
            (x + 9.0, y - HEIGHT / 2.0),
            (x - 9.0 - width, y - HEIGHT / 2.0),
        ];
        let boxes = corners.into_iter().map(|(left, top)| Frame {
            left,
            top,
            right: left + width,
            bottom: top + HEIGHT,
        });
        let is_free = |frame: &Frame| {
            frame.right <= within.right + 16.0
                && frame.left >= within.left
                && frame.bottom <= within.bottom
                && !taken.iter().any(|other| {
                    frame.left < other.right
                        && other.left < frame.right
                        && frame.top < other.bottom
                        && other.top < frame.bottom
                })
        };
        if let Some(frame) = boxes.into_iter().find(is_free).filter(|_| !text.is_empty()) {
            let (x, y) = (coordinate(frame.left + 1.0), coordinate(frame.bottom - 3.0));
            let _ = write!(
                out,
                "<text class=\"label\" x=\"{x}\" y=\"{y}\">{text}</text>"
            );
            taken.push(frame);
        }
    }
}
