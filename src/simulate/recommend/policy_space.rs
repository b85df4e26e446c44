//! The fields to choose of the RayPolicy that holds for a cluster, and the values to try.

use super::bounds::{Bounds, SearchField};
use super::space::{Parameter, Space, counts};
use crate::plan::Strategy;
use crate::reconcile::RoundSettings;
use crate::simulate::trace::{Summary, Trace};
use crate::simulate::vary::PolicyField;

/// Seconds for which pods below their limits are kept.
const KEEP_SMALL: [f64; 6] = [0.0, 60.0, 120.0, 300.0, 600.0, 900.0];

/// Seconds after which spare CPU is given up.
const SHRINK_AFTER: [f64; 5] = [5.0, 15.0, 60.0, 120.0, 300.0];

impl Space {
    /// Adds what can be set of RayPolicies, where `settings` is what they say today: for how long
    /// small pods are kept and when pods shrink, where pods grow in place; and headroom, up to what
    /// the workload can use at once. None of it has an effect with strategy `ray`.
    #[must_use]
    pub fn with_policy(
        mut self,
        settings: &RoundSettings,
        trace: &Trace,
        bounds: &[Bounds],
    ) -> Self {
        if settings.plan.strategy != Strategy::Rayfit {
            return self;
        }
        let grows = self.groups.iter().any(|group| group.limits.is_some());
        let widest = Summary::of(trace).widest.cpus.ceil();
        for field in PolicyField::ALL {
            let (values, range) = match field {
                PolicyField::KeepSmallSeconds => (KEEP_SMALL.to_vec(), (0.0, KEEP_SMALL[5])),
                PolicyField::ShrinkAfterSeconds => {
                    (SHRINK_AFTER.to_vec(), (SHRINK_AFTER[0], SHRINK_AFTER[4]))
                }
                PolicyField::HeadroomCpus => {
                    let mut values = counts(widest);
                    // Headroom costs where nothing comes, so that none at all is always a choice.
                    values.push(0.0);
                    (values, (0.0, widest))
                }
            };
            if !grows && field != PolicyField::HeadroomCpus {
                continue;
            }
            let today = field.read(settings);
            // Only bounds that users give may exclude today's value; those of the search never do.
            let range = (today.min(range.0), today.max(range.1));
            let field = (SearchField::Policy(field), None);
            let parameter = Parameter::of(field, today, bounds, range, &values);
            self.parameters.extend(parameter);
        }
        self
    }
}
