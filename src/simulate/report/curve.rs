//! Demand and capacity of one simulation over time, as a chart and in numbers.

use std::fmt::Write as _;

use crate::simulate::report::axis::{Axis, number_of};
use crate::simulate::report::chart::{Panel, svg};
use crate::simulate::report::lanes::{Lane, Track, draw};
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
    /// True if the trace says how much memory jobs hold.
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
fn thinned<T: Copy>(points: &[T], most: usize, demand: fn(&T) -> f64) -> Vec<T> {
    if points.len() <= most {
        return points.to_vec();
    }
    let length = points.len().div_ceil((most / 2).max(1));
    let mut peaks = Vec::with_capacity(most);
    for stretch in points.chunks(length) {
        let mut peak = 0;
        for (number, point) in stretch.iter().enumerate() {
            if demand(point) > demand(&stretch[peak]) {
                peak = number;
            }
        }
        peaks.push(stretch[peak]);
        peaks.extend(stretch.last().filter(|_| peak + 1 < stretch.len()));
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
    let points = thinned(&row.result.curve, most_points, demand);
    let track = |class, name, is_area, of: &dyn Fn(&Point) -> f64| Track {
        class,
        name,
        is_area,
        values: points.iter().map(|point| (point.at, of(point))).collect(),
    };
    // The areas of demand lie under the lines of capacity.
    let level_lane = |title, axis: &Axis, height, unit: f64, of: fn(&Point) -> CurveLevel| Lane {
        title,
        axis: axis.clone(),
        height,
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
    };
    let count = |title, class, axis: &Axis, is_area, of: fn(&Point) -> f64| Lane {
        title,
        axis: axis.clone(),
        height: 50.0,
        tracks: vec![track(class, "", is_area, &of)],
    };
    let mut lanes = vec![level_lane("CPUs", &axes.cpus, 190.0, 1.0, cpus_of)];
    if let Some(axis) = &axes.gpus {
        lanes.push(level_lane("GPUs", axis, 80.0, 1.0, |point| point.gpus));
    }
    if let Some(axis) = &axes.memory {
        let mut lane = level_lane("memory (GiB)", axis, 80.0, GIB, |point| point.memory);
        if axes.is_memory_known {
            let held = |point: &Point| point.memory_held / GIB;
            // It lies over what jobs have asked for, and under the lines of what there is.
            let held = track("held", "processes hold", true, &held);
            lane.tracks.insert(2, held);
        }
        lanes.push(lane);
    }
    lanes.push(count(
        "jobs that wait",
        "waiting",
        &axes.jobs,
        true,
        |point| point.waiting_jobs,
    ));
    if let Some(axis) = &axes.nodes {
        lanes.push(count("Kubernetes nodes", "nodes", axis, false, |point| {
            point.nodes
        }));
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
fn greatest<T>(points: &[T], value: impl Fn(&T) -> f64) -> Option<&T> {
    points.iter().reduce(|most, point| {
        if value(point) > value(most) {
            point
        } else {
            most
        }
    })
}

/// A quantity over time: its name and unit in the description, its title in the table, and its value at a point.
/// Without a name or a title it is left out there.
type Quantity = (&'static str, &'static str, &'static str, fn(&Point) -> f64);

/// The quantities of the chart.
fn quantities(axes: &CurveAxes) -> Vec<Quantity> {
    let mut all: Vec<Quantity> = vec![
        ("Jobs use and wait for", "CPUs", "", demand),
        ("", "", "Used (CPUs)", |point| point.used),
        ("Waited for", "CPUs", "Waited for (CPUs)", |point| {
            point.waiting
        }),
        ("Ray has", "CPUs", "Ray's CPUs", |point| point.total),
        (
            "Worker pods have",
            "cores",
            "Cores of worker pods",
            |point| point.cores,
        ),
    ];
    if axes.gpus.is_some() {
        all.push(("Jobs use and wait for", "GPUs", "", |point| {
            point.gpus.used + point.gpus.waiting
        }));
        all.push(("", "", "Used (GPUs)", |point| point.gpus.used));
        all.push(("", "", "Waited for (GPUs)", |point| point.gpus.waiting));
        let title = "GPUs of worker pods";
        all.push(("Worker pods have", "GPUs", title, |point| point.gpus.paid));
    }
    if axes.memory.is_some() {
        all.push(("Jobs use and wait for", "GiB of memory", "", |point| {
            (point.memory.used + point.memory.waiting) / GIB
        }));
        all.push(("", "", "Used (GiB)", |point| point.memory.used / GIB));
        all.push(("", "", "Waited for (GiB)", |point| {
            point.memory.waiting / GIB
        }));
        all.push(("Worker pods have", "GiB", "GiB of worker pods", |point| {
            point.memory.paid / GIB
        }));
    }
    if axes.is_memory_known {
        all.push(("Processes hold", "GiB", "Held (GiB)", |point| {
            point.memory_held / GIB
        }));
    }
    all.push(("Waiting", "jobs", "Jobs that wait", |point| {
        point.waiting_jobs
    }));
    if axes.nodes.is_some() {
        let name = "Kubernetes nodes";
        all.push((name, "nodes", name, |point| point.nodes));
    }
    all
}

fn description(row: &StudyRow, axes: &CurveAxes) -> String {
    let named = quantities(axes)
        .into_iter()
        .filter(|(name, ..)| !name.is_empty());
    let parts = named.filter_map(|(name, unit, _, value)| {
        let point = greatest(&row.result.curve, value)?;
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
    let mut columns = quantities(axes);
    columns.retain(|(_, _, title, _)| !title.is_empty());
    let mut out = String::from(
        "<div class=\"wide\" tabindex=\"0\" role=\"region\" aria-label=\"Main points\"><table><thead><tr><th>At</th>",
    );
    for (_, _, name, _) in &columns {
        let _ = write!(out, "<th class=\"n\">{name}</th>");
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
