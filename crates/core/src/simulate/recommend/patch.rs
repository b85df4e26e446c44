//! The changes of a choice: a JSON patch of the RayCluster, and the same in words.
//!
//! It is a JSON patch and no merge patch, since a merge patch replaces lists whole: it would take back
//! what the autoscaler has written to `workerGroupSpecs` in the meantime, such as `replicas`. Each
//! group is tested by its name first, so that the patch fails where the list has changed.

use json_patch::jsonptr::PointerBuf;
use json_patch::{AddOperation, Patch, PatchOperation, TestOperation};
use serde::Serialize;
use serde_json::{Map, Value, json};
use strum::IntoEnumIterator as _;

use super::bounds::SearchField;
use super::space::{Choice, SearchedGroup, Space};
use crate::path::FieldPath;
use crate::quantity::{Quantity, json_number, nearest_whole};
use crate::ray::ippr::ANNOTATION;
use crate::simulate::vary::PolicyField;

/// Limits and requests of the ray container, each of which keeps its own share of the size.
const SIZES: [&str; 4] = [
    "requests.cpu",
    "requests.memory",
    "limits.cpu",
    "limits.memory",
];

/// The field of the idle timeout, of a cluster and of a group.
const IDLE_TIMEOUT: &str = "idleTimeoutSeconds";

/// One field that changes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, derive_more::Display)]
#[serde(rename_all = "camelCase")]
#[display(
    "{}{field} {} -> {to}",
    group.as_ref().map(|group| format!("{group}: ")).unwrap_or_default(),
    from.as_deref().unwrap_or("none")
)]
pub struct Change {
    /// The worker group; `None` for the whole cluster.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// The field, as it is written in the RayCluster, or the RayPolicy.
    pub field: &'static str,
    /// Today's value; `None` if it is absent.
    pub from: Option<String>,
    /// The new value.
    pub to: String,
}

/// The changes of a choice.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ChoicePatch {
    /// The patch of the RayCluster.
    pub patch: Patch,
    /// Fields to change in the RayPolicy that holds for the cluster.
    pub policy: Vec<(PolicyField, u32)>,
    /// The changes in words.
    pub changes: Vec<Change>,
}

impl ChoicePatch {
    /// The patch of a choice.
    pub fn of(space: &Space, choice: &Choice) -> Self {
        let today = space.today();
        let chosen = |field: SearchField, group: Option<usize>| {
            Some(ChosenValue {
                today: space.value(&today, field, group)?,
                value: space.value(choice, field, group)?,
            })
        };
        let (mut patch, cluster) = (Self::default(), &space.cluster);
        let idle = chosen(SearchField::IdleTimeoutSeconds, None);
        if let Some(idle) = idle.filter(ChosenValue::differs) {
            let options = "/spec/autoscalerOptions";
            if !(cluster.pointer(options)).is_some_and(Value::is_object) {
                // An `add` of JSON Patch fails where the parent is absent; it does not create one.
                patch.add(options, json!({}));
            }
            let pointer = format!("{options}/{IDLE_TIMEOUT}");
            patch.set(
                cluster,
                (None, IDLE_TIMEOUT),
                &pointer,
                json_number(idle.value).into(),
            );
        }
        // One annotation holds the limits of all groups as one text, so it is written once, after
        // all groups were looked at.
        let mut ippr = None;
        for (at, group) in space.groups.iter().enumerate() {
            let chosen = |field| chosen(field, Some(at));
            patch.group(cluster, group, chosen);
            let limit = chosen(SearchField::ResizeCpus).filter(ChosenValue::differs);
            if let (Some(limit), Some(limits)) = (limit, group.limits) {
                patch.limits(cluster, (group, limit, limits), &mut ippr);
            }
        }
        if let Some(ippr) = ippr {
            let pointer = FieldPath::annotation(ANNOTATION).pointer();
            patch.add(&pointer, Value::String(ippr.to_string()));
        }
        for field in PolicyField::iter() {
            let chosen = chosen(SearchField::Policy(field), None);
            let Some(chosen) = chosen.filter(ChosenValue::differs) else {
                continue;
            };
            let value = u32::try_from(nearest_whole(chosen.value)).unwrap_or(u32::MAX);
            patch.policy.push((field, value));
            patch.changes.push(Change {
                group: None,
                field: field.into(),
                from: Some(json_number(chosen.today).to_string()),
                to: value.to_string(),
            });
        }
        patch
    }

    /// Sets the fields of a group, but for its limits of growth.
    fn group(
        &mut self,
        cluster: &Value,
        group: &SearchedGroup,
        chosen: impl Fn(SearchField) -> Option<ChosenValue>,
    ) {
        let first = self.patch.0.len();
        let idle = chosen(SearchField::IdleTimeoutSeconds);
        if let Some(idle) = idle.filter(ChosenValue::differs) {
            let pointer = format!("{}/{IDLE_TIMEOUT}", group.pointer());
            let field = (Some(group), IDLE_TIMEOUT);
            self.set(cluster, field, &pointer, json_number(idle.value).into());
        }
        let size = chosen(SearchField::PodCpus);
        for field in [SearchField::MinReplicas, SearchField::MaxReplicas] {
            let (chosen, field) = (chosen(field), <&str>::from(field));
            // Replicas are chosen in pods of today's size: of pods half as large there are twice as many.
            let pointer = format!("{}/{field}", group.pointer());
            let today = cluster.pointer(&pointer).and_then(Value::as_i64);
            let today = today.map(|today| today as f64);
            let is_same = chosen.is_none_or(|chosen| !chosen.differs());
            let times = size.map_or(1.0, |size| size.today / size.value);
            // An absent value is 0, or without limit, whatever the size.
            let value = chosen.map(|chosen| chosen.value).or(today);
            let Some(value) = value.filter(|_| !(is_same && today.is_none())) else {
                continue;
            };
            let value = (value * times).ceil().min(f64::from(i32::MAX));
            if today.is_none_or(|today| today.total_cmp(&value).is_ne()) {
                self.set(
                    cluster,
                    (Some(group), field),
                    &pointer,
                    json_number(value).into(),
                );
            }
        }
        if let Some(size) = size.filter(ChosenValue::differs) {
            let resources = format!("{}/template/spec/containers/0/resources", group.pointer());
            for field in SIZES {
                let pointer = format!("{resources}/{}", field.replace('.', "/"));
                let amount = cluster.pointer(&pointer);
                let amount = amount.and_then(|amount| Quantity::from_json(amount).ok());
                if let Some(amount) = amount.and_then(|amount| size.scale(amount)) {
                    let amount = json!(shown(field, amount));
                    self.set(cluster, (Some(group), field), &pointer, amount);
                }
            }
        }
        // A test of the group's name comes before what was added for it: where somebody has changed the list
        // meanwhile, the patch fails and changes no other group.
        let path = PointerBuf::parse(format!("{}/groupName", group.pointer()));
        if let (Ok(path), Some(name)) = (path, &group.name)
            && self.patch.0.len() > first
        {
            let value = json!(name);
            let test = PatchOperation::Test(TestOperation { path, value });
            self.patch.0.insert(first, test);
        }
    }

    /// Sets the limits of a group in the annotation with the limits of growth, which is in `ippr` once it has
    /// changed.
    fn limits(
        &mut self,
        cluster: &Value,
        (group, chosen, (cpu, memory)): (&SearchedGroup, ChosenValue, (Quantity, Quantity)),
        ippr: &mut Option<Value>,
    ) {
        let (Some(new_cpu), Some(new_memory)) = (chosen.scale(cpu), chosen.scale(memory)) else {
            return;
        };
        let written = &cluster["metadata"]["annotations"][ANNOTATION];
        let ippr = ippr.get_or_insert_with(|| {
            let text = written.as_str().unwrap_or_default();
            serde_json::from_str(text).unwrap_or_default()
        });
        let name = group.name.as_deref().unwrap_or_default();
        let groups = ippr.get_mut("groups");
        let entry = groups.and_then(|groups| groups.get_mut(name)?.as_object_mut());
        if let Some(entry) = entry {
            for (field, today, new) in [
                ("max-cpu", cpu, new_cpu),
                ("max-memory", memory, new_memory),
            ] {
                entry.insert(field.to_owned(), json!(shown(field, new)));
                self.changes.push(Change {
                    group: Some(group.title()),
                    field,
                    from: Some(shown(field, today)),
                    to: shown(field, new),
                });
            }
        }
    }

    /// Sets a field of the cluster or of one group, and notes the change.
    fn set(
        &mut self,
        cluster: &Value,
        (group, field): (Option<&SearchedGroup>, &'static str),
        pointer: &str,
        value: Value,
    ) {
        let text = |value: &Value| match value {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        self.changes.push(Change {
            group: group.map(SearchedGroup::title),
            field,
            from: cluster.pointer(pointer).map(text),
            to: text(&value),
        });
        self.add(pointer, value);
    }

    /// Adds a value, or replaces the one that is there.
    fn add(&mut self, pointer: &str, value: Value) {
        if let Ok(path) = PointerBuf::parse(pointer) {
            let add = PatchOperation::Add(AddOperation { path, value });
            self.patch.0.push(add);
        }
    }

    /// The patch of the RayPolicy: a merge patch, since no list is in it. `None` where nothing changes.
    pub fn policy_patch(&self) -> Option<Value> {
        let mut reconcile = Map::new();
        for (field, value) in &self.policy {
            let (part, key) = match field {
                PolicyField::KeepSmallSeconds => ("inPlace", "keepSmallSeconds"),
                PolicyField::ShrinkAfterSeconds => ("inPlace", "shrinkAfterSeconds"),
                PolicyField::HeadroomCpus => ("headroom", "cpus"),
            };
            let part = reconcile.entry(part).or_insert_with(|| json!({}));
            part[key] = json!(value);
        }
        (!reconcile.is_empty()).then(|| json!({"spec": {"reconcile": reconcile}}))
    }

    /// The RayCluster as it would be. A patch that was made from another cluster changes nothing.
    pub fn apply(&self, cluster: &Value) -> Value {
        let mut patched = cluster.clone();
        let result = json_patch::patch(&mut patched, &self.patch);
        result.map_or_else(|_| cluster.clone(), |()| patched)
    }
}

/// The value of a parameter today and as chosen.
#[derive(Debug, Clone, Copy)]
struct ChosenValue {
    today: f64,
    value: f64,
}

impl ChosenValue {
    fn differs(&self) -> bool {
        self.today.total_cmp(&self.value).is_ne()
    }

    /// An amount in the ratio of the two values, rounded up to thousandths or bytes where it is written.
    fn scale(self, amount: Quantity) -> Option<Quantity> {
        let number = |value: f64| json_number(value).as_i64().map(i128::from);
        let (new, old) = (number(self.value)?, number(self.today)?);
        let nanos = amount.nanos().checked_mul(new)?.checked_div(old)?;
        Some(Quantity::from_nanos(nanos))
    }
}

/// The amount of a field of CPU or memory as it is written.
fn shown(field: &str, amount: Quantity) -> String {
    if field.ends_with("cpu") {
        amount.display_cpu()
    } else {
        amount.display_memory()
    }
}
