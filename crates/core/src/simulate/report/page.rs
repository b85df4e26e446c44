//! A study as one HTML page, to read and to send.

use std::fmt::Write as _;

use crate::facts::node::NodeTaint;
use crate::report::html::{document, escaped};
use crate::simulate::report::axis::number_of;
use crate::simulate::report::curve::{self, CurveAxes};
use crate::simulate::report::table::{self, duration, headline, legend, row_name};
use crate::simulate::report::{chart, tradeoff};
use crate::simulate::settings::NodePool;
use crate::simulate::study::{Study, StudyRow};

/// The most points of all curves of a page. Studies with more simulations have fewer points in each.
const MOST_POINTS: usize = 60_000;

const STYLE: &str = "h2{margin-top:2.5rem}h3{margin:0 0 .3rem;font-size:1rem}\
    .wide{overflow-x:auto}.wide table{font-size:12px}.wide td{white-space:nowrap}.wide th{vertical-align:bottom;overflow-wrap:normal}\
    .wide td,.wide th{padding:.3rem .4rem}\
    .rows{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,26rem),1fr));gap:2rem 1.5rem}\
    .rows section{break-inside:avoid;min-width:0}figure{margin:0}\
    figcaption,.note{color:var(--faint);font-size:13px}\
    dt{font-weight:600}dd{margin:0 0 .4rem}\
    section details table{font-size:12px}\
    @media print{body{max-width:none;margin:0;font-size:11px}.wide{overflow:visible}.wide table{font-size:8px}\
    .wide td,.wide th{padding:.1rem .2rem}h2,h3{break-after:avoid}.rows{display:block}\
    .rows section{margin-bottom:1.5rem}section details{display:none}.chart svg{min-width:0!important}}";

/// The page of a study: its table, cost against waiting, and the curves of each simulation.
pub fn html(study: &Study, rows: &[StudyRow]) -> String {
    let fields: Vec<String> = (study.variations.iter()).map(ToString::to_string).collect();
    let labels = fields.last().map_or_else(String::new, |last| {
        format!(
            " The numbers beside the points are {}; lines join simulations that differ in {last} alone.",
            fields.join(" / "),
        )
    });
    let mut body = String::new();
    let _ = writeln!(
        body,
        "<p>{}</p>\n<h2>Cost against waiting</h2>\n<figure>{}<figcaption>Each point is a \
         simulation. Further left costs less, further down waits less; an axis need not begin at 0.{labels}</figcaption></figure>",
        escaped(&headline(study, rows)),
        tradeoff::chart(rows),
    );
    table(&mut body, study, rows);
    curves(&mut body, study, rows);
    settings(&mut body, study);
    let title = format!("Rayfit: what {} would wait and cost", study.trace.name);
    let style = format!("{}{STYLE}", chart::STYLE);
    document(&title, &style, &body, "")
}

fn table(out: &mut String, study: &Study, rows: &[StudyRow]) {
    let table = table::table(study, rows);
    // The text columns come first: the fields that are varied, and the strategy.
    let named = study.variations.len();
    out.push_str(
        "<h2>All simulations</h2>\n<div class=\"wide\" tabindex=\"0\" role=\"region\" \
         aria-label=\"All simulations\"><table><thead><tr>",
    );
    for (column, title) in table.titles.iter().enumerate() {
        let class = if column == named { "" } else { " class=\"n\"" };
        let _ = write!(out, "<th scope=\"col\"{class}>{}</th>", escaped(title));
    }
    out.push_str("</tr></thead><tbody>\n");
    for (number, line) in table.lines.iter().enumerate() {
        out.push_str("<tr>");
        for (column, cell) in line.iter().enumerate() {
            let cell = escaped(cell);
            let _ = if column == named {
                write!(out, "<td><a href=\"#row-{number}\">{cell}</a></td>")
            } else {
                write!(out, "<td class=\"n\">{cell}</td>")
            };
        }
        out.push_str("</tr>\n");
    }
    out.push_str("</tbody></table></div>\n");
    for sentence in legend(study) {
        let _ = writeln!(out, "<p class=\"note\">{}</p>", escaped(sentence));
    }
}

fn curves(out: &mut String, study: &Study, rows: &[StudyRow]) {
    let has_nodes = !study.world.pools.is_empty();
    let most = (MOST_POINTS / rows.len().max(1)).clamp(2, curve::MOST_POINTS);
    out.push_str(
        "<h2>Demand and capacity over time</h2>\n<p class=\"note\">Where the area of demand is above the line \
         of what Ray has, jobs wait; where the line is above the area, CPUs are idle. Charts with equal settings \
         have equal axes.</p>\n<div class=\"rows\">\n",
    );
    let mut number = 0;
    // Simulations that differ in the strategy alone are compared by eye, which takes equal axes.
    for alike in rows.chunk_by(|one, other| one.set == other.set) {
        let axes = CurveAxes::of(alike, has_nodes);
        for row in alike {
            let id = format!("row-{number}");
            let name = escaped(&row_name(row));
            let chart = curve::chart(&format!("curve-{number}"), row, &axes, most);
            let points = curve::main_points(row, &axes);
            let result = &row.result;
            let unfinished = match result.jobs.unfinished {
                0 => String::new(),
                count => format!(", <b class=\"hot\">{count} unfinished</b>"),
            };
            let _ = writeln!(
                out,
                "<section id=\"{id}\"><h3>{name}</h3><figure>{chart}<figcaption>Waits {:.1} s in the mean, ends \
                 after {}, {:.2} CPU-hours of which {:.2} are not used{unfinished}. {}</figcaption></figure>\
                 <details><summary>Main points as a table</summary>{points}</details>",
                result.wait.mean,
                duration(result.makespan),
                result.cpu_hours.paid,
                result.cpu_hours.slack,
                waits(&result.wait_by_tenth),
            );
            out.push_str("</section>\n");
            number += 1;
        }
    }
    out.push_str("</div>\n");
}

/// The waits of the tenths of the jobs, in words.
fn waits(by_tenth: &[f64]) -> String {
    let waits: Vec<String> = by_tenth.iter().copied().map(number_of).collect();
    let what = match waits.len() {
        0 => return String::new(),
        10 => "tenth of the jobs",
        _ => "job",
    };
    format!(
        "Mean waits of each {what} in the order of arrival, in seconds: {}.",
        waits.join(", ")
    )
}

fn settings(out: &mut String, study: &Study) {
    let world = &study.world;
    let name = |field: &str| study.cluster.pointer(field).and_then(|name| name.as_str());
    let cluster: Vec<&str> = ["/metadata/namespace", "/metadata/name"]
        .into_iter()
        .filter_map(name)
        .collect();
    let strategies: Vec<String> = study.strategies.iter().map(ToString::to_string).collect();
    let pools: Vec<String> = world.pools.iter().map(pool).collect();
    let pools = if pools.is_empty() {
        "room for everything".to_owned()
    } else {
        pools.join("; ")
    };
    let lines = [
        ("Trace", study.trace.name.clone()),
        ("RayCluster", cluster.join("/")),
        ("Strategies", strategies.join(", ")),
        ("Kubernetes nodes", pools),
        (
            "From a pod's node to its Ray node",
            format!(
                "{} s, if not varied",
                number_of(world.pod_start_s + world.ray_start_s)
            ),
        ),
        ("Seed", world.seed.to_string()),
    ];
    out.push_str("<h2>What was simulated</h2>\n<dl>\n");
    for (name, value) in lines {
        let _ = writeln!(out, "<dt>{name}</dt><dd>{}</dd>", escaped(&value));
    }
    out.push_str("</dl>\n<p class=\"note\">Equal arguments give equal results.</p>\n");
}

fn pool(pool: &NodePool) -> String {
    let NodePool {
        name,
        min,
        max,
        gpus,
        ..
    } = pool;
    let cpu = pool.allocatable.cpu.unwrap_or_default();
    let memory = pool.allocatable.memory.unwrap_or_default().display_memory();
    let (start, idle) = (number_of(pool.start_s), number_of(pool.idle_s));
    let emptied = pool
        .consolidate_after_s
        .map_or_else(String::new, |seconds| {
            let seconds = number_of(seconds);
            format!(", emptied where their pods have fitted on other nodes for {seconds} s")
        });
    let marks: Vec<String> = (pool.labels.iter())
        .map(|(key, value)| format!("{key}={value}"))
        .chain(pool.taints.iter().map(|taint| {
            let NodeTaint { key, value, effect } = taint;
            format!("{key}={value}:{effect}")
        }))
        .collect();
    let marked = if marks.is_empty() {
        String::new()
    } else {
        format!(", marked {}", marks.join(" "))
    };
    let pulled = if pool.image_pull_s > 0.0 {
        format!(
            ", which pull an image in {} s",
            number_of(pool.image_pull_s)
        )
    } else {
        String::new()
    };
    format!(
        "{name}: {min} to {max} nodes of {cpu} CPUs, {memory} of memory and {gpus} GPUs, ready after {start} s, \
         removed after {idle} s without pods{emptied}{pulled}{marked}"
    )
}
