//! The decision as Ray makes it: nodes, demand, packing, growth, minima, maxima and idle nodes. (Ray, `scheduler.py`,
//! `ResourceDemandScheduler.schedule`.)

use crate::plan::assemble;
use crate::plan::decided::Decided;
use crate::plan::growth::pod_size;
use crate::plan::nodes::group::ClusterConfig;
use crate::plan::nodes::{problems, rows};
use crate::plan::packing::pack::PackingRules;
use crate::plan::removal::enforce;
use crate::plan::serve::serve;
use crate::plan::situation::Situation;

/// Decides as Ray does. A fault that aborts Ray's loop is a problem here.
pub(crate) fn decide<'a>(situation: &'a Situation<'a>) -> Decided<'a> {
    let (settings, now) = (situation.settings, situation.now);
    let mut config = ClusterConfig::of(&situation.snapshot.ray_cluster);
    let mut problems = std::mem::take(&mut config.problems);
    problems.extend(problems::all(situation.snapshot, situation.own_pods));
    let (mut rows, leftovers) = rows::rows(situation);
    problems.extend(rows::take_out_unknown(&mut rows, &config));
    let (mut state, demands) = assemble::state(situation, &config, &rows, &[]);
    problems.extend(assemble::faults(&state, "nothing is placed on it"));
    problems.extend(assemble::read_resizes(
        &mut state,
        &rows,
        |_, _, pod, group, sizes| pod_size::resize(pod, sizes, (group.resize_timeout_s, now)),
    ));
    assemble::count_at_limits(&mut state);
    // Ray counts nodes that it launches for minima at their base size, although it counts other new nodes at their
    // resize limits.
    enforce::enforce_minima(&mut state, |group| &group.base);
    enforce::enforce_group_maxima(&mut state, false);
    enforce::enforce_cluster_maximum(&mut state, false);
    // After the maxima, because a demand must not be served by a node that a maximum forces out.
    let remainder = serve(&mut state, &demands, PackingRules::AsRay);
    let pending_s = settings.pending_idle_timeout_s;
    if pending_s.is_some() {
        enforce::note_unneeded(&mut state, &situation.history().unneeded_since, now);
    }
    enforce::enforce_idle(&mut state, (config.idle_timeout_s, pending_s), now);
    enforce::forget_removed(&mut state);
    problems.extend(state.cut());
    Decided {
        situation,
        config,
        state,
        demands,
        remainder,
        leftovers,
        problems,
    }
}
