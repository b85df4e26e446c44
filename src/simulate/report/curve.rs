//! Demand and capacity of one simulation over time, as a chart and in numbers.

use std::fmt::Write as _;

use crate::simulate::report::axis::{Axis, number_of};
use crate::simulate::report::chart::{Panel, coordinate, svg};
use crate::simulate::report::lanes::{Lane, Lanes, Track};
use crate::simulate::report::table::{duration, row_name};
use crate::simulate::study::StudyRow;
use crate::simulate::world::ledger::curves::{CurveLevel, Point};

/// The most points of a chart that are drawn. More would not be seen.
pub const MOST_POINTS: usize = 600;

/// The number of moments in the table beside a chart, at equal distances.
const MOMENTS: u32 = 10;

const WIDTH: f64 = 640.0;
const GIB: f64 = 1_073_741_824.0;

/// The axes of charts that are to be compared.
#[derive(Debug, Clone, PartialEq)]
pub struct CurveAxes {
    /// The time since the first submission.
    pub time: Axis,
    cpus: Axis,
    /// Only where there are GPUs, or jobs ask for any.
    gpus: Option<Axis>,
    /// Only where jobs ask for memory, or it is known how much they hold.
    memory: Option<Axis>,
    /// Whether it is known how much memory jobs hold.
    is_memory_known: bool,
    jobs: Axis,
    /// Only where Kubernetes nodes are simulated.
    nodes: Option<Axis>,
}

impl CurveAxes {
    /// Axes on which all points of these simulations are.
    pub fn of<'a>(rows: impl IntoIterator<Item = &'a StudyRow>, has_nodes: bool) -> Self {
        let (mut time, mut cpus, mut nodes, mut jobs) = (1.0_f64, 1.0_f64, 1.0_f64, 1.0_f64);
        let (mut gpus, mut memory) = (0.0_f64, 0.0_f64);
        let (mut has_memory, mut is_memory_known) = (false, false);
        for point in rows.into_iter().flat_map(|row| &row.result.curve) {
            time = time.max(point.at);
            cpus = cpus.max(most(cpus_of(point)));
            gpus = gpus.max(most(point.gpus));
            memory = memory.max(most(point.memory));
            memory = memory.max(point.memory_held);
            has_memory |= point.memory.used + point.memory.waiting > 0.0;
            is_memory_known |= point.memory_held > 0.0;
            jobs = jobs.max(point.waiting_jobs);
            nodes = nodes.max(point.nodes);
        }
        Self {
            time: Axis::of_time(time),
            cpus: Axis::from_zero(cpus, "CPUs"),
            gpus: (gpus > 0.0).then(|| Axis::of_count(gpus, "GPUs")),
            memory: (has_memory || is_memory_known).then(|| Axis::of_count(memory / GIB, "GiB")),
            is_memory_known,
            jobs: Axis::of_count(jobs, "jobs"),
            nodes: has_nodes.then(|| Axis::of_count(nodes, "nodes")),
        }
    }
}

/// The highest of what is drawn.
fn most(level: CurveLevel) -> f64 {
    (level.used + level.waiting)
        .max(level.total)
        .max(level.paid)
}

fn cpus_of(point: &Point) -> CurveLevel {
    CurveLevel {
        waiting: point.waiting,
        used: point.used,
        total: point.total,
        paid: point.cores,
    }
}

/// The CPUs that jobs use and wait for.
fn demand(point: &Point) -> f64 {
    point.used + point.waiting
}

/// Up to `most` of the points. Of each stretch that with the most demand and the last one stay, so
/// that no peak of demand is lost, and what holds at its end.
pub fn thinned<T: Copy>(points: &[T], most: usize, demand: fn(&T) -> f64) -> Vec<T> {
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

/// A lane of demand and capacity: the areas of demand lie under the lines of capacity.
fn level_lane(
    (title, axis, height): (&'static str, &Axis, f64),
    levels: &[(f64, CurveLevel)],
    unit: f64,
) -> Lane {
    let track = |class, name, is_area, of: fn(&CurveLevel) -> f64| Track {
        class,
        name,
        is_area,
        values: (levels.iter())
            .map(|(at, level)| (*at, of(level) / unit))
            .collect(),
    };
    Lane {
        title,
        axis: axis.clone(),
        height,
        tracks: vec![
            track("waiting", "jobs wait for", true, |level| {
                level.used + level.waiting
            }),
            track("used", "jobs use", true, |level| level.used),
            track("cores", "worker pods have", false, |level| level.paid),
            track("total", "Ray has", false, |level| level.total),
        ],
    }
}

/// The chart of a simulation. `id` is unique on its page.
pub fn chart(id: &str, row: &StudyRow, axes: &CurveAxes, most_points: usize) -> String {
    let (body, height) = lanes(row, axes, WIDTH, most_points).draw();
    let title = format!("Demand and capacity over time: {}", row_name(row));
    let said = format!(
        "{} The table below the chart has its main points.",
        description(row, axes)
    );
    svg(id, (WIDTH, height), &title, &said, &body)
}

/// The height of a panel's title.
const PANEL_TITLE: f64 = 26.0;

/// The chart as a part of a picture, in a width.
pub fn panel(title: String, row: &StudyRow, axes: &CurveAxes, width: f64) -> Panel {
    let (body, height) = lanes(row, axes, width, MOST_POINTS).draw();
    Panel {
        height: height + PANEL_TITLE,
        title,
        description: description(row, axes),
        body: format!(
            "<g transform=\"translate(0 {})\">{body}</g>",
            coordinate(PANEL_TITLE)
        ),
    }
}

/// The lanes of the chart: resources, jobs that wait, and Kubernetes nodes.
fn lanes(row: &StudyRow, axes: &CurveAxes, width: f64, most_points: usize) -> Lanes {
    let points = thinned(&row.result.curve, most_points, demand);
    let levels = |of: fn(&Point) -> CurveLevel| -> Vec<(f64, CurveLevel)> {
        points.iter().map(|point| (point.at, of(point))).collect()
    };
    let track = |class, name, is_area, of: fn(&Point) -> f64| Track {
        class,
        name,
        is_area,
        values: points.iter().map(|point| (point.at, of(point))).collect(),
    };
    let count = |title, class, axis: &Axis, is_area, of: fn(&Point) -> f64| Lane {
        title,
        axis: axis.clone(),
        height: 50.0,
        tracks: vec![track(class, "", is_area, of)],
    };
    let mut lanes = vec![level_lane(
        ("CPUs", &axes.cpus, 190.0),
        &levels(cpus_of),
        1.0,
    )];
    lanes.extend(
        axes.gpus
            .as_ref()
            .map(|axis| level_lane(("GPUs", axis, 80.0), &levels(|point| point.gpus), 1.0)),
    );
    lanes.extend(axes.memory.as_ref().map(|axis| {
        let levels = levels(|point| point.memory);
        let mut lane = level_lane(("memory (GiB)", axis, 80.0), &levels, GIB);
        if axes.is_memory_known {
            let held = |point: &Point| point.memory_held / GIB;
            // It lies over what jobs have asked for, and under the lines of what there is.
            lane.tracks
                .insert(2, track("held", "processes hold", true, held));
        }
        lane
    }));
    let jobs = |point: &Point| point.waiting_jobs;
    lanes.push(count("jobs that wait", "waiting", &axes.jobs, true, jobs));
    lanes.extend(axes.nodes.as_ref().map(|axis| {
        count("Kubernetes nodes", "nodes", axis, false, |point| {
            point.nodes
        })
    }));
    Lanes {
        width,
        time: axes.time.clone(),
        lanes,
    }
}

/// The point at which something is greatest, the first of equal ones.
fn greatest<T>(points: &[T], value: impl Fn(&T) -> f64) -> Option<&T> {
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
    if axes.gpus.is_some() {
        add("Jobs use and wait for", "GPUs", |point| {
            point.gpus.used + point.gpus.waiting
        });
        add("Worker pods have", "GPUs", |point| point.gpus.paid);
    }
    if axes.memory.is_some() {
        add("Jobs use and wait for", "GiB of memory", |point| {
            (point.memory.used + point.memory.waiting) / GIB
        });
        add("Worker pods have", "GiB", |point| point.memory.paid / GIB);
    }
    if axes.is_memory_known {
        add("Processes hold", "GiB", |point| point.memory_held / GIB);
    }
    add("Waiting", "jobs", |point| point.waiting_jobs);
    if axes.nodes.is_some() {
        add("Kubernetes nodes", "nodes", |point| point.nodes);
    }
    parts.join(" ")
}

/// A column of the table, and its value at a point.
type Column = (&'static str, fn(&Point) -> f64);

fn columns(axes: &CurveAxes) -> Vec<Column> {
    let mut columns: Vec<Column> = vec![
        ("Used (CPUs)", |point| point.used),
        ("Waited for (CPUs)", |point| point.waiting),
        ("Ray's CPUs", |point| point.total),
        ("Cores of worker pods", |point| point.cores),
    ];
    if axes.gpus.is_some() {
        columns.push(("Used (GPUs)", |point| point.gpus.used));
        columns.push(("Waited for (GPUs)", |point| point.gpus.waiting));
        columns.push(("GPUs of worker pods", |point| point.gpus.paid));
    }
    if axes.memory.is_some() {
        columns.push(("Used (GiB)", |point| point.memory.used / GIB));
        columns.push(("Waited for (GiB)", |point| point.memory.waiting / GIB));
        columns.push(("GiB of worker pods", |point| point.memory.paid / GIB));
    }
    if axes.is_memory_known {
        columns.push(("Held (GiB)", |point| point.memory_held / GIB));
    }
    columns.push(("Jobs that wait", |point| point.waiting_jobs));
    if axes.nodes.is_some() {
        columns.push(("Kubernetes nodes", |point| point.nodes));
    }
    columns
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
    peak(demand, "most demand");
    peak(|point| point.cores, "most cores");
    moments.sort_by(|one, other| one.0.total_cmp(&other.0));
    let columns = columns(axes);
    let mut out = String::from(
        "<div class=\"wide\" tabindex=\"0\" role=\"region\" aria-label=\"Main points\"><table><thead><tr><th>At</th>",
    );
    for (name, _) in &columns {
        let _ = write!(out, "<th class=\"n\">{name}</th>");
    }
    out.push_str("</tr></thead><tbody>");
    for (at, name) in moments {
        // The last point that is not after a moment holds at it.
        let number = points.partition_point(|point| point.at <= at);
        let Some(point) = points.get(number.saturating_sub(1)) else {
            continue;
        };
        let (at, name) = (
            duration(at),
            if name.is_empty() {
                String::new()
            } else {
                format!(" ({name})")
            },
        );
        let _ = write!(out, "<tr><td>{at}{name}</td>");
        for (_, value) in &columns {
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
        let kept = thinned(&points, MOST_POINTS, demand);
        assert!((300..=MOST_POINTS).contains(&kept.len()), "{}", kept.len());
        assert!(kept.contains(&points[4321]) && kept.contains(&points[9999]));
        assert!(kept.is_sorted_by(|one, other| one.at < other.at));
        assert_eq!(
            thinned(&points[..MOST_POINTS], MOST_POINTS, demand).len(),
            MOST_POINTS
        );
    }
}
