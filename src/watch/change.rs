//! Changing what objects are judged by.

use arc_swap::ArcSwap;

use crate::policy::EffectivePolicy;

/// Changes what objects are judged by; the next request sees it.
pub(super) fn change(policy: &ArcSwap<EffectivePolicy>, change: impl Fn(&mut EffectivePolicy)) {
    policy.rcu(|policy| {
        let mut next = EffectivePolicy::clone(policy);
        change(&mut next);
        next
    });
}
