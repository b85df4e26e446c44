//! Fields of a RayCluster to set, and the values to try.

use serde_json::Value;

use super::bounds::{Bounds, SearchField};
use crate::quantity::Quantity;
use crate::ray::{RayObject, Resource, Role};
use crate::simulate::settings::NodePool;
use crate::simulate::trace::{Summary, Trace, Widest};
use crate::snapshot::cluster_object::{ClusterObject, DEFAULT_IDLE_TIMEOUT_S, GroupSpec};

/// Idle timeouts to try, in seconds.
const IDLE_TIMEOUTS: [f64; 11] = [
    10.0, 20.0, 30.0, 45.0, 60.0, 90.0, 120.0, 180.0, 300.0, 600.0, 900.0,
];

/// The longest idle timeout to try is the workload's time divided by this: a trace cannot tell the
/// use of pods that are kept for much of that time.
const PARTS: f64 = 8.0;

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
    /// The cores and the memory of a pod, where both are known.
    pub size: Option<(Quantity, Quantity)>,
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
        let common = spec.and_then(|spec| spec.idle_timeout.seconds());
        let uses_v2 = RayObject::parse(cluster)
            .and_then(|object| object.cluster)
            .is_some_and(|cluster| cluster.uses_v2());
        let summary = Summary::of(trace);
        let draft = Draft {
            bounds,
            widest: summary.widest,
            longest_idle: summary.span / PARTS,
            largest: largest(pools),
            idle: common.unwrap_or(DEFAULT_IDLE_TIMEOUT_S),
            has_own_idle: uses_v2 && workers.len() > 1,
        };
        let mut parameters = Vec::new();
        let inherits = |spec: &GroupSpec| spec.idle_timeout.seconds().is_none();
        if workers.iter().any(|(spec, _)| inherits(spec)) {
            parameters.extend(draft.idle(None, draft.idle));
        }
        for (at, (spec, group)) in workers.iter().enumerate() {
            let fields = [
                draft.own_idle(at, spec),
                draft.min_replicas(at, spec),
                draft.max_replicas(at, spec),
                draft.pod_cpus(at, spec, cluster),
                draft.resize_cpus(at, group),
            ];
            parameters.extend(fields.into_iter().flatten());
        }
        Self {
            cluster: cluster.clone(),
            groups: workers.into_iter().map(|(_, group)| group).collect(),
            parameters,
        }
    }

    /// Today's settings.
    pub fn today(&self) -> Choice {
        (self.parameters.iter()).map(|one| one.today).collect()
    }

    /// The longest idle timeout that can be chosen or holds today, in seconds.
    pub fn longest_idle_s(&self) -> f64 {
        let all = self.parameters.iter();
        let idle = all.filter(|one| one.field == SearchField::IdleTimeoutSeconds);
        let values = idle.filter_map(|one| one.values.last());
        values.copied().fold(DEFAULT_IDLE_TIMEOUT_S, f64::max)
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

    /// Whether no group has more replicas than it may have, or pods that may not grow where others may.
    pub fn is_sensible(&self, choice: &Choice) -> bool {
        use SearchField::{MaxReplicas, MinReplicas, PodCpus, ResizeCpus};
        let value = |field, group: usize| {
            let mut both = self.parameters.iter().zip(choice);
            let is =
                |(one, _): &(&Parameter, &usize)| one.field == field && one.group == Some(group);
            let (parameter, at) = both.find(is)?;
            parameter.values.get(*at)
        };
        let is_in_order = |low: Option<&f64>, high: Option<&f64>, or_equal: bool| {
            low.zip(high)
                .is_none_or(|(low, high)| low < high || (or_equal && low <= high))
        };
        (0..self.groups.len()).all(|group| {
            is_in_order(value(MinReplicas, group), value(MaxReplicas, group), true)
                && is_in_order(value(PodCpus, group), value(ResizeCpus, group), false)
        })
    }

    /// Whether a choice is within the bounds.
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
    pub(super) fn of(
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

/// The facts by which parameters are put together.
struct Draft<'a> {
    bounds: &'a [Bounds],
    widest: Widest,
    longest_idle: f64,
    largest: Option<f64>,
    idle: f64,
    has_own_idle: bool,
}

impl Draft<'_> {
    fn parameter(
        &self,
        (field, group): (SearchField, Option<usize>),
        today: f64,
        range: (f64, f64),
        values: &[f64],
    ) -> Option<Parameter> {
        Parameter::of((field, group), today, self.bounds, range, values)
    }

    fn idle(&self, group: Option<usize>, today: f64) -> Option<Parameter> {
        let range = (IDLE_TIMEOUTS[0].min(today), self.longest_idle.max(today));
        let field = (SearchField::IdleTimeoutSeconds, group);
        self.parameter(field, today, range, &IDLE_TIMEOUTS)
    }

    fn own_idle(&self, at: usize, spec: &GroupSpec) -> Option<Parameter> {
        let own = spec.idle_timeout.seconds();
        (own.is_some() || self.has_own_idle)
            .then(|| self.idle(Some(at), own.unwrap_or(self.idle)))?
    }

    /// The number of replicas of a group that the workload can use at once.
    fn needed(&self, spec: &GroupSpec) -> f64 {
        let hosts = integer(spec.hosts.unwrap_or(1).max(1));
        let of = |resource: &str| {
            let resources = spec.resources.as_ref().ok()?;
            let mut amounts = resources.iter();
            let (_, amount) = amounts.find(|(name, _)| *name == resource)?;
            Some(integer(amount) * hosts).filter(|amount| *amount > 0.0)
        };
        let by = |asked: f64, of: Option<f64>| of.map_or(0.0, |of| (asked / of).ceil());
        let (cpus, gpus) = (self.widest.cpus, self.widest.gpus);
        by(cpus, of("CPU")).max(by(gpus, of("GPU"))).max(1.0)
    }

    fn min_replicas(&self, at: usize, spec: &GroupSpec) -> Option<Parameter> {
        let today = integer(spec.min_replicas.unwrap_or(0));
        let high = self.needed(spec).min(max_replicas(spec)).max(today);
        let field = (SearchField::MinReplicas, Some(at));
        let high_given = self.high(SearchField::MinReplicas).unwrap_or(high);
        let mut values = counts(high_given);
        values.push(0.0);
        self.parameter(field, today, (0.0, high), &values)
    }

    fn max_replicas(&self, at: usize, spec: &GroupSpec) -> Option<Parameter> {
        let (today, needed) = (max_replicas(spec), self.needed(spec));
        let field = (SearchField::MaxReplicas, Some(at));
        let high = self.high(SearchField::MaxReplicas).unwrap_or(needed);
        let values = counts(high);
        self.parameter(
            field,
            today,
            (1.0_f64.min(today), needed.max(today)),
            &values,
        )
    }

    /// Pods of other sizes, where the size is that of the ray container alone and nothing in it is
    /// indivisible.
    fn pod_cpus(&self, at: usize, spec: &GroupSpec, cluster: &Value) -> Option<Parameter> {
        let Role::Worker { index } = spec.role else {
            return None;
        };
        let group = cluster.pointer(&format!("/spec/workerGroupSpecs/{index}"))?;
        let sets_resources = group.get("resources").is_some_and(|set| {
            let set = set.as_object();
            set.is_none_or(|set| !set.is_empty())
        });
        let is_other = |name: &String| !matches!(name.as_str(), "cpu" | "memory");
        let has_others = ["limits", "requests"].into_iter().any(|kind| {
            let amounts = group.pointer(&format!("/template/spec/containers/0/resources/{kind}"));
            let amounts = amounts.and_then(Value::as_object);
            amounts.is_some_and(|amounts| amounts.keys().any(is_other))
        });
        let is_fixed = sets_resources || has_others || spec.fixed_by.is_some();
        if is_fixed || spec.hosts.unwrap_or(1) > 1 {
            return None;
        }
        let today = cores(spec.size?.0)?;
        let high = self.largest.unwrap_or(LARGER * today).max(today);
        let field = (SearchField::PodCpus, Some(at));
        self.parameter(field, today, (1.0, high), &sizes(today))
    }

    /// Other limits of growth in place, where a group has any.
    fn resize_cpus(&self, at: usize, group: &SearchedGroup) -> Option<Parameter> {
        let (today, least) = (cores(group.limits?.0)?, cores(group.size?.0)?);
        let high = self.largest.unwrap_or(LARGER * today).max(today);
        let field = (SearchField::ResizeCpus, Some(at));
        let range = ((least + 1.0).min(today), high);
        self.parameter(field, today, range, &sizes(today))
    }

    /// The highest value that users give for a field.
    fn high(&self, field: SearchField) -> Option<f64> {
        self.given(field)?.range.map(|(_, high)| high)
    }

    fn given(&self, field: SearchField) -> Option<&Bounds> {
        given(self.bounds, field)
    }
}

fn group(spec: &GroupSpec, object: &ClusterObject) -> Option<SearchedGroup> {
    let Role::Worker { index } = spec.role else {
        return None;
    };
    let listed = spec
        .name
        .as_deref()
        .and_then(|name| object.ippr.resize_limits(name));
    let listed = listed.filter(|_| object.ippr.is_well_formed());
    let limits = listed.and_then(|listed| {
        let cpu = listed.amount(Resource::Cpu)?;
        Some((cpu, listed.amount(Resource::Memory)?))
    });
    Some(SearchedGroup {
        index,
        name: spec.name.clone(),
        size: spec.size,
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

fn max_replicas(spec: &GroupSpec) -> f64 {
    // KubeRay takes the largest number of 32 bits for an absent field.
    spec.max_replicas.map_or(f64::from(i32::MAX), integer)
}

/// Numbers of replicas up to the highest, closer to each other where there are few.
pub(super) fn counts(high: f64) -> Vec<f64> {
    let powers = std::iter::successors(Some(1.0), |count: &f64| Some(count * 2.0));
    let powers = powers.take_while(|count| *count <= high);
    let mut counts: Vec<f64> = powers.flat_map(|count| [count, 1.5 * count]).collect();
    counts.push(high);
    counts.retain(|count| count.fract() == 0.0 && *count <= high);
    counts
}

/// Whole numbers of cores around today's.
fn sizes(today: f64) -> Vec<f64> {
    let sizes = SIZES.into_iter().map(|times| times * today);
    sizes.filter(|cores| cores.fract() == 0.0).collect()
}

/// The cores, if they are whole.
fn cores(cpu: Quantity) -> Option<f64> {
    let milli = cpu.ceil_milli();
    let is_whole = milli > 0 && cpu == Quantity::from_milli(i64::try_from(milli).ok()?);
    (is_whole && milli % 1000 == 0).then(|| integer(i64::try_from(milli / 1000).unwrap_or(0)))
}

/// The cores of the largest node.
fn largest(pools: &[NodePool]) -> Option<f64> {
    let cores = pools.iter().filter_map(|pool| pool.allocatable.cpu);
    let milli = cores.map(Quantity::ceil_milli).max()?;
    Some(integer(i64::try_from(milli / 1000).unwrap_or(i64::MAX)))
}

#[expect(clippy::cast_precision_loss, reason = "numbers of pods and cores")]
fn integer(number: i64) -> f64 {
    number as f64
}
