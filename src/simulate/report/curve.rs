//! Demand and capacity of one simulation over time, as a chart and in numbers.

use std::fmt::Write as _;

use crate::simulate::report::axis::{Axis, number_of};
use crate::simulate::report::chart::{Frame, coordinate, svg};
use crate::simulate::report::table::{duration, row_name};
use crate::simulate::study::StudyRow;
use crate::simulate::world::ledger::Point;

/// The most points of a chart that are drawn. More would not be seen.
pub const MOST_POINTS: usize = 600;

/// How many moments the table beside a chart has, at equal distances.
const MOMENTS: u32 = 10;

const WIDTH: f64 = 640.0;

/// The axes of charts that are to be compared.
#[derive(Debug, Clone, PartialEq)]
pub struct CurveAxes {
    time: Axis,
    cpus: Axis,
    /// Only where Kubernetes nodes are simulated.
    nodes: Option<Axis>,
}

impl CurveAxes {
    /// Axes on which all points of these simulations are.
    pub fn of<'a>(rows: impl IntoIterator<Item = &'a StudyRow>, has_nodes: bool) -> Self {
        let (mut time, mut cpus, mut nodes) = (1.0_f64, 1.0_f64, 1.0_f64);
        for point in rows.into_iter().flat_map(|row| &row.result.curve) {
            time = time.max(point.at);
            cpus = cpus.max(demand(point)).max(point.total).max(point.cores);
            nodes = nodes.max(point.nodes);
        }
        Self {
            time: Axis::of_time(time),
            cpus: Axis::from_zero(cpus, "CPUs"),
            nodes: has_nodes.then(|| Axis::of_count(nodes, "nodes")),
        }
    }
}

/// The CPUs that jobs use and wait for.
fn demand(point: &Point) -> f64 {
    point.used + point.waiting
}

/// Up to `most` of the points. Of each stretch that with the most demand and the last one stay, so
/// that no peak of demand is lost, and what holds at its end.
pub fn thinned(points: &[Point], most: usize) -> Vec<Point> {
    if points.len() <= most {
        return points.to_vec();
    }
    let length = points.len().div_ceil((most / 2).max(1));
    let mut kept = Vec::with_capacity(most);
    for stretch in points.chunks(length) {
        let mut peak = 0;
        for (number, point) in stretch.iter().enumerate() {
            if demand(point) > demand(&stretch[peak]) {
                peak = number;
            }
        }
        kept.push(stretch[peak]);
        kept.extend(stretch.last().filter(|_| peak + 1 < stretch.len()));
    }
    kept
}

/// The chart of a simulation. `id` is unique on its page.
pub fn chart(id: &str, row: &StudyRow, axes: &CurveAxes, most_points: usize) -> String {
    let points = thinned(&row.result.curve, most_points);
    let frame = Frame {
        left: 48.0,
        top: 50.0,
        right: WIDTH - 16.0,
        bottom: 240.0,
    };
    let nodes_frame = Frame {
        top: 272.0,
        bottom: 322.0,
        ..frame
    };
    let mut body = String::new();
    legend(&mut body, axes.nodes.is_some());
    frame.draw_height(&mut body, &axes.cpus, axes.cpus.unit);
    let lowest = axes.nodes.as_ref().map_or(&frame, |axis| {
        nodes_frame.draw_height(&mut body, axis, "Kubernetes nodes");
        &nodes_frame
    });
    let time = format!("time since the first submission ({})", axes.time.unit);
    Frame {
        top: frame.top,
        ..*lowest
    }
    .draw_width(&mut body, &axes.time, &time);
    let mut line =
        |class: &str, frame: &Frame, axis: &Axis, value: fn(&Point) -> f64, is_area: bool| {
            let at = |point: &Point| (frame.x(&axes.time, point.at), frame.y(axis, value(point)));
            let path = steps(points.iter().map(at), is_area.then_some(frame.bottom));
            let _ = write!(body, "<path class=\"{class}\" d=\"{path}\"/>");
        };
    line("waiting", &frame, &axes.cpus, demand, true);
    line("used", &frame, &axes.cpus, |point| point.used, true);
    line("cores", &frame, &axes.cpus, |point| point.cores, false);
    line("total", &frame, &axes.cpus, |point| point.total, false);
    if let Some(axis) = &axes.nodes {
        line("nodes", &nodes_frame, axis, |point| point.nodes, false);
    }
    let size = (WIDTH, lowest.bottom + 42.0);
    let title = format!("Demand and capacity over time: {}", row_name(row));
    svg(id, size, &title, &description(row, axes), &body)
}

/// What is drawn how, in the order from left to right.
fn legend(out: &mut String, has_nodes: bool) {
    let areas = [("used", "used by jobs"), ("waiting", "waited for")];
    let mut lines = vec![("total", "Ray's CPUs"), ("cores", "cores of worker pods")];
    lines.extend(has_nodes.then_some(("nodes", "nodes")));
    let mut x = 48.0;
    for (class, text) in areas {
        let (from, after) = (coordinate(x), coordinate(x + 18.0));
        let _ = write!(
            out,
            "<rect class=\"{class}\" x=\"{from}\" y=\"6\" width=\"12\" height=\"12\"/>\
             <text x=\"{after}\" y=\"16\">{text}</text>"
        );
        x += 112.0;
    }
    for (class, text) in lines {
        let (from, after) = (coordinate(x), coordinate(x + 30.0));
        let _ = write!(
            out,
            "<path class=\"{class}\" d=\"M{from} 12h24\"/><text x=\"{after}\" y=\"16\">{text}</text>"
        );
        x += if class == "cores" { 176.0 } else { 112.0 };
    }
}

/// A path on which each value holds until the next one; as an area, down to `bottom`.
fn steps(places: impl Iterator<Item = (f64, f64)>, bottom: Option<f64>) -> String {
    let mut path = String::new();
    let mut last: Option<(String, String)> = None;
    let mut drawn = String::new();
    for (x, y) in places {
        let (x, y) = (coordinate(x), coordinate(y));
        match &last {
            None => {
                let start = bottom.map_or_else(|| y.clone(), coordinate);
                let _ = write!(path, "M{x} {start}");
                if bottom.is_some() {
                    let _ = write!(path, "V{y}");
                }
                drawn.clone_from(&x);
            }
            Some((_, before)) if *before != y => {
                if drawn != x {
                    let _ = write!(path, "H{x}");
                    drawn.clone_from(&x);
                }
                let _ = write!(path, "V{y}");
            }
            Some(_) => {}
        }
        last = Some((x, y));
    }
    if let Some((x, _)) = last.filter(|(x, _)| *x != drawn) {
        let _ = write!(path, "H{x}");
    }
    if let Some(bottom) = bottom.filter(|_| !path.is_empty()) {
        let _ = write!(path, "V{}Z", coordinate(bottom));
    }
    path
}

/// The point at which something is greatest, the first of equal ones.
fn greatest(points: &[Point], value: fn(&Point) -> f64) -> Option<&Point> {
    points.iter().reduce(|most, point| {
        if value(point) > value(most) {
            point
        } else {
            most
        }
    })
}

fn description(row: &StudyRow, axes: &CurveAxes) -> String {
    let points = &row.result.curve;
    let mut parts: Vec<String> = Vec::new();
    let mut add = |what: &str, unit: &str, value: fn(&Point) -> f64| {
        if let Some(point) = greatest(points, value) {
            let (most, at) = (number_of(value(point)), duration(point.at));
            parts.push(format!("{what}: at most {most} {unit}, first at {at}."));
        }
    };
    add("Jobs use and wait for", "CPUs", demand);
    add("Waited for", "CPUs", |point| point.waiting);
    add("Ray has", "CPUs", |point| point.total);
    add("Worker pods have", "cores", |point| point.cores);
    if axes.nodes.is_some() {
        add("Kubernetes nodes", "nodes", |point| point.nodes);
    }
    parts.push("The table below the chart has its main points.".to_owned());
    parts.join(" ")
}

/// The main points of the chart as a table: moments at equal distances, and those with the most demand
/// and the most capacity.
pub fn main_points(row: &StudyRow, axes: &CurveAxes) -> String {
    let points = &row.result.curve;
    let (Some(first), Some(last)) = (points.first(), points.last()) else {
        return String::new();
    };
    let mut moments: Vec<(f64, &str)> = (0..=MOMENTS)
        .map(|number| {
            let part = f64::from(number) / f64::from(MOMENTS);
            (first.at + part * (last.at - first.at), "")
        })
        .collect();
    let mut peak =
        |value, name| moments.extend(greatest(points, value).map(|point| (point.at, name)));
    peak(demand, "most demand");
    peak(|point| point.cores, "most cores");
    moments.sort_by(|one, other| one.0.total_cmp(&other.0));
    let mut out = String::from(
        "<table><thead><tr><th>At</th><th class=\"n\">Used (CPUs)</th><th class=\"n\">Waited for (CPUs)</th>\
         <th class=\"n\">Ray's CPUs</th><th class=\"n\">Cores of worker pods</th>",
    );
    if axes.nodes.is_some() {
        out.push_str("<th class=\"n\">Kubernetes nodes</th>");
    }
    out.push_str("</tr></thead><tbody>");
    for (at, name) in moments {
        // What holds at a moment is the last point that is not after it.
        let number = points.partition_point(|point| point.at <= at);
        let Some(point) = points.get(number.saturating_sub(1)) else {
            continue;
        };
        let mut values = vec![point.used, point.waiting, point.total, point.cores];
        values.extend(axes.nodes.as_ref().map(|_| point.nodes));
        let (at, name) = (
            duration(at),
            if name.is_empty() {
                String::new()
            } else {
                format!(" ({name})")
            },
        );
        let _ = write!(out, "<tr><td>{at}{name}</td>");
        for value in values {
            let _ = write!(out, "<td class=\"n\">{}</td>", number_of(value));
        }
        out.push_str("</tr>\n");
    }
    out.push_str("</tbody></table>\n");
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(at: f64, used: f64, waiting: f64) -> Point {
        Point {
            at,
            waiting,
            used,
            ..Point::default()
        }
    }

    #[test]
    fn thinning_keeps_peaks_and_the_end() {
        let points: Vec<Point> = (0..10_000)
            .map(|number| {
                let waiting = if number == 4321 { 99.0 } else { 0.0 };
                point(f64::from(number), 1.0, waiting)
            })
            .collect();
        let kept = thinned(&points, MOST_POINTS);
        assert!((300..=MOST_POINTS).contains(&kept.len()), "{}", kept.len());
        assert!(kept.contains(&points[4321]) && kept.contains(&points[9999]));
        assert!(kept.is_sorted_by(|one, other| one.at < other.at));
        assert_eq!(
            thinned(&points[..MOST_POINTS], MOST_POINTS).len(),
            MOST_POINTS
        );
    }

    #[test]
    fn a_value_holds_until_the_next_one() {
        let places = [(0.0, 9.0), (2.0, 5.0), (3.0, 5.0), (4.0, 9.0), (6.0, 9.0)];
        assert_eq!(steps(places.into_iter(), None), "M0 9H2V5H4V9H6");
        assert_eq!(steps(places.into_iter(), Some(9.0)), "M0 9V9H2V5H4V9H6V9Z");
        assert_eq!(steps([].into_iter(), Some(9.0)), "");
    }
}
