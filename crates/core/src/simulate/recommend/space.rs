//! Fields of a RayCluster to set, and of the RayPolicy that holds for it, and the values to try.

use serde_json::Value;
use strum::IntoEnumIterator as _;

use super::bounds::{Bounds, SearchField};
use crate::plan::Strategy;
use crate::quantity::Quantity;
use crate::ray::{RayObject, Resource, Role};
use crate::reconcile::RoundSettings;
use crate::simulate::settings::NodePool;
use crate::simulate::trace::{Summary, Trace, Widest};
use crate::simulate::vary::PolicyField;
use crate::snapshot::cluster_object::{ClusterObject, ClusterSpec, DEFAULT_IDLE_TIMEOUT_S};
use crate::snapshot::group_spec::GroupSpec;

/// Idle timeouts to try, in seconds.
const IDLE_TIMEOUTS: [f64; 11] = [
    10.0, 20.0, 30.0, 45.0, 60.0, 90.0, 120.0, 180.0, 300.0, 600.0, 900.0,
];

/// The longest idle timeout to try is the workload's time divided by this: a trace cannot tell the
/// use of pods that are kept for much of that time.
const PARTS: f64 = 8.0;

/// Seconds for which pods below their limits are kept.
const KEEP_SMALL: [f64; 6] = [0.0, 60.0, 120.0, 300.0, 600.0, 900.0];

/// Seconds after which spare CPU is given up.
const SHRINK_AFTER: [f64; 5] = [5.0, 15.0, 60.0, 120.0, 300.0];

/// Sizes of pods, and limits of their growth, as multiples of today's.
const SIZES: [f64; 7] = [0.125, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0];

/// The multiple of today's size that a pod may have where no node pool says what fits.
const LARGER: f64 = 4.0;

/// A worker group, as far as the search needs it.
#[derive(Debug, Clone, PartialEq)]
pub struct SearchedGroup {
    /// Its position in `workerGroupSpecs`.
    pub index: usize,
    /// Its name.
    pub name: Option<String>,
    /// The limits of growth in place: cores and memory.
    pub limits: Option<(Quantity, Quantity)>,
}

/// A field of the cluster or of one group, and the values to try.
#[derive(Debug, Clone, PartialEq)]
pub struct Parameter {
    /// The field.
    pub field: SearchField,
    /// The group, by its position in [`Space::groups`]; `None` for the whole cluster.
    pub group: Option<usize>,
    /// The values in ascending order. Numbers of replicas count pods of today's size.
    pub values: Vec<f64>,
    /// The position of the value that holds today.
    pub today: usize,
    /// The bounds. Today's value may be outside, and is not chosen then.
    pub range: (f64, f64),
}

/// The position of the value of each parameter.
pub type Choice = Vec<usize>;

/// Everything that can be chosen for one RayCluster.
#[derive(Debug, Clone, PartialEq)]
pub struct Space {
    /// The RayCluster as it is today.
    pub cluster: Value,
    /// Its worker groups.
    pub groups: Vec<SearchedGroup>,
    /// The parameters of the search.
    pub parameters: Vec<Parameter>,
}

impl Space {
    /// The choices for a cluster that is to run this workload on these nodes. Where users give no bounds,
    /// they are derived: numbers of replicas from the most that the workload asks for at once, idle timeouts
    /// from how long it takes, sizes from today's and from the nodes.
    pub fn of(cluster: &Value, trace: &Trace, pools: &[NodePool], bounds: &[Bounds]) -> Self {
        let object = ClusterObject::from(cluster.clone());
        let spec = object.spec.as_ref();
        let specs = spec.map_or(&[][..], |spec| &spec.groups);
        let workers: Vec<(&GroupSpec, SearchedGroup)> = (specs.iter())
            .filter_map(|spec| Some((spec, group(spec, &object)?)))
            .collect();
        let common = spec.and_then(ClusterSpec::idle_timeout_s);
        let uses_v2 = RayObject::parse(cluster)
            .and_then(|object| object.cluster)
            .is_some_and(|cluster| cluster.uses_v2());
        let summary = Summary::of(trace);
        let cores = pools.iter().filter_map(|pool| pool.allocatable.cpu);
        let largest = cores.map(Quantity::ceil_milli).max();
        let largest = largest.map(|milli| i64::try_from(milli / 1000).unwrap_or(i64::MAX) as f64);
        let longest_idle = summary.span / PARTS;
        let idle_parameter = |group, today: f64| {
            let range = (IDLE_TIMEOUTS[0].min(today), longest_idle.max(today));
            let field = (SearchField::IdleTimeoutSeconds, group);
            Parameter::of(field, today, bounds, range, &IDLE_TIMEOUTS)
        };
        let mut parameters = Vec::new();
        let idle = common.unwrap_or(DEFAULT_IDLE_TIMEOUT_S);
        let inherits = |spec: &GroupSpec| spec.idle_timeout_s().is_none();
        // The timeout of the cluster has no effect on groups with one of their own.
        if workers.iter().any(|(spec, _)| inherits(spec)) {
            parameters.extend(idle_parameter(None, idle));
        }
        // Version 1 of the autoscaler knows only the timeout of the cluster.
        let has_own_idle = uses_v2 && workers.len() > 1;
        for (at, (spec, group)) in workers.iter().enumerate() {
            let of_group = spec.idle_timeout_s();
            if of_group.is_some() || has_own_idle {
                parameters.extend(idle_parameter(Some(at), of_group.unwrap_or(idle)));
            }
            parameters.extend(replicas(at, spec, summary.widest, bounds));
            let pod = cluster.pointer(&group.pointer()).unwrap_or(&Value::Null);
            parameters.extend(sizes((at, group), (spec, pod), largest, bounds));
        }
        Self {
            cluster: cluster.clone(),
            parameters,
            groups: workers.into_iter().map(|(_, group)| group).collect(),
        }
    }

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
        for field in PolicyField::iter() {
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

    /// Today's settings.
    pub fn today(&self) -> Choice {
        (self.parameters.iter()).map(|one| one.today).collect()
    }

    /// The value that a choice has of a field, if that is searched.
    pub fn value(&self, choice: &Choice, field: SearchField, group: Option<usize>) -> Option<f64> {
        let mut both = self.parameters.iter().zip(choice);
        let (parameter, at) = both.find(|(one, _)| one.field == field && one.group == group)?;
        parameter.values.get(*at).copied()
    }

    /// A choice with another value of one parameter, if there is one.
    pub(super) fn with_value(&self, from: &Choice, at: usize, to: Option<usize>) -> Option<Choice> {
        let mut choice = from.clone();
        choice[at] = to.filter(|to| *to < self.parameters[at].values.len())?;
        Some(choice)
    }

    /// Today's settings, or the nearest that are within the bounds.
    pub fn start(&self) -> Choice {
        let nearest = |one: &Parameter| {
            let inside = (0..one.values.len()).filter(|at| one.is_within(*at));
            inside
                .min_by_key(|at| at.abs_diff(one.today))
                .unwrap_or(one.today)
        };
        self.parameters.iter().map(nearest).collect()
    }

    /// Checks whether a choice is within the bounds.
    pub fn is_within(&self, choice: &Choice) -> bool {
        let mut both = self.parameters.iter().zip(choice);
        both.all(|(one, at)| one.is_within(*at))
    }
}

/// The bounds that users give for a field; of several the last.
fn given(bounds: &[Bounds], field: SearchField) -> Option<&Bounds> {
    bounds.iter().rev().find(|one| one.field == field)
}

impl Parameter {
    /// A parameter with those of these values that are within its bounds, which are `range` unless users
    /// give others. Nothing if there is no choice.
    fn of(
        (field, group): (SearchField, Option<usize>),
        today: f64,
        bounds: &[Bounds],
        range: (f64, f64),
        values: &[f64],
    ) -> Option<Self> {
        let given = given(bounds, field);
        let range = given.map_or(Some(range), |given| given.range)?;
        let (low, high) = range;
        let mut values: Vec<f64> = values.to_vec();
        values.extend(given.map(|_| [low, high]).into_iter().flatten());
        values.retain(|value| (low..=high).contains(value));
        values.push(today);
        values.sort_by(f64::total_cmp);
        values.dedup();
        let today = values
            .iter()
            .position(|value| value.total_cmp(&today).is_eq())?;
        (values.len() > 1).then_some(Self {
            field,
            group,
            values,
            today,
            range,
        })
    }

    fn is_within(&self, at: usize) -> bool {
        let (low, high) = self.range;
        (self.values.get(at)).is_some_and(|value| (low..=high).contains(value))
    }
}

/// The least and the most replicas of a group, up to as many as the workload can use at once.
fn replicas(
    at: usize,
    spec: &GroupSpec,
    widest: Widest,
    bounds: &[Bounds],
) -> impl Iterator<Item = Parameter> {
    let hosts = i64::try_from(spec.hosts).unwrap_or(i64::MAX) as f64;
    let needed = |(resource, most): (&str, f64)| {
        let mut amounts = spec.resources.as_ref().ok()?.iter();
        let (_, amount) = amounts.find(|(name, amount)| name == resource && *amount > 0.0)?;
        Some((most / (amount * hosts)).ceil())
    };
    let needed = [("CPU", widest.cpus), ("GPU", widest.gpus)]
        .into_iter()
        .filter_map(needed)
        .fold(1.0, f64::max);
    let high = |field, most: f64| {
        let range = given(bounds, field).and_then(|given| given.range);
        range.map_or(most, |(_, high)| high)
    };
    // KubeRay takes the largest number of 32 bits for an absent maximum.
    let max = spec.max_replicas.unwrap_or(i32::MAX.into()) as f64;
    let min = spec.min_replicas.unwrap_or(0) as f64;
    let most = needed.min(max).max(min);
    let mut values = counts(high(SearchField::MinReplicas, most));
    values.push(0.0);
    let field = (SearchField::MinReplicas, Some(at));
    let least = Parameter::of(field, min, bounds, (0.0, most), &values);
    let values = counts(high(SearchField::MaxReplicas, needed));
    let field = (SearchField::MaxReplicas, Some(at));
    let range = (1.0_f64.min(max), needed.max(max));
    let most = Parameter::of(field, max, bounds, range, &values);
    least.into_iter().chain(most)
}

/// Other sizes of pods, up to the cores of the largest node, and other limits of growth in place where a group has
/// any. `pod` is the group as it is written.
fn sizes(
    (at, group): (usize, &SearchedGroup),
    (spec, pod): (&GroupSpec, &Value),
    largest: Option<f64>,
    bounds: &[Bounds],
) -> impl Iterator<Item = Parameter> {
    let today = spec.base.map(|base| base.cpu);
    let today = today.filter(|cores| *cores > 0.0 && cores.fract() == 0.0);
    let high = |today: f64| largest.unwrap_or(LARGER * today).max(today);
    // Whole numbers of cores around today's.
    let values = |today: f64| -> Vec<f64> {
        let sizes = SIZES.into_iter().map(|times| times * today);
        sizes.filter(|cores| cores.fract() == 0.0).collect()
    };
    // A pod's size is that of the ray container alone, and nothing in it may be indivisible.
    let is_set =
        (pod.get("resources")).is_some_and(|set| set.as_object().is_none_or(|set| !set.is_empty()));
    let has_others = ["limits", "requests"].into_iter().any(|kind| {
        let amounts = pod.pointer(&format!("/template/spec/containers/0/resources/{kind}"));
        let mut amounts = amounts.and_then(Value::as_object).into_iter().flatten();
        amounts.any(|(name, _)| !matches!(name.as_str(), "cpu" | "memory"))
    });
    let is_fixed = is_set || has_others || spec.fixed_by.is_some();
    let size = today.filter(|_| !is_fixed && spec.hosts == 1);
    let size = size.and_then(|today| {
        let field = (SearchField::PodCpus, Some(at));
        Parameter::of(field, today, bounds, (1.0, high(today)), &values(today))
    });
    let limit = group.limits.and_then(|limits| cores(limits.0));
    let limit = limit.zip(today).and_then(|(limit, least)| {
        // A pod grows by a core at least.
        let range = ((least + 1.0).min(limit), high(limit));
        let field = (SearchField::ResizeCpus, Some(at));
        Parameter::of(field, limit, bounds, range, &values(limit))
    });
    size.into_iter().chain(limit)
}

fn group(spec: &GroupSpec, object: &ClusterObject) -> Option<SearchedGroup> {
    let Role::Worker { index } = spec.role else {
        return None;
    };
    let listed = object.ippr.resize_limits(&spec.name);
    let listed = listed.filter(|_| object.ippr.is_well_formed());
    let limits = listed.and_then(|listed| {
        let cpu = listed.amount(Resource::Cpu)?;
        Some((cpu, listed.amount(Resource::Memory)?))
    });
    Some(SearchedGroup {
        index,
        name: Some(spec.name.clone()).filter(|name| !name.is_empty()),
        limits,
    })
}

impl SearchedGroup {
    /// The name by which messages call it.
    pub fn title(&self) -> String {
        let name = self.name.as_deref();
        name.map_or_else(|| format!("worker group {}", self.index), str::to_owned)
    }

    /// Its JSON pointer in a RayCluster.
    pub fn pointer(&self) -> String {
        format!("/spec/workerGroupSpecs/{}", self.index)
    }
}

/// Numbers of replicas up to the highest, closer to each other where there are few.
fn counts(high: f64) -> Vec<f64> {
    let powers = std::iter::successors(Some(1.0), |count: &f64| Some(count * 2.0));
    let powers = powers.take_while(|count| *count <= high);
    let mut counts: Vec<f64> = powers.flat_map(|count| [count, 1.5 * count]).collect();
    counts.push(high);
    counts.retain(|count| count.fract() == 0.0 && *count <= high);
    counts
}

/// The cores, if they are whole.
fn cores(cpu: Quantity) -> Option<f64> {
    let milli = cpu.ceil_milli();
    let is_whole = milli > 0 && cpu == Quantity::from_milli(i64::try_from(milli).ok()?);
    (is_whole && milli % 1000 == 0).then(|| i64::try_from(milli / 1000).unwrap_or(0) as f64)
}
