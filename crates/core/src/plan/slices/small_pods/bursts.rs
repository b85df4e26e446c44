//! Work that groups have had: bursts of it with the number of pods that they needed, and the pods that each group
//! had when it last had work for all of them.

use std::collections::BTreeMap;

use crate::plan::list::ByGroup;
use crate::plan::nodes::node::{PlannedNode, Stage};
use crate::plan::packing::state::{DecisionState, PlannedGroup};
use crate::plan::slices::findings::Findings;
use crate::snapshot::History;
use crate::snapshot::history::BurstMemory;

/// The most bursts of a group that are remembered.
const MOST: usize = 32;

/// After so many seconds without work a burst has ended: tasks that follow each other leave shorter
/// gaps.
const APART_S: f64 = 10.0;

/// The number of pods that each group had when it last had work for all of them.
pub(crate) fn at_work(history: &History, state: &DecisionState) -> ByGroup<u64> {
    let running = state.count(|node| node.stage() == Stage::Running && !node.head);
    let idle = state.count(PlannedNode::is_idle_worker);
    let most = |((group, running), idle): ((&PlannedGroup, u64), u64)| {
        // While none is idle, or none is there, what runs now is the number: older ones say
        // nothing more.
        match history.at_work.get(&group.config.name) {
            Some(previous) if idle > 0 && running > 0 => running.max(*previous),
            _ => running,
        }
    };
    (state.groups.iter().zip(running).zip(idle))
        .map(most)
        .collect()
}

/// The bursts of each group whose pods can be resized, with the one of now.
pub(crate) fn record(
    history: &History,
    state: &DecisionState,
    now: f64,
) -> ByGroup<Vec<BurstMemory>> {
    // A node has work, or is on its way for some.
    let needed = state.count(|node| {
        let has_work = node.stage() == Stage::Running && node.idle_ms == 0;
        !node.head && node.stays() && (has_work || !node.is_unneeded())
    });
    let bursts = |(group, needed): (&PlannedGroup, u64)| {
        if group.config.resize_limits.is_none() {
            return Vec::new();
        }
        let previous = history.bursts.get(&group.config.name);
        with(previous.cloned().unwrap_or_default(), needed, now)
    };
    state.groups.iter().zip(needed).map(bursts).collect()
}

/// The pods and the bursts to remember after a decision, of groups whose pods can be resized.
pub(crate) fn update(
    state: &DecisionState,
    findings: &Findings<'_>,
) -> (BTreeMap<String, u64>, BTreeMap<String, Vec<BurstMemory>>) {
    let groups = state.groups.iter();
    let at_work = (groups.clone().zip(findings.at_work.iter()))
        .filter(|(group, most)| **most > 0 && group.config.resize_limits.is_some())
        .map(|(group, most)| (group.config.name.clone(), *most));
    let bursts = (groups.zip(findings.bursts.iter().flat_map(ByGroup::iter)))
        .filter(|(_, bursts)| !bursts.is_empty())
        .map(|(group, bursts)| (group.config.name.clone(), bursts.clone()));
    (at_work.collect(), bursts.collect())
}

fn with(mut bursts: Vec<BurstMemory>, needed: u64, now: f64) -> Vec<BurstMemory> {
    match bursts.last_mut() {
        Some(last) if needed == 0 => {
            last.until = last.until.or(Some(now));
        }
        Some(last) if last.until.is_none_or(|until| now - until < APART_S) => {
            last.until = None;
            last.pods = last.pods.max(needed);
        }
        _ if needed == 0 => {}
        _ => {
            bursts.push(BurstMemory {
                at: now,
                until: None,
                pods: needed,
            });
            // Work changes over time, so the oldest burst says least about the next gap.
            let above = bursts.len().saturating_sub(MOST);
            bursts.drain(..above);
        }
    }
    bursts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_lasts_until_there_has_been_no_work_for_a_while() {
        let mut bursts = Vec::new();
        for (now, needed) in [
            (0.0, 0),
            (10.0, 3),
            (20.0, 8),
            (30.0, 0),
            (31.0, 0),
            (35.0, 2),
            (50.0, 0),
            (300.0, 1),
        ] {
            bursts = with(bursts, needed, now);
        }
        let burst = |at, until, pods| BurstMemory { at, until, pods };
        assert_eq!(bursts, [burst(10.0, Some(50.0), 8), burst(300.0, None, 1)]);
    }

    #[test]
    fn only_the_last_ones_are_remembered() {
        let bursts = (0..100_u32).fold(Vec::new(), |bursts, number| {
            let at = f64::from(number) * 100.0;
            with(with(bursts, 1, at), 0, at + 1.0)
        });
        assert_eq!((bursts.len(), bursts[0].at), (MOST, 6800.0));
    }
}
