//! Changes the policies and facts by which objects are judged.

use arc_swap::ArcSwap;

use rayfit_core::policy::EffectivePolicy;

/// Changes the policies and facts by which objects are judged; the next request uses the change.
pub(crate) fn change(policy: &ArcSwap<EffectivePolicy>, change: impl Fn(&mut EffectivePolicy)) {
    // Two kinds can change at the same moment: then this runs again on the value of the other one.
    policy.rcu(|policy| {
        let mut next = EffectivePolicy::clone(policy);
        change(&mut next);
        next
    });
}
