//! A plan in words, for people.

use std::fmt;

use crate::plan::outcome::amounts::{amount_text, cpu, memory};
use crate::plan::outcome::plan::{
    ClusterEnd, ClusterEndPolicy, CountedUsers, ExcessNode, GroupPlan, Plan, PodResize, RayletSync,
};
use crate::plan::strategy::Strategy;
use crate::snapshot::moment;

/// The most of the resources held by work that are named.
const HELD: usize = 5;

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(why) = &self.waiting {
            writeln!(f, "  nothing is done: {why}")?;
        } else if self.is_quiet() {
            writeln!(f, "  nothing to do")?;
        }
        if let Some(end) = &self.end {
            writeln!(f, "  {end}")?;
        }
        for group in &self.groups {
            write_group(f, group)?;
        }
        for resize in &self.resizes {
            writeln!(f, "  resize {}: {}", resize.pod, resize.sizes())?;
        }
        for sync in &self.raylet_syncs {
            writeln!(f, "  tell the raylet of {}: {}", sync.pod, sync.size())?;
        }
        for drain in &self.drains {
            let (pod, why) = (&drain.pod, drain.cause);
            let idle = drain.idle_ms / 1000;
            write!(f, "  drain {pod} ({why}, idle for {idle} s)")?;
            match drain.stop_at {
                // Ray stops what is above a maximum in the round in which it finds it, so no time is worth showing.
                Some(_) if self.strategy == Strategy::Ray => writeln!(f, ", stopped at once")?,
                Some(at) => writeln!(f, ", stopped at {} at the latest", moment(at))?,
                None => writeln!(f)?,
            }
        }
        for hold in &self.holds {
            let what = if hold.holds { "mark" } else { "unmark" };
            writeln!(f, "  {what} {} for node autoscalers", hold.pod)?;
        }
        for node in &self.excess {
            writeln!(f, "  above the maximum: {node}")?;
        }
        for departure in &self.departures {
            writeln!(f, "  about to leave: {departure}")?;
        }
        for unmet in &self.unmet {
            writeln!(f, "  cannot be met: {} x {}", unmet.count, unmet.demand)?;
            for reason in &unmet.reasons {
                writeln!(f, "    {reason}")?;
            }
        }
        for problem in &self.problems {
            writeln!(f, "  problem: {problem}")?;
        }
        Ok(())
    }
}

impl fmt::Display for ClusterEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let since = moment(self.unused_since);
        let what = match self.policy {
            ClusterEndPolicy::Suspend => "suspend the cluster",
            ClusterEndPolicy::Delete => "delete the cluster",
        };
        let without = self.counted.none();
        let beside = match self.counted {
            CountedUsers::Drivers => "; detached actors do not count",
            CountedUsers::DriversAndDetachedActors => "",
        };
        write!(
            f,
            "{what}: since {since} it has had {without}{beside} (spec.idleTerminationOptions)"
        )
    }
}

impl Plan {
    /// True for a plan that has nothing to do.
    pub fn is_quiet(&self) -> bool {
        let acts = |group: &GroupPlan| {
            group.launch_now > 0
                || group.deletions().next().is_some()
                || group.replicas_now.is_some_and(|now| now != group.replicas)
        };
        let pods = self.resizes.len() + self.drains.len() + self.raylet_syncs.len();
        let pods = pods + self.holds.len() + usize::from(self.end.is_some());
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
        let why = format!("{}{}", group.initial_size_text(), group.standby_reasons());
        match (launch, launch_now) {
            (0, 0) => writeln!(f)?,
            (_, 1) if *launch <= 1 => writeln!(f, " (1 new node{why})")?,
            (launch, now) if now >= launch => writeln!(f, " ({now} new nodes{why})")?,
            (launch, now) => writeln!(f, " ({now} of {launch} new nodes in this round{why})")?,
        }
    }
    for deletion in group.deletions() {
        writeln!(f, "  delete {} ({})", deletion.pod, deletion.cause)?;
    }
    Ok(())
}

impl GroupPlan {
    /// The size with which pods of new nodes are made, in words for people; empty if their template
    /// gives it.
    pub fn initial_size_text(&self) -> String {
        let size = self.initial_size.as_ref();
        size.map_or_else(String::new, |size| format!(", to be made with {size} each"))
    }

    /// The number of new nodes that no demand needs, and the reasons for them, in words for people;
    /// empty if there are none.
    pub fn standby_reasons(&self) -> String {
        let reasons = self.standby.iter();
        let reasons = reasons.map(|launch| format!(", {} for {}", launch.nodes, launch.reason));
        reasons.collect()
    }
}

impl PodResize {
    /// The present and the new size in words, for people.
    pub fn sizes(&self) -> String {
        let (from, to) = (cpu(self.cpu_milli_now), cpu(self.cpu_milli));
        let (less, more) = (memory(self.memory_bytes_now), memory(self.memory_bytes));
        if self.is_rollback() {
            return format!("back to {to} CPU, {more}");
        }
        let sizes = format!("{from} -> {to} CPU, {less} -> {more}");
        match (self.spare_seconds, self.memory_reason, &self.demand) {
            (Some(seconds), ..) => format!("{sizes} (the rest was spare for {seconds} s)"),
            (None, Some(reason), _) => format!("{sizes} ({reason})"),
            (None, None, Some(demand)) => format!("{sizes} ({demand})"),
            (None, None, None) => sizes,
        }
    }

    /// The present size of the pod in words, for people.
    pub fn size_now(&self) -> String {
        let (cpu, memory) = (cpu(self.cpu_milli_now), memory(self.memory_bytes_now));
        format!("{cpu} CPU, {memory}")
    }

    /// True if the pod only gives something up.
    pub fn only_shrinks(&self) -> bool {
        let grows =
            self.cpu_milli > self.cpu_milli_now || self.memory_bytes > self.memory_bytes_now;
        self.raylet_first && !grows
    }

    /// True if it asks for the size that the pod has, which takes an earlier resize back.
    pub fn is_rollback(&self) -> bool {
        self.cpu_milli == self.cpu_milli_now && self.memory_bytes == self.memory_bytes_now
    }
}

impl fmt::Display for ExcessNode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            pod, group, cause, ..
        } = self;
        let holds = self.holds.iter();
        let holds: Vec<String> = holds
            .take(HELD)
            .map(|(name, amount)| format!("{name}: {}", amount_text(name, *amount)))
            .collect();
        let work = if holds.is_empty() {
            "work that holds no resources".to_owned()
        } else {
            format!("work that holds {{{}}}", holds.join(", "))
        };
        write!(
            f,
            "pod {pod} of group {group} ({cause}) takes no new work and waits for {work}; it is \
             stopped "
        )?;
        match self.stop_at {
            Some(at) => write!(f, "at {}", moment(at)),
            None => write!(
                f,
                "{} seconds after it was asked to leave at the latest (the Event AboveMaximum says \
                 when)",
                self.longest_s
            ),
        }
    }
}

impl RayletSync {
    /// The size in words, for people.
    pub fn size(&self) -> String {
        let (cpu, memory) = (cpu(self.cpu_milli), memory(self.memory_bytes));
        format!("{cpu} CPU, {memory}")
    }
}
