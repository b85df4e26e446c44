//! The page: everything that it says of the strategies is made from the figures.

use std::cmp::Ordering;
use std::fmt::Write as _;

use super::compare::{
    ALL, CPU_HOURS, GPU_HOURS, HARMED, Metric, P99, SAME, Verdict, WAIT, beaten, geometric_mean,
    wait_gone,
};
use super::figures::{LIMIT_IDLE_S, Results, SetFigures, Setting};
use super::pictures;
use super::recorded::Recording;
use super::sets::{self, Set};

/// The page. Sets that there are no longer are left out.
pub fn markdown(results: &Results) -> String {
    let sets = sets::all();
    let figures = |set| Some((set, results.set(set_name(set))?));
    let sets: Vec<(&Set, &SetFigures)> = sets.iter().filter_map(figures).collect();
    let mut out = INTRODUCTION.replace("COMMIT", &results.commit);
    summary(&mut out, &sets);
    not_better(&mut out, &sets);
    out.push_str(&METHOD.replace("SEEDS", &seeds(&results.seeds)));
    list(&mut out, &sets);
    for (set, figures) in &sets {
        section(&mut out, set, figures);
    }
    sources(&mut out, &sets);
    out
}

/// What the figures say of chance.
fn seeds(seeds: &[u64]) -> String {
    match seeds {
        [seed] => format!(
            "Everything random is drawn from seed {seed} alone, so small\ndifferences may be chance."
        ),
        seeds => format!("The figures are means over the seeds {seeds:?}."),
    }
}

fn set_name(set: &Set) -> &str {
    set.name
}

const INTRODUCTION: &str = "\
# What Rayfit's strategy brings

Rayfit's strategy beside Ray's own on the same workloads, in simulations: how long jobs wait, and what the worker pods cost.
`make outcome` makes this page with all of its tables, pictures and conclusions from [these figures](outcome/results.json) of
COMMIT, and a test repeats two of the settings, and fails when the code leads to other figures. Time is virtual, so they are the
same on every machine. What the simulator leaves out is told in [simulate.md](simulate.md#what-is-not-modelled); what strategy `ray` stands for,
[there too](simulate.md#how-strategy-ray-stands-for-ray).

";

const METHOD: &str = "\
## What is compared

Each set is a workload on a RayCluster. It is simulated with both strategies, with pods that take 1, 60 and 300 s from their node
to their Ray node, and with an `idleTimeoutSeconds` of 10, 60 and 300. SEEDS

- **mean wait**, **p99 wait**: from when a job was ready until it started, over all jobs of the workload, and what 99 of 100 jobs
  waited at most. Less than 0.1 s counts as 0.1 s where ratios are formed.
- **CPU-hours**, **GPU-hours**: of worker pods, from when they are bound to a node until they are gone. The head is not counted.
- **jobs harmed or never run**: those that ran when their pod went, were lost, or still waited at the end.
- A **ratio** is Rayfit's figure as a multiple of Ray's: below 1 is less, and better. Differences of less than 1 %, and those in
  which the seeds contradict each other, count as none.
- **better** is a setting in which one of these figures is better and none is worse; **traded**, one in which one is better and
  another one worse; **worse**, one in which one is worse and none better.
- A point (mean wait and CPU-hours with one idle timeout) is **beaten** if the other strategy has a point, with whatever idle
  timeout, that waits no longer, costs no more, and differs.

";

fn plural(count: usize, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}

/// The values of pod starts that there are, in their order.
pub fn pod_starts<'a>(settings: impl IntoIterator<Item = &'a Setting>) -> Vec<u32> {
    let mut found: Vec<u32> = Vec::new();
    for setting in settings {
        if !found.contains(&setting.pod_start) {
            found.push(setting.pod_start);
        }
    }
    found
}

type Pairs<'a> = [(&'a Set, &'a SetFigures)];

fn settings<'a>(sets: &'a Pairs<'a>) -> impl Iterator<Item = &'a Setting> {
    sets.iter().flat_map(|(_, figures)| &figures.settings)
}

fn summary(out: &mut String, sets: &Pairs<'_>) {
    let jobs: usize = sets.iter().map(|(_, figures)| figures.jobs).sum();
    let _ = writeln!(
        out,
        "## In short\n\n{} with {jobs} jobs. Geometric means over all of them of Rayfit's figures as multiples of Ray's, and in how \
         many settings Rayfit is [better, the same, traded or worse](#what-is-compared):\n",
        plural(sets.len(), "set", "sets"),
    );
    out.push_str(
        "| pods start in | idle timeout | mean wait | p99 wait | CPU-hours | better | same | traded | worse |\n\
         |---:|---:|---:|---:|---:|---:|---:|---:|---:|\n",
    );
    let starts = pod_starts(settings(sets));
    for start in &starts {
        let of_start: Vec<&Setting> = settings(sets)
            .filter(|one| one.pod_start == *start)
            .collect();
        let mut idles: Vec<u32> = of_start.iter().map(|one| one.idle).collect();
        idles.sort_unstable();
        idles.dedup();
        for idle in idles {
            let of_idle = of_start.iter().filter(|one| one.idle == idle);
            let of_idle: Vec<&Setting> = of_idle.copied().collect();
            means(out, &format!("{start} s"), &format!("{idle} s"), &of_idle);
        }
        means(out, &format!("**{start} s**"), "**all**", &of_start);
    }
    out.push('\n');
    for start in &starts {
        let of_start = || settings(sets).filter(|one| one.pod_start == *start);
        let said = |metric: Metric| said(metric, mean_ratio(metric, of_start()));
        let _ = writeln!(
            out,
            "- Where pods start in {start} s, {}, {} and {}.",
            said(WAIT),
            said(P99),
            said(CPU_HOURS),
        );
    }
    out.push_str(
        "\nWho waits less and pays more for it has won nothing. So the points of each strategy, one for each idle timeout, are \
         compared with those of the other one, for each set and pod start:\n\n\
         | pods start in | points of each | Ray's beaten by Rayfit | Rayfit's beaten by Ray |\n|---:|---:|---:|---:|\n",
    );
    for start in &starts {
        let start = *start;
        let points = settings(sets).filter(|one| one.pod_start == start).count();
        let beaten = sets.iter().map(|(_, figures)| beaten(figures, start));
        let (ray, rayfit) = beaten.fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
        let _ = writeln!(out, "| {start} s | {points} | {ray} | {rayfit} |");
    }
    limit(out, sets, &starts);
}

/// How far Rayfit is from the decider without delay: of each set, and of all of them.
fn limit(out: &mut String, sets: &Pairs<'_>, starts: &[u32]) {
    if settings(sets).all(|one| one.limit.is_none()) {
        out.push('\n');
        return;
    }
    let _ = writeln!(
        out,
        "\nHow far Rayfit is from the limit of what reacting can give, with an idle timeout of {LIMIT_IDLE_S} s: a decider like it \
         that sees the true state at every moment, and makes pods as large as all that waits for them needs. It has no foresight: \
         nothing is kept for longer than the idle timeout. KubeRay, kubelets and pods still take their time. Rayfit's figures as \
         multiples of its figures (of several sets, geometric means), and the part of the avoidable wait that is gone: Ray's wait \
         less Rayfit's, of Ray's less that of the limit. Keeping small pods is foresight, by which more than all of it can go.\n"
    );
    out.push_str("| pods start in |");
    for start in starts {
        let _ = write!(out, " {start} s: mean wait | CPU-hours | gone |");
    }
    let _ = writeln!(out, "\n|---|{}", "---:|".repeat(3 * starts.len()));
    let mut row = |name: &str, is_in: &dyn Fn(&Set) -> bool| {
        let _ = write!(out, "| {name} |");
        for start in starts {
            let of_sets = sets.iter().filter(|(set, _)| is_in(set));
            let of_sets = of_sets.flat_map(|(_, figures)| &figures.settings);
            let found: Vec<&Setting> = of_sets.filter(|one| one.pod_start == *start).collect();
            let (wait, cpus) = (regret(WAIT, &found), regret(CPU_HOURS, &found));
            let _ = write!(out, " {wait} | {cpus} | {} |", gone(found));
        }
        out.push('\n');
    };
    row("**all**", &|_| true);
    row("**where pods grow**", &|set| set.cluster.grows());
    row("**where they do not**", &|set| !set.cluster.grows());
    for (set, _) in sets {
        row(set.name, &|one| one.name == set.name);
    }
    out.push('\n');
}

/// Rayfit's figures as a multiple of those of the decider without delay, as a geometric mean.
pub fn regret(metric: Metric, settings: &[&Setting]) -> String {
    let ratios = settings.iter().filter_map(|one| metric.regret(one));
    let mean = geometric_mean(ratios).map(|ratio| format!("{ratio:.2}"));
    mean.unwrap_or_else(|| "-".to_owned())
}

/// The part of the avoidable wait that is gone, in percent.
pub fn gone<'a>(settings: impl IntoIterator<Item = &'a Setting>) -> String {
    let part = wait_gone(settings).map(|part| format!("{:.0} %", part * 100.0));
    part.unwrap_or_else(|| "-".to_owned())
}

fn mean_ratio<'a>(metric: Metric, settings: impl Iterator<Item = &'a Setting>) -> f64 {
    geometric_mean(settings.map(|setting| metric.ratio(setting))).unwrap_or(1.0)
}

fn means(out: &mut String, start: &str, idle: &str, settings: &[&Setting]) {
    let mean = |metric| mean_ratio(metric, settings.iter().copied());
    let count = |verdict| {
        let verdicts = settings.iter().map(|setting| Verdict::on(setting));
        verdicts.filter(|found| *found == verdict).count()
    };
    let _ = writeln!(
        out,
        "| {start} | {idle} | {:.2} | {:.2} | {:.2} | {} | {} | {} | {} |",
        mean(WAIT),
        mean(P99),
        mean(CPU_HOURS),
        count(Verdict::Better),
        count(Verdict::Same),
        count(Verdict::Traded),
        count(Verdict::Worse),
    );
}

/// A ratio in words: `the mean wait is 12 % less`.
fn said(metric: Metric, ratio: f64) -> String {
    let name = metric.name;
    let is = if name.ends_with('s') { "are" } else { "is" };
    let name = format!("the {name} {is}");
    if (ratio - 1.0).abs() < SAME {
        format!("{name} the same")
    } else {
        format!("{name} {}", change(ratio))
    }
}

/// How much less or more: `12 % less`.
fn change(ratio: f64) -> String {
    let percent = (ratio - 1.0).abs() * 100.0;
    let digits = usize::from(percent < 9.95);
    let than = if ratio < 1.0 { "less" } else { "more" };
    format!("{percent:.digits$} % {than}")
}

/// The settings in which Rayfit is not better, by name.
fn not_better(out: &mut String, sets: &Pairs<'_>) {
    let all = settings(sets).count();
    let with = |verdict| {
        settings(sets)
            .filter(move |one| Verdict::on(one) == verdict)
            .count()
    };
    let not = all - with(Verdict::Better);
    out.push_str("## Where Rayfit is not better\n\n");
    let _ = writeln!(
        out,
        "In {not} of {all} settings: in {} it is the same, in {} it trades one for the other, in {} it is worse.\n",
        with(Verdict::Same),
        with(Verdict::Traded),
        with(Verdict::Worse),
    );
    if with(Verdict::Traded) + with(Verdict::Worse) > 0 {
        out.push_str(
            "| set | pods start in | idle timeout | verdict | what is worse | what is better |\n\
             |---|---:|---:|---|---|---|\n",
        );
    }
    for (verdict, name) in [(Verdict::Worse, "worse"), (Verdict::Traded, "traded")] {
        for (set, figures) in sets {
            for setting in figures
                .settings
                .iter()
                .filter(|one| Verdict::on(one) == verdict)
            {
                let _ = writeln!(
                    out,
                    "| [{0}](#{0}) | {1} s | {2} s | {name} | {3} | {4} |",
                    set.name,
                    setting.pod_start,
                    setting.idle,
                    differences(setting, Ordering::Greater),
                    differences(setting, Ordering::Less),
                );
            }
        }
    }
    let same = |(set, figures): &(&Set, &SetFigures)| {
        let same = figures
            .settings
            .iter()
            .filter(|one| Verdict::on(one) == Verdict::Same);
        let same: Vec<String> = same
            .map(|one| format!("{}/{}", one.pod_start, one.idle))
            .collect();
        (!same.is_empty()).then(|| format!("[{0}](#{0}) ({1})", set.name, same.join(", ")))
    };
    let same: Vec<String> = sets.iter().filter_map(same).collect();
    if !same.is_empty() {
        let same = same.join(", ");
        let _ = writeln!(
            out,
            "\nThe same, as pod start/idle timeout in seconds: {same}."
        );
    }
    out.push('\n');
}

fn differences(setting: &Setting, order: Ordering) -> String {
    let differs = ALL.iter().filter(|metric| metric.order(setting) == order);
    let texts: Vec<String> = differs
        .map(|metric| {
            let (ray, rayfit) = (metric.mean(&setting.ray), metric.mean(&setting.rayfit));
            format!(
                "{} {} ({} instead of {})",
                metric.name,
                change(metric.ratio(setting)),
                number(rayfit),
                number(ray)
            )
        })
        .collect();
    texts.join("; ")
}

/// A figure with three significant digits.
pub fn number(value: f64) -> String {
    let digits = match value {
        value if value >= 100.0 => 0,
        value if value >= 10.0 => 1,
        _ => 2,
    };
    format!("{value:.digits$}")
}

fn list(out: &mut String, sets: &Pairs<'_>) {
    out.push_str(
        "## The sets\n\n\
         RayClusters: [`fixed`](../tests/outcome/fixed.yaml) has workers of 4 CPUs; [`growing`](../tests/outcome/growing.yaml), \
         workers of 2 CPUs that grow in place up to 8; [`gpu`](../tests/outcome/gpu.yaml), four groups with and without GPUs. All \
         begin without workers, and have room for everything, but for `shapes-nodes`, whose \
         [nodes](../tests/outcome/nodes.yaml) of 15.5 CPUs come in 60 s and limit growth.\n\n\
         | set | workload | RayCluster | jobs | CPU-hours of work |\n|---|---|---|---:|---:|\n",
    );
    for (set, figures) in sets {
        let nodes = set.nodes.map_or("", |_| ", nodes");
        let _ = writeln!(
            out,
            "| [{0}](#{0}) | {1} | {2}{nodes} | {3} | {4} |",
            set.name,
            set.what,
            set.cluster.name(),
            figures.jobs,
            number(figures.work),
        );
    }
    out.push('\n');
}

fn section(out: &mut String, set: &Set, figures: &SetFigures) {
    let _ = writeln!(
        out,
        "### {}\n\n{} jobs: {}.\n",
        set.name, figures.jobs, set.what
    );
    let has = |metric: &Metric| {
        let mut settings = figures.settings.iter();
        settings.any(|one| metric.mean(&one.ray) + metric.mean(&one.rayfit) > 0.0)
    };
    let optional = [GPU_HOURS, HARMED];
    let metrics: Vec<Metric> = [WAIT, P99, CPU_HOURS]
        .into_iter()
        .chain(optional.into_iter().filter(has))
        .collect();
    out.push_str("| pods start in | idle timeout |");
    for metric in &metrics {
        let _ = write!(out, " {}: Ray | Rayfit | ratio |", metric.name);
    }
    out.push_str("\n|---:|---:|");
    out.push_str(&"---:|".repeat(3 * metrics.len()));
    out.push('\n');
    for setting in &figures.settings {
        let _ = write!(out, "| {} s | {} s |", setting.pod_start, setting.idle);
        for metric in &metrics {
            let (ray, rayfit) = (metric.mean(&setting.ray), metric.mean(&setting.rayfit));
            let ratio = metric.ratio(setting);
            let _ = write!(out, " {} | {} | {ratio:.2} |", number(ray), number(rayfit));
        }
        out.push('\n');
    }
    let file = pictures::file(figures);
    let _ = writeln!(out, "\n![Cost against mean wait of {}]({file})\n", set.name);
}

fn sources(out: &mut String, sets: &Pairs<'_>) {
    out.push_str(
        "## Where the workloads come from\n\n\
         The made ones are made by [a program](../tests/outcome/made.rs). The recorded ones are not in this repository: the graphs \
         are of [WfInstances](https://github.com/wfcommons/WfInstances) of WfCommons (LGPL-3.0), the pods of Alibaba's \
         [cluster-trace-gpu-v2023](https://github.com/alibaba/clusterdata/tree/master/cluster-trace-gpu-v2023) (for research or \
         study; published with Weng et al., \"Beware of Fragmentation\", USENIX ATC 2023). Of the graphs, times, cores and \
         dependencies are used. Of Alibaba's pods those count that were created on day 148 and ever ran: each is a task that is \
         submitted when the pod was created, asks for the pod's CPUs, memory and GPUs, and runs for as long as the pod did until \
         it was deleted or the recording ended; types of GPUs are left out.\n\n",
    );
    let mut files: Vec<&Recording> = Vec::new();
    for recording in sets.iter().filter_map(|(set, _)| set.recording()) {
        if !files.contains(&recording) {
            files.push(recording);
        }
    }
    for recording in files {
        let _ = writeln!(out, "- [{}]({})", recording.file, recording.url);
    }
    out.push_str(
        "\n## Running it again\n\n    \
         make outcome                                    # everything, in minutes; writes this page\n    \
         make outcome SETS=bursts,gangs                  # only these; prints a table beside the page's figures, writes nothing\n    \
         make outcome SETS=made POD_START=60 IDLE=60 SEEDS=1\n    \
         make outcome SETS=growing POD_START=60 IDLE=60 POLICY=policy.yaml   # with the `reconcile` settings of a RayPolicy\n    \
         make outcome ABLATION=1                         # without each slice in turn; writes its table of planner.md\n    \
         rayfit simulate trace.jsonl --cluster tests/outcome/growing.yaml    # the same RayCluster with your trace\n\n\
         `SETS` has names of sets, `made`, `recorded` or `growing` (whose pods grow). A recording that is not there is told with the command that downloads it \
         into `.work/outcome`, or into the folder that `TRACES` names.\n",
    );
}
