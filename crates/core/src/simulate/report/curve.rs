//! Demand and capacity of one simulation over time, as a chart and in numbers.

use std::fmt::Write as _;

use crate::simulate::report::axis::{Axis, number_of};
use crate::simulate::report::chart::{Panel, svg};
use crate::simulate::report::lanes::{Lane, Track, draw};
use crate::simulate::report::table::{duration, row_name};
use crate::simulate::result::GIB;
use crate::simulate::study::StudyRow;
use crate::simulate::world::ledger::curves::{CurveLevel, Point};

/// The most points of a chart that are drawn. More would not be seen.
pub const MOST_POINTS: usize = 600;

/// The number of moments in the table beside a chart, at equal distances.
const MOMENTS: u32 = 10;

const WIDTH: f64 = 640.0;

/// A resource of charts: its title, its unit in sentences, the amount of one unit, and its levels at a point.
type ChartResource = (&'static str, &'static str, f64, fn(&Point) -> CurveLevel);

const CPU: ChartResource = ("CPUs", "CPUs", 1.0, |point| CurveLevel {
    waiting: point.waiting,
    used: point.used,
    total: point.total,
    paid: point.cores,
});
const GPU: ChartResource = ("GPUs", "GPUs", 1.0, |point| point.gpus);
const MEMORY: ChartResource = ("memory (GiB)", "GiB", GIB, |point| point.memory);

/// The axes of charts that are to be compared.
#[derive(Debug, Clone)]
pub struct CurveAxes {
    /// The time since the first submission.
    pub time: Axis,
    /// The resources that are drawn: GPUs only where there are any, memory where jobs ask for it or it is known how
    /// much they hold.
    levels: Vec<(ChartResource, Axis)>,
    /// True if the trace says how much memory jobs hold.
    is_memory_known: bool,
    jobs: Axis,
    /// Only where Kubernetes nodes are simulated.
    nodes: Option<Axis>,
}

impl CurveAxes {
    /// Axes on which all points of these simulations are.
    pub fn of<'a>(rows: impl IntoIterator<Item = &'a StudyRow>, has_nodes: bool) -> Self {
        let points: Vec<&Point> = (rows.into_iter())
            .flat_map(|row| &row.result.curve)
            .collect();
        let most = |of: &dyn Fn(&Point) -> f64| {
            let values = points.iter().map(|point| of(point));
            values.fold(0.0, f64::max)
        };
        // The highest of what is drawn.
        let highest = |(_, _, unit, of): ChartResource| {
            let level = |point: &Point| {
                let level = of(point);
                let demand = level.used + level.waiting;
                demand.max(level.total).max(level.paid) / unit
            };
            most(&level)
        };
        let mut levels = vec![(CPU, Axis::from_zero(highest(CPU).max(1.0), "CPUs"))];
        if highest(GPU) > 0.0 {
            levels.push((GPU, Axis::of_count(highest(GPU), "GPUs")));
        }
        let held = most(&|point| point.memory_held / GIB);
        if held > 0.0 || most(&|point| point.memory.used + point.memory.waiting) > 0.0 {
            levels.push((MEMORY, Axis::of_count(highest(MEMORY).max(held), "GiB")));
        }
        let count = |of: &dyn Fn(&Point) -> f64, unit| Axis::of_count(most(of).max(1.0), unit);
        Self {
            time: Axis::of_time(most(&|point| point.at).max(1.0)),
            levels,
            is_memory_known: held > 0.0,
            jobs: count(&|point| point.waiting_jobs, "jobs"),
            nodes: has_nodes.then(|| count(&|point| point.nodes, "nodes")),
        }
    }
}

/// The CPUs that jobs use and wait for.
fn demand(point: &Point) -> f64 {
    point.used + point.waiting
}

/// Up to `most` of the points. Of each stretch that with the most demand and the last one stay, so
/// that no peak of demand is lost, and what holds at its end.
fn thinned(points: &[Point], most: usize) -> Vec<Point> {
    if points.len() <= most {
        return points.to_vec();
    }
    let length = points.len().div_ceil((most / 2).max(1));
    let mut peaks = Vec::with_capacity(most);
    for stretch in points.chunks(length) {
        let peak = greatest(stretch, demand);
        peaks.extend(peak);
        peaks.extend(stretch.last().filter(|last| peak != Some(*last)));
    }
    peaks
}

/// The chart of a simulation. `id` is unique on its page.
pub fn chart(id: &str, row: &StudyRow, axes: &CurveAxes, most_points: usize) -> String {
    let title = format!("Demand and capacity over time: {}", row_name(row));
    let panel = panel(title, row, axes, WIDTH, most_points);
    let description = format!(
        "{} The table below the chart has its main points.",
        panel.description
    );
    let size = (WIDTH, panel.height);
    svg(id, size, &panel.title, &description, &panel.body)
}

/// The chart in a width, with a lane for each resource, for jobs that wait, and for Kubernetes nodes.
pub fn panel(
    title: String,
    row: &StudyRow,
    axes: &CurveAxes,
    width: f64,
    most_points: usize,
) -> Panel {
    let points = thinned(&row.result.curve, most_points);
    let track = |class, name, is_area, of: &dyn Fn(&Point) -> f64| Track {
        class,
        name,
        is_area,
        values: points.iter().map(|point| (point.at, of(point))).collect(),
    };
    // The areas of demand lie under the lines of capacity.
    let levels = axes.levels.iter().map(|((title, _, unit, of), axis)| Lane {
        title,
        axis: axis.clone(),
        height: if *title == CPU.0 { 190.0 } else { 80.0 },
        tracks: vec![
            track("waiting", "jobs wait for", true, &|point| {
                (of(point).used + of(point).waiting) / unit
            }),
            track("used", "jobs use", true, &|point| of(point).used / unit),
            track("cores", "worker pods have", false, &|point| {
                of(point).paid / unit
            }),
            track("total", "Ray has", false, &|point| of(point).total / unit),
        ],
    });
    let mut lanes: Vec<Lane> = levels.collect();
    // Memory is the last resource. What is held lies over what jobs have asked for, and under the lines of what there
    // is.
    if let Some(lane) = lanes.last_mut().filter(|_| axes.is_memory_known) {
        let held = |point: &Point| point.memory_held / GIB;
        let held = track("held", "processes hold", true, &held);
        lane.tracks.insert(2, held);
    }
    let count = |title, class, axis: &Axis, is_area, of: fn(&Point) -> f64| Lane {
        title,
        axis: axis.clone(),
        height: 50.0,
        tracks: vec![track(class, "", is_area, &of)],
    };
    let jobs = |point: &Point| point.waiting_jobs;
    lanes.push(count("jobs that wait", "waiting", &axes.jobs, true, jobs));
    if let Some(axis) = &axes.nodes {
        let nodes = |point: &Point| point.nodes;
        lanes.push(count("Kubernetes nodes", "nodes", axis, false, nodes));
    }
    let (body, height) = draw(width, &axes.time, &lanes);
    Panel {
        height,
        title,
        description: description(row, axes),
        body,
    }
}

/// The point at which something is greatest, the first of equal ones.
fn greatest(points: &[Point], value: impl Fn(&Point) -> f64) -> Option<&Point> {
    // Of equal ones `max_by` takes the last.
    let points = points.iter().rev();
    points.max_by(|one, other| value(one).total_cmp(&value(other)))
}

/// A quantity over time: its name and unit, and its value at a point.
type Quantity = (&'static str, &'static str, Box<dyn Fn(&Point) -> f64>);

/// The quantities of the chart.
fn quantities(axes: &CurveAxes) -> Vec<Quantity> {
    let mut all: Vec<Quantity> = Vec::new();
    for ((_, unit, one, of), _) in &axes.levels {
        let (unit, one, of) = (*unit, *one, *of);
        let mut add = |name, part: fn(CurveLevel) -> f64| {
            let value = move |point: &Point| part(of(point)) / one;
            all.push((name, unit, Box::new(value)));
        };
        add("Jobs use and wait for", |level| level.used + level.waiting);
        add("Jobs use", |level| level.used);
        add("Ray has", |level| level.total);
        add("Worker pods have", |level| level.paid);
    }
    if axes.is_memory_known {
        let held = |point: &Point| point.memory_held / GIB;
        all.push(("Processes hold", "GiB", Box::new(held)));
    }
    let jobs = |point: &Point| point.waiting_jobs;
    all.push(("Waiting", "jobs", Box::new(jobs)));
    if axes.nodes.is_some() {
        let nodes = |point: &Point| point.nodes;
        all.push(("Kubernetes has", "nodes", Box::new(nodes)));
    }
    all
}

fn description(row: &StudyRow, axes: &CurveAxes) -> String {
    let parts = quantities(axes)
        .into_iter()
        .filter_map(|(name, unit, value)| {
            let point = greatest(&row.result.curve, &value)?;
            let (most, at) = (number_of(value(point)), duration(point.at));
            Some(format!("{name}: at most {most} {unit}, first at {at}."))
        });
    parts.collect::<Vec<String>>().join(" ")
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
    let mut peak = |value: fn(&Point) -> f64, name| {
        moments.extend(greatest(points, value).map(|point| (point.at, name)));
    };
    peak(demand, " (most demand)");
    peak(|point| point.cores, " (most cores)");
    moments.sort_by(|one, other| one.0.total_cmp(&other.0));
    let columns = quantities(axes);
    let mut out = String::from(
        "<div class=\"wide\" tabindex=\"0\" role=\"region\" aria-label=\"Main points\"><table><thead><tr><th>At</th>",
    );
    for (name, unit, _) in &columns {
        let _ = write!(out, "<th class=\"n\">{name} ({unit})</th>");
    }
    out.push_str("</tr></thead><tbody>");
    for (at, name) in moments {
        // The last point that is not after a moment holds at it.
        let number = points.partition_point(|point| point.at <= at);
        let Some(point) = points.get(number.saturating_sub(1)) else {
            continue;
        };
        let _ = write!(out, "<tr><td>{}{name}</td>", duration(at));
        for (.., value) in &columns {
            let _ = write!(out, "<td class=\"n\">{}</td>", number_of(value(point)));
        }
        out.push_str("</tr>\n");
    }
    out.push_str("</tbody></table></div>\n");
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
}
