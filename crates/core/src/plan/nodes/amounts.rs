//! The resources of a node.

use crate::plan::demand::names::Name;

/// The amounts of a node that count for the demand that is packed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CountedAmounts {
    /// The amounts that are free now: for pending tasks, actors and placement groups.
    Free = 0,
    /// The total amounts: for `request_resources()`.
    Total = 1,
}

/// One resource of a node.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct NodeResource {
    pub(crate) name: Name,
    /// The total amount; `None` if the resource is not listed.
    pub(crate) total: Option<f64>,
    /// The free amount, by [`CountedAmounts`]; `None` if the resource is not listed.
    pub(crate) free: [Option<f64>; 2],
}

/// The resources of a node.
#[derive(Debug, Clone, Default)]
pub(crate) struct NodeAmounts {
    /// The resources that any request names, CPU, memory, and the resources in use.
    pub(crate) listed: Vec<NodeResource>,
    /// The number of further resources. They are all free and no request names them, so they
    /// only weigh in means.
    pub(crate) untouched: u32,
}

impl NodeAmounts {
    /// The amounts of a resource, if it is listed.
    pub(crate) fn get(&self, name: Name) -> Option<&NodeResource> {
        self.listed.iter().find(|amount| amount.name == name)
    }

    /// The amounts of a resource, if it is listed.
    pub(crate) fn get_mut(&mut self, name: Name) -> Option<&mut NodeResource> {
        self.listed.iter_mut().find(|amount| amount.name == name)
    }

    /// The total amount of a resource, if it is listed.
    pub(crate) fn total(&self, name: Name) -> Option<f64> {
        self.get(name)?.total
    }

    /// The amount of a resource that is in use, or was placed on the node.
    pub(crate) fn taken(&self, name: Name) -> Option<f64> {
        let amount = self.get(name)?;
        let free = amount.free.into_iter().flatten().reduce(f64::min);
        amount.total.map(|total| total - free.unwrap_or(total))
    }

    /// Sets the total of a resource and changes its free amounts by the difference, never below
    /// zero.
    pub(crate) fn set_total(&mut self, name: Name, total: f64) {
        if self.get(name).is_none() {
            self.listed.push(NodeResource {
                name,
                total: None,
                free: [None; 2],
            });
        }
        if let Some(amount) = self.get_mut(name) {
            let delta = total - amount.total.unwrap_or(0.0);
            // Ray takes a suggestion below zero as it is, and strategy `Ray` does so, too.
            amount.total = Some(total.max(0.0));
            for free in &mut amount.free {
                *free = Some((free.unwrap_or(0.0) + delta).max(0.0));
            }
        }
    }

    /// The mean share in use over all resources.
    pub(crate) fn mean_use(&self) -> f64 {
        let mut count = self.untouched;
        let mut sum = 0.0;
        for amount in &self.listed {
            if let Some(total) = amount.total.filter(|total| *total > 0.0) {
                sum += (total - amount.free[CountedAmounts::Free as usize].unwrap_or(0.0)) / total;
                count += 1;
            }
        }
        if count == 0 {
            0.0
        } else {
            sum / f64::from(count)
        }
    }
}
