//! A plan for people.

use std::fmt;

use super::outcome::{GroupPlan, Plan, PodResize};
use crate::quantity::Quantity;

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(why) = &self.waiting {
            writeln!(f, "  nothing is done: {why}")?;
        } else if self.is_quiet() {
            writeln!(f, "  nothing to do")?;
        }
        for group in &self.groups {
            write_group(f, group)?;
        }
        for resize in &self.resizes {
            writeln!(f, "  resize {}: {}", resize.pod, sizes(resize))?;
        }
        for sync in &self.raylet_syncs {
            let (cpu, memory) = (cpu(sync.cpu_milli), memory(sync.memory_bytes));
            writeln!(f, "  tell the raylet of {}: {cpu} CPU, {memory}", sync.pod)?;
        }
        for drain in &self.drains {
            let idle = drain.idle_ms / 1000;
            writeln!(
                f,
                "  drain {} ({}, idle for {idle} s)",
                drain.pod,
                drain.cause.words()
            )?;
        }
        for unmet in &self.unmet {
            writeln!(f, "  cannot be met: {} x {}", unmet.count, unmet.demand)?;
            for reason in &unmet.reasons {
                writeln!(f, "    {reason}")?;
            }
        }
        for problem in &self.problems {
            writeln!(
                f,
                "  problem: {}: {}; {}",
                problem.at, problem.reason, problem.effect
            )?;
        }
        Ok(())
    }
}

impl Plan {
    /// Nothing is to be done.
    pub fn is_quiet(&self) -> bool {
        let acts = |group: &GroupPlan| {
            group.launch_now > 0
                || !group.delete.is_empty()
                || group.replicas_now.is_some_and(|now| now != group.replicas)
        };
        let pods = self.resizes.len() + self.drains.len() + self.raylet_syncs.len();
        pods == 0 && !self.groups.iter().any(acts)
    }
}

fn write_group(f: &mut fmt::Formatter<'_>, group: &GroupPlan) -> fmt::Result {
    let GroupPlan {
        name,
        launch,
        launch_now,
        ..
    } = group;
    let now = group.replicas_now.unwrap_or(0);
    if group.replicas != now || *launch > 0 {
        write!(f, "  group {name}: {now} -> {} replicas", group.replicas)?;
        match (launch, launch_now) {
            (0, 0) => writeln!(f)?,
            (launch, now) if now >= launch => writeln!(f, " ({})", new_nodes(*now))?,
            (launch, now) => writeln!(f, " ({now} of {launch} new nodes in this round)")?,
        }
    }
    for deletion in &group.delete {
        writeln!(f, "  delete {} ({})", deletion.pod, deletion.cause.words())?;
    }
    Ok(())
}

fn new_nodes(count: u64) -> String {
    if count == 1 {
        "1 new node".to_owned()
    } else {
        format!("{count} new nodes")
    }
}

fn sizes(resize: &PodResize) -> String {
    let same =
        resize.cpu_milli == resize.cpu_milli_now && resize.memory_bytes == resize.memory_bytes_now;
    if same {
        return format!(
            "back to {} CPU, {}",
            cpu(resize.cpu_milli),
            memory(resize.memory_bytes)
        );
    }
    let (from, to) = (cpu(resize.cpu_milli_now), cpu(resize.cpu_milli));
    let (less, more) = (memory(resize.memory_bytes_now), memory(resize.memory_bytes));
    format!("{from} -> {to} CPU, {less} -> {more}")
}

fn cpu(milli: i64) -> String {
    Quantity::from_milli(milli).display_cpu()
}

fn memory(bytes: i64) -> String {
    Quantity::from_units(bytes).display_memory()
}
