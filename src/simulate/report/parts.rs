//! Demand and capacity of each worker group and of each node pool, as small charts.

use std::fmt::Write as _;

use crate::report::html::escaped;
use crate::simulate::report::axis::{Axis, number_of};
use crate::simulate::report::chart::svg_of_least;
use crate::simulate::report::curve::{GIB, SeriesNames, greatest, level_lane, most, thinned};
use crate::simulate::report::lanes::{Lane, Lanes, Track};
use crate::simulate::report::table::duration;
use crate::simulate::result::SimulationResult;
use crate::simulate::world::ledger::curves::{CurveLevel, PartCurve, PartPoint};

/// As wide as a small phone, so that the text of a chart is legible there without scrolling.
const WIDTH: f64 = 328.0;

/// How many lines and areas a chart has at most.
pub const MOST_TRACKS: usize = 13;

/// What is drawn of a simulation: its worker groups, or its node pools.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Parts {
    /// The worker groups.
    Groups,
    /// The node pools.
    Pools,
}

impl Parts {
    /// Both, in the order of a page.
    pub const ALL: [Self; 2] = [Self::Groups, Self::Pools];

    fn curves(self, result: &SimulationResult) -> &[PartCurve] {
        match self {
            Self::Groups => &result.groups,
            Self::Pools => &result.pools,
        }
    }

    fn title(self) -> &'static str {
        match self {
            Self::Groups => "By worker group",
            Self::Pools => "By node pool",
        }
    }

    fn note(self) -> &'static str {
        match self {
            Self::Groups => {
                "What waits counts for each group of which a pod can hold it, though others may get it."
            }
            Self::Pools => {
                "What pods request of the nodes of a pool, and what these have. Pods without a node wait for the \
                 first pool that can hold them."
            }
        }
    }

    fn names(self) -> SeriesNames {
        match self {
            Self::Groups => ["jobs use", "jobs wait for", "Ray has", "its pods have"],
            Self::Pools => [
                "pods request",
                "pods wait for",
                "ready nodes",
                "all its nodes",
            ],
        }
    }

    fn count(self) -> &'static str {
        match self {
            Self::Groups => "pods",
            Self::Pools => "nodes",
        }
    }
}

fn demand(level: CurveLevel) -> f64 {
    level.used + level.waiting
}

/// The charts of the groups or pools of a simulation, each with its main figures in words; nothing where
/// there is at most one group, which is as the whole cluster.
pub fn charts(
    parts: Parts,
    id: &str,
    result: &SimulationResult,
    alike: &[&SimulationResult],
    time: &Axis,
    most_points: usize,
) -> String {
    let curves = parts.curves(result);
    if curves.is_empty() || (parts == Parts::Groups && curves.len() < 2) {
        return String::new();
    }
    let mut out = format!(
        "<h4>{}</h4>\n<p class=\"note\">{}</p>\n<div class=\"parts\">\n",
        parts.title(),
        parts.note()
    );
    for (number, curve) in curves.iter().enumerate() {
        let others = alike.iter().flat_map(|one| parts.curves(one));
        let same = others.filter(|other| other.name == curve.name);
        let axes = PartAxes::of(same);
        let chart = chart(
            parts,
            &format!("{id}-{number}"),
            curve,
            &axes,
            time,
            most_points,
        );
        let _ = writeln!(
            out,
            "<figure>{chart}<figcaption><b>{}</b>: {}</figcaption></figure>",
            escaped(&curve.name),
            said(parts, curve)
        );
    }
    out.push_str("</div>\n");
    out
}

/// The axes of the charts of one group or pool that are to be compared.
struct PartAxes {
    cpus: Axis,
    gpus: Option<Axis>,
    memory: Option<Axis>,
    count: f64,
}

impl PartAxes {
    fn of<'a>(curves: impl Iterator<Item = &'a PartCurve>) -> Self {
        let (mut cpus, mut count) = (1.0_f64, 1.0_f64);
        let (mut gpus, mut memory, mut has_memory) = (0.0_f64, 0.0_f64, false);
        for point in curves.flat_map(|curve| &curve.points) {
            cpus = cpus.max(most(point.cpus));
            gpus = gpus.max(most(point.gpus));
            memory = memory.max(most(point.memory));
            has_memory |= demand(point.memory) > 0.0;
            count = count.max(point.count);
        }
        Self {
            cpus: Axis::of_count(cpus, "CPUs"),
            gpus: (gpus > 0.0).then(|| Axis::of_count(gpus, "GPUs")),
            memory: has_memory.then(|| Axis::of_count(memory / GIB, "GiB")),
            count,
        }
    }
}

fn chart(
    parts: Parts,
    id: &str,
    curve: &PartCurve,
    axes: &PartAxes,
    time: &Axis,
    most_points: usize,
) -> String {
    let points = thinned(&curve.points, most_points, |point| demand(point.cpus));
    // What did not change any more holds until the end.
    let last = points.last().map(|last| (time.end(), *last));
    let moments: Vec<(f64, PartPoint)> = (points.iter().map(|point| (point.at, *point)))
        .chain(last)
        .collect();
    let levels = |of: fn(&PartPoint) -> CurveLevel| -> Vec<(f64, CurveLevel)> {
        moments.iter().map(|(at, point)| (*at, of(point))).collect()
    };
    let names = parts.names();
    let mut lanes = vec![level_lane(
        ("CPUs", &axes.cpus, 90.0),
        names,
        &levels(|point| point.cpus),
        1.0,
    )];
    lanes.extend(axes.gpus.as_ref().map(|axis| {
        level_lane(
            ("GPUs", axis, 60.0),
            names,
            &levels(|point| point.gpus),
            1.0,
        )
    }));
    lanes.extend(axes.memory.as_ref().map(|axis| {
        let levels = levels(|point| point.memory);
        level_lane(("memory (GiB)", axis, 60.0), names, &levels, GIB)
    }));
    lanes.push(Lane {
        title: parts.count(),
        axis: Axis::of_count(axes.count, parts.count()),
        height: 40.0,
        tracks: vec![Track {
            class: "nodes",
            name: "",
            is_area: false,
            values: moments
                .iter()
                .map(|(at, point)| (*at, point.count))
                .collect(),
        }],
    });
    let lanes = Lanes {
        width: WIDTH,
        time: time.clone(),
        lanes,
    };
    let (body, height) = lanes.draw();
    let title = format!("Demand and capacity over time of {}", curve.name);
    svg_of_least(id, (WIDTH, height), 0.8, &title, &said(parts, curve), &body)
}

/// The main figures in words.
fn said(parts: Parts, curve: &PartCurve) -> String {
    let points = &curve.points;
    let mut said: Vec<String> = Vec::new();
    let mut add = |what: &str, unit: &str, value: fn(&PartPoint) -> f64| {
        if let Some(point) = greatest(points, value).filter(|point| value(point) > 0.0) {
            let (most, at) = (number_of(value(point)), duration(point.at.max(0.0)));
            said.push(format!("{what} at most {most} {unit}, first at {at}"));
        }
    };
    let (wants, has) = match parts {
        Parts::Groups => ("jobs use and wait for", "its pods have"),
        Parts::Pools => ("pods request and wait for", "its nodes have"),
    };
    add(wants, "CPUs", |point| demand(point.cpus));
    add(has, "cores", |point| point.cpus.paid);
    add(wants, "GPUs", |point| demand(point.gpus));
    add(has, "GPUs", |point| point.gpus.paid);
    add(wants, "GiB of memory", |point| demand(point.memory) / GIB);
    add("there are", parts.count(), |point| point.count);
    if said.is_empty() {
        return "nothing of it was ever used or there.".to_owned();
    }
    said.join("; ") + "."
}
