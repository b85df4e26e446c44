//! The changes of a choice: a JSON patch of the RayCluster, and the same in words.
//!
//! It is a JSON patch and no merge patch, since a merge patch replaces lists whole: it would take back
//! what the autoscaler has written to `workerGroupSpecs` in the meantime, such as `replicas`. Each
//! group is tested by its name first, so that the patch fails where the list has changed.

use std::fmt;

use json_patch::jsonptr::PointerBuf;
use json_patch::{AddOperation, Patch, PatchOperation, TestOperation};
use serde::Serialize;
use serde_json::{Map, Number, Value, json};

use super::bounds::SearchField;
use super::space::{Choice, SearchedGroup, Space};
use crate::path::FieldPath;
use crate::quantity::Quantity;
use crate::ray::ippr::ANNOTATION;
use crate::reconcile::RoundSettings;
use crate::simulate::vary::PolicyField;

/// One field that changes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
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

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(group) = &self.group {
            write!(f, "{group}: ")?;
        }
        let from = self.from.as_deref().unwrap_or("none");
        write!(f, "{} {from} -> {}", self.field, self.to)
    }
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
        let mut draft = PatchDraft {
            space,
            out: Self::default(),
            ippr: None,
        };
        draft.idle(
            None,
            draft.chosen(choice, SearchField::IdleTimeoutSeconds, None),
        );
        for (at, group) in space.groups.iter().enumerate() {
            let chosen = |field| draft.chosen(choice, field, Some(at));
            let [idle, min, max, size, limit] = SearchField::OF_GROUPS.map(chosen);
            let before = draft.out.patch.0.len();
            draft.idle(Some(group), idle);
            draft.replicas(group, "minReplicas", min, size);
            draft.replicas(group, "maxReplicas", max, size);
            draft.size(group, size);
            draft.test(group, before);
            draft.limits(group, limit);
        }
        // One annotation holds the limits of all groups as one text, so it is written once, after
        // all groups were looked at.
        if let Some(ippr) = draft.ippr.take() {
            let pointer = ippr_pointer();
            draft.add(&pointer, Value::String(ippr.to_string()));
        }
        for field in PolicyField::ALL {
            draft.policy(
                field,
                draft.chosen(choice, SearchField::Policy(field), None),
            );
        }
        draft.out
    }

    /// Sets what changes in the RayPolicy.
    pub fn apply_policy(&self, settings: &mut RoundSettings) {
        for (field, value) in &self.policy {
            field.set(f64::from(*value), settings);
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

    /// The RayCluster as it would be.
    pub fn apply(&self, cluster: &Value) -> Value {
        let mut patched = cluster.clone();
        match json_patch::patch(&mut patched, &self.patch) {
            Ok(()) => patched,
            // A patch that was made from another cluster changes nothing.
            Err(_) => cluster.clone(),
        }
    }
}

/// The JSON pointer of `ray.io/ippr` in a RayCluster.
fn ippr_pointer() -> String {
    FieldPath::annotation(ANNOTATION).pointer()
}

/// The value of a parameter today and as chosen, and whether these differ.
#[derive(Debug, Clone, Copy)]
struct Chosen {
    today: f64,
    value: f64,
}

impl Chosen {
    fn differs(self) -> bool {
        self.today.total_cmp(&self.value).is_ne()
    }
}

struct PatchDraft<'a> {
    space: &'a Space,
    out: ChoicePatch,
    /// The annotation with the limits of growth, once it has changed.
    ippr: Option<Value>,
}

impl PatchDraft<'_> {
    fn chosen(&self, choice: &Choice, field: SearchField, group: Option<usize>) -> Option<Chosen> {
        let parameters = self.space.parameters.iter().zip(choice);
        let mut both = parameters.filter(|(one, _)| one.field == field && one.group == group);
        let (parameter, at) = both.next()?;
        Some(Chosen {
            today: *parameter.values.get(parameter.today)?,
            value: *parameter.values.get(*at)?,
        })
    }

    fn idle(&mut self, group: Option<&SearchedGroup>, chosen: Option<Chosen>) {
        let Some(chosen) = chosen.filter(|chosen| chosen.differs()) else {
            return;
        };
        let field = "idleTimeoutSeconds";
        let options = "/spec/autoscalerOptions";
        let place = group.map_or_else(|| options.to_owned(), SearchedGroup::pointer);
        if group.is_none() && !self.at(options).is_some_and(Value::is_object) {
            // An `add` of JSON Patch fails where the parent is absent; it does not create one.
            self.add(options, json!({}));
        }
        self.set(group, &place, field, whole(chosen.value));
    }

    /// Replicas are chosen in pods of today's size: of pods half as large there are twice as many.
    fn replicas(
        &mut self,
        group: &SearchedGroup,
        field: &'static str,
        chosen: Option<Chosen>,
        size: Option<Chosen>,
    ) {
        let at = format!("{}/{field}", group.pointer());
        let today = self.at(&at).and_then(Value::as_i64);
        #[expect(clippy::cast_precision_loss, reason = "a number of pods")]
        let written = today.map(|today| today as f64);
        let value = chosen.map(|chosen| chosen.value).or(written);
        let is_same = chosen.is_none_or(|chosen| !chosen.differs());
        let times = size.map_or(1.0, |size| size.today / size.value);
        // An absent value is 0, or without limit, whatever the size.
        let Some(value) = value.filter(|_| !(is_same && written.is_none())) else {
            return;
        };
        let value = (value * times).ceil().min(f64::from(i32::MAX));
        if written.is_none_or(|written| written.total_cmp(&value).is_ne()) {
            self.set(Some(group), &group.pointer(), field, whole(value));
        }
    }

    /// Limits and requests of the ray container, each with its own share of the size.
    fn size(&mut self, group: &SearchedGroup, chosen: Option<Chosen>) {
        let Some(chosen) = chosen.filter(|chosen| chosen.differs()) else {
            return;
        };
        for kind in ["requests", "limits"] {
            let pointer = format!(
                "{}/template/spec/containers/0/resources/{kind}",
                group.pointer()
            );
            for resource in ["cpu", "memory"] {
                let amount = self.at(&format!("{pointer}/{resource}"));
                let amount = amount.and_then(|amount| Quantity::from_json(amount).ok());
                let Some(amount) = amount.and_then(|amount| scaled(amount, chosen)) else {
                    continue;
                };
                let field = match (kind, resource) {
                    ("requests", "cpu") => "requests.cpu",
                    ("requests", _) => "requests.memory",
                    (_, "cpu") => "limits.cpu",
                    _ => "limits.memory",
                };
                let text = shown(resource, amount);
                self.note(Some(group), field, &format!("{pointer}/{resource}"), &text);
                self.add(&format!("{pointer}/{resource}"), json!(text));
            }
        }
    }

    fn limits(&mut self, group: &SearchedGroup, chosen: Option<Chosen>) {
        let (Some(chosen), Some((cpu, memory))) =
            (chosen.filter(|chosen| chosen.differs()), group.limits)
        else {
            return;
        };
        let (Some(new_cpu), Some(new_memory)) = (scaled(cpu, chosen), scaled(memory, chosen))
        else {
            return;
        };
        let pointer = ippr_pointer();
        let written = self.at(&pointer).and_then(Value::as_str);
        let written = written.and_then(|text| serde_json::from_str(text).ok());
        let mut ippr = self.ippr.take().or(written).unwrap_or_default();
        let name = group.name.as_deref().unwrap_or_default();
        let entry = ippr
            .get_mut("groups")
            .and_then(|groups| groups.get_mut(name));
        if let Some(entry) = entry.and_then(Value::as_object_mut) {
            for (field, resource, before, after) in [
                ("max-cpu", "cpu", cpu, new_cpu),
                ("max-memory", "memory", memory, new_memory),
            ] {
                entry.insert(field.to_owned(), json!(shown(resource, after)));
                self.out.changes.push(Change {
                    group: Some(group.title()),
                    field,
                    from: Some(shown(resource, before)),
                    to: shown(resource, after),
                });
            }
        }
        self.ippr = Some(ippr);
    }

    fn policy(&mut self, field: PolicyField, chosen: Option<Chosen>) {
        let Some(chosen) = chosen.filter(|chosen| chosen.differs()) else {
            return;
        };
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a float is cast to the nearest number that there is"
        )]
        let value = chosen.value as u32;
        self.out.policy.push((field, value));
        self.out.changes.push(Change {
            group: None,
            field: field.name(),
            from: Some(whole(chosen.today).to_string()),
            to: value.to_string(),
        });
    }

    fn at(&self, pointer: &str) -> Option<&Value> {
        self.space.cluster.pointer(pointer)
    }

    fn set(
        &mut self,
        group: Option<&SearchedGroup>,
        parent: &str,
        field: &'static str,
        value: Value,
    ) {
        let pointer = format!("{parent}/{field}");
        self.note(group, field, &pointer, &value.to_string());
        self.add(&pointer, value);
    }

    fn note(
        &mut self,
        group: Option<&SearchedGroup>,
        field: &'static str,
        pointer: &str,
        to: &str,
    ) {
        let from = self.at(pointer).map(|value| match value {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        });
        self.out.changes.push(Change {
            group: group.map(SearchedGroup::title),
            field,
            from,
            to: to.to_owned(),
        });
    }

    /// Adds a value, or replaces the one that is there.
    fn add(&mut self, pointer: &str, value: Value) {
        if let Ok(path) = PointerBuf::parse(pointer) {
            let add = PatchOperation::Add(AddOperation { path, value });
            self.out.patch.0.push(add);
        }
    }

    /// Puts a test of the group's name before what was added since.
    fn test(&mut self, group: &SearchedGroup, since: usize) {
        let path = PointerBuf::parse(format!("{}/groupName", group.pointer()));
        let (Ok(path), Some(name)) = (path, &group.name) else {
            return;
        };
        if self.out.patch.0.len() > since {
            let value = json!(name);
            let test = PatchOperation::Test(TestOperation { path, value });
            self.out.patch.0.insert(since, test);
        }
    }
}

/// An amount in the ratio of two values, rounded up to thousandths or bytes where it is written.
fn scaled(amount: Quantity, chosen: Chosen) -> Option<Quantity> {
    let number = |value: f64| whole(value).as_i64().map(i128::from);
    let (new, old) = (number(chosen.value)?, number(chosen.today)?);
    let nanos = amount.nanos().checked_mul(new)?.checked_div(old)?;
    Some(Quantity::from_nanos(nanos))
}

fn shown(resource: &str, amount: Quantity) -> String {
    if resource == "cpu" {
        amount.display_cpu()
    } else {
        amount.display_memory()
    }
}

/// A number as JSON, without a fraction where it is whole.
fn whole(value: f64) -> Value {
    #[expect(clippy::cast_possible_truncation, reason = "a whole number")]
    let integer = value as i64;
    if value.fract() == 0.0 {
        return Value::Number(Number::from(integer));
    }
    json!(value)
}

/// The patch as `kubectl patch --type json --patch-file` reads it.
pub fn written(patch: &Patch) -> Value {
    let operations = patch.0.iter().map(|operation| {
        let value = serde_json::to_value(operation).unwrap_or_default();
        let Value::Object(fields) = value else {
            return value;
        };
        let order = |key: &str| fields.get(key).map(|value| (key.to_owned(), value.clone()));
        Value::Object(
            ["op", "path", "value"]
                .into_iter()
                .filter_map(order)
                .collect::<Map<String, Value>>(),
        )
    });
    Value::Array(operations.collect())
}
