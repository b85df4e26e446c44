//! The patch while it is being built: what may be filled in, and with which value.

use std::collections::HashSet;

use json_patch::jsonptr::PointerBuf;
use json_patch::{AddOperation, PatchOperation};
use serde_json::{Map, Value};

use super::applied::{AppliedValue, DefaultId, DefaultPatch, Origin};
use crate::json::Json;
use crate::path::FieldPath;
use crate::policy::Settings;
use crate::ray::{Cluster, Container, Group, Kind, RayObject};

/// The patch while it is being drawn up.
#[derive(Debug)]
pub struct DefaultsDraft<'a> {
    /// The object as it came.
    pub object: &'a RayObject<'a>,
    /// The stored object, if this is an update.
    pub old: Option<&'a RayObject<'a>>,
    /// The settings of defaults.
    pub settings: &'a Settings,
    /// The patch so far.
    pub patch: DefaultPatch,
    /// Parents that the patch itself adds, so that each is added once.
    made: HashSet<String>,
}

/// The value for a place where the object has nothing, or `None` to leave it so: an object that was there
/// before Rayfit stays as it is until its owner changes it. `had_reason` says whether the default already
/// applied to the stored object, which has `stored` in that place.
pub fn settle(had_reason: bool, stored: Option<Json<'_>>, fresh: Value) -> Option<(Value, Origin)> {
    match (had_reason, stored) {
        (false, _) => Some((fresh, Origin::Fresh)),
        (true, Some(value)) if !value.is_null() => Some((value.to_value(), Origin::CarriedOver)),
        (true, _) => None,
    }
}

/// The cluster of an object, if it has autoscaling on.
pub fn autoscaled<'a>(object: &'a RayObject<'a>) -> Option<&'a Cluster<'a>> {
    let cluster = object.cluster.as_ref();
    cluster.filter(|cluster| cluster.autoscaling())
}

impl<'a> DefaultsDraft<'a> {
    /// An empty patch.
    pub fn new(
        object: &'a RayObject<'a>,
        old: Option<&'a RayObject<'a>>,
        settings: &'a Settings,
    ) -> Self {
        Self {
            object,
            old,
            settings,
            patch: DefaultPatch::default(),
            made: HashSet::new(),
        }
    }

    /// The ray containers of the groups that `ray.io/ippr` lists and that it can reach.
    pub fn growing(&self) -> impl Iterator<Item = (&'a Group<'a>, Container<'a>)> + use<'a> {
        let object = self.object;
        let clusters = object.cluster.iter();
        clusters
            .flat_map(Cluster::groups)
            .filter(move |group| lists(object, group))
            .filter_map(|group| Some((group, group.ray_container?)))
    }

    /// The ray container of the stored group of the same name, if that was listed too; otherwise
    /// the update itself makes the default necessary.
    pub fn growing_before(&self, group: &Group<'_>) -> Option<Container<'a>> {
        let old = self.old?;
        old.cluster
            .as_ref()?
            .group(group.name?)
            .filter(|group| lists(old, group))?
            .ray_container
    }

    /// Puts entries at the end of a list of a group's ray container, which is made if it is
    /// absent. Something else in its place is left alone. Each entry has the key by which the list tells it from
    /// others, its value and the origin of that; `item` makes an item of the list of key and value.
    pub fn extend(
        &mut self,
        id: DefaultId,
        group: &Group<'_>,
        list: &'static str,
        entries: Vec<(&'static str, Value, Origin)>,
        item: impl Fn(&str, &Value) -> Value,
    ) {
        let container = group.ray_container;
        let present = container.and_then(|container| container.spec.get(list));
        if entries.is_empty() || present.is_some_and(|present| present.as_array().is_none()) {
            return;
        }
        let path = group.ray_container_path().key(list);
        let items = entries.iter().map(|(key, value, _)| item(key, value));
        // A JSON patch cannot append to a list that is absent, so the first default makes the list
        // and those after it append.
        if present.is_some() || !self.made.insert(path.pointer()) {
            let end = format!("{}/-", path.pointer());
            items.for_each(|item| self.push(&end, item));
        } else {
            self.push(&path.pointer(), items.collect());
        }
        let applied = entries
            .into_iter()
            .map(|(key, value, origin)| AppliedValue {
                id,
                path: path.clone().key(key),
                value,
                origin,
            });
        self.patch.applied.extend(applied);
    }

    /// Fills in `autoscalerOptions.<key>` where it is absent and `reason` holds.
    pub fn option(
        &mut self,
        id: DefaultId,
        key: &'static str,
        reason: impl Fn(&RayObject<'_>, &Settings) -> bool,
        fresh: impl FnOnce() -> Value,
    ) {
        let Some(cluster) = &self.object.cluster else {
            return;
        };
        let options = cluster.spec.get("autoscalerOptions");
        let open = options.is_none_or(|o| o.as_object().is_some_and(|o| !o.contains_key(key)));
        if !open || !reason(self.object, self.settings) {
            return;
        }
        let had_reason = self.old.is_some_and(|old| reason(old, self.settings));
        let stored = self.old.and_then(|old| old.cluster.as_ref());
        let stored = stored.and_then(|cluster| cluster.autoscaler_option(key));
        let Some((value, origin)) = settle(had_reason, stored, fresh()) else {
            return;
        };
        if options.is_none() {
            self.make_parent(&cluster.path().key("autoscalerOptions"));
        }
        self.add(id, cluster.option_path(key), value, origin);
    }

    /// Adds an empty object for others to be added in, once.
    pub fn make_parent(&mut self, path: &FieldPath) {
        let pointer = path.pointer();
        if self.made.insert(pointer.clone()) {
            self.push(&pointer, Value::Object(Map::new()));
        }
    }

    /// Adds a value at a place whose parent is there.
    pub fn add(&mut self, id: DefaultId, path: FieldPath, value: Value, origin: Origin) {
        self.push(&path.pointer(), value.clone());
        self.patch.applied.push(AppliedValue {
            id,
            path,
            value,
            origin,
        });
    }

    /// Adds `value` at a JSON pointer, without a note.
    fn push(&mut self, pointer: &str, value: Value) {
        // Every pointer here comes from `FieldPath::pointer`, which escapes; one that did not
        // parse would be left out rather than break the request.
        if let Ok(path) = PointerBuf::parse(pointer) {
            self.patch
                .operations
                .0
                .push(PatchOperation::Add(AddOperation { path, value }));
        }
    }
}

/// Finds the group in the annotation, if that reaches its pods.
fn lists(object: &RayObject<'_>, group: &Group<'_>) -> bool {
    // KubeRay hands the annotations of a RayCronJob neither to its jobs nor to their clusters.
    object.kind != Kind::RayCronJob && group.name.is_some_and(|name| object.ippr.lists(name))
}
