//! Variations of a study: fields, each with several values.
//!
//! It takes `FIELD=VALUE,...` or `GROUP/FIELD=VALUE,...` of users, and says what is wrong with it before
//! anything is simulated. Then it sets a value where the field is. Invariant: a variation that passed
//! [`Variation::check`] changes something.

mod field;

use std::str::FromStr;

pub use field::{PolicyField, VariedField};

use serde_json::Value;

use crate::plan::Strategy;
use crate::quantity::Quantity;
use crate::ray::Role;
use crate::ray::resource::from_cores;
use crate::reconcile::RoundSettings;
use crate::simulate::settings::WorldSettings;
use crate::snapshot::cluster_object::ClusterObject;
use crate::snapshot::group_spec::GroupSpec;
use crate::text::{nearest, shown_text};

/// The most values of one field.
const MOST_VALUES: usize = 50;

/// A field, and the values that it is to have one after the other.
#[derive(Debug, Clone, PartialEq, derive_more::Display)]
#[display("{}{field}", group.as_ref().map(|group| format!("{group}/")).unwrap_or_default())]
pub struct Variation {
    /// The field.
    pub field: VariedField,
    /// The worker group of which it is set; `None` for all that have it.
    pub group: Option<String>,
    /// The values.
    pub values: Vec<f64>,
}

/// The fault of varying a field of RayPolicies with a strategy on which it has no effect.
pub fn only_rayfit(field: VariedField) -> String {
    format!(
        "{field} is a field of RayPolicies that has no effect with strategy ray: add --strategy rayfit"
    )
}

impl Variation {
    /// Sets one of the values where the field is.
    pub fn set(
        &self,
        value: f64,
        cluster: &mut Value,
        world: &mut WorldSettings,
        reconciler: &mut RoundSettings,
    ) {
        let group = self.group.as_deref();
        self.field.set(group, value, cluster, world, reconciler);
    }

    /// Checks that it changes something of a simulation of this cluster.
    ///
    /// # Errors
    ///
    /// It does not, or makes no sense for this cluster.
    pub fn check(
        &self,
        cluster: &Value,
        world: &WorldSettings,
        strategies: &[Strategy],
    ) -> Result<(), String> {
        let field = self.field;
        match field {
            VariedField::Policy(_) if !strategies.contains(&Strategy::Rayfit) => {
                return Err(only_rayfit(field));
            }
            VariedField::NodeStartSeconds | VariedField::ImagePullSeconds
                if world.pools.is_empty() =>
            {
                return Err(format!(
                    "{field} changes nothing without node pools: name their file with --nodes pools.yaml"
                ));
            }
            _ => {}
        }
        let object = ClusterObject::from(cluster.clone());
        let groups = object.spec.iter().flat_map(|spec| &spec.groups);
        let groups = groups.filter(|group| matches!(group.role, Role::Worker { .. }));
        let workers: Vec<&GroupSpec> = groups.filter(|group| !group.name.is_empty()).collect();
        if let Some(group) = &self.group
            && !workers.iter().any(|worker| worker.name == *group)
        {
            let names = workers.iter().map(|worker| shown_text(&worker.name));
            let names = names.collect::<Vec<String>>().join(", ");
            let group = shown_text(group);
            return Err(format!(
                "there is no worker group {group} to vary; there are: {names}"
            ));
        }
        match field {
            VariedField::MaxCpu | VariedField::MaxMemory => self.check_limits(&object, &workers),
            _ => Ok(()),
        }
    }

    /// Checks that resize limits are those of groups that have some, and are not below the size with which their pods
    /// start.
    fn check_limits(&self, object: &ClusterObject, workers: &[&GroupSpec]) -> Result<(), String> {
        let field = self.field;
        let limited = workers.iter().filter(|worker| {
            let is_varied = (self.group.as_ref()).is_none_or(|group| *group == worker.name);
            is_varied && object.ippr.is_well_formed() && object.ippr.lists(&worker.name)
        });
        let mut limited = limited.peekable();
        if limited.peek().is_none() {
            let group = self.group.as_deref();
            let group = group.map_or_else(|| "no worker group".to_owned(), shown_text);
            return Err(format!(
                "{field} changes nothing: {group} is not in the annotation ray.io/ippr; add it there (rayfit explain \
                 RF101 shows the form), or vary maxReplicas"
            ));
        }
        for group in limited {
            let Some(size) = group.base else {
                continue;
            };
            let (amount, size) = if field == VariedField::MaxCpu {
                (size.cpu, from_cores(size.cpu).display_cpu())
            } else {
                let gib = size.memory as f64 / f64::from(1_u32 << 30);
                (gib, Quantity::from_units(size.memory).display_memory())
            };
            if let Some(value) = self.values.iter().find(|value| **value < amount) {
                let group = shown_text(&group.name);
                return Err(format!(
                    "{field} of {group} cannot be {value}: its pods start with {size}; write no less"
                ));
            }
        }
        Ok(())
    }
}

impl FromStr for Variation {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, values) = text.split_once('=').ok_or_else(|| {
            format!(
                "{text:?} is not FIELD=VALUE,VALUE: write for example idleTimeoutSeconds=10,60,300"
            )
        })?;
        let (group, name) = match name.split_once('/') {
            Some((group, name)) => (Some(group.to_owned()), name),
            None => (None, name),
        };
        let mut fields = VariedField::ALL.into_iter();
        let field = fields.find(|field| <&str>::from(field) == name);
        let field = field.ok_or_else(|| {
            let names = VariedField::ALL.map(<&str>::from);
            let near = nearest(name, names).map(|near| format!(" (did you mean {near}?)"));
            let (near, names) = (near.unwrap_or_default(), names.join(", "));
            format!("there is no field {name:?} to vary{near}; these can be: {names}")
        })?;
        let is_of_groups = matches!(
            field,
            VariedField::MinReplicas
                | VariedField::MaxReplicas
                | VariedField::MaxCpu
                | VariedField::MaxMemory
        );
        if group.is_some() && !is_of_groups {
            return Err(format!(
                "{field} is not set by group: write {field}=VALUE,VALUE"
            ));
        }
        let values: Vec<&str> = values.split(',').map(str::trim).collect();
        if values.len() > MOST_VALUES {
            let count = values.len();
            return Err(format!(
                "{count} values are too many: write up to {MOST_VALUES}"
            ));
        }
        let (range, is_whole, form) = field.extent();
        let number = |text: &&str| {
            let bare = text.strip_suffix("Gi");
            let bare = bare.filter(|_| field == VariedField::MaxMemory);
            let value: Option<f64> = bare.unwrap_or(text).parse().ok();
            let value = value.filter(|value| range.contains(value));
            let value = value.filter(|value| !is_whole || value.fract() == 0.0);
            value.ok_or_else(|| format!("{field} cannot be {text:?}: write {form}"))
        };
        Ok(Self {
            field,
            group,
            values: values.iter().map(number).collect::<Result<_, _>>()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::quantity::Quantity;
    use crate::ray::Resource;

    fn read(text: &str) -> Variation {
        text.parse().unwrap()
    }

    /// Two groups, of which one may grow.
    fn cluster() -> Value {
        let group = |name: &str| {
            let size = json!({"cpu": "2", "memory": "8Gi"});
            json!({"groupName": name, "replicas": 0, "rayStartParams": {}, "template": {"spec": {"containers": [
                {"name": "ray", "resources": {"limits": size, "requests": size}}]}}})
        };
        let limits =
            json!({"groups": {"a": {"max-cpu": "4", "max-memory": "16Gi", "resize-timeout": 60}}});
        json!({
            "apiVersion": "ray.io/v1", "kind": "RayCluster",
            "metadata": {"annotations": {"ray.io/ippr": limits.to_string()}},
            "spec": {"workerGroupSpecs": [group("a"), group("b")]},
        })
    }

    #[test]
    fn a_variation_is_a_field_and_values() {
        assert_eq!(read("idleTimeoutSeconds=10, 60").values, [10.0, 60.0]);
        let limits = read("a/max-memory=8Gi,16");
        assert_eq!(limits.values, [8.0, 16.0]);
        assert_eq!(limits.to_string(), "a/max-memory");
        for (wrong, says) in [
            ("idleTimeoutSeconds", "is not FIELD=VALUE"),
            ("idleTimeoutSecond=1", "did you mean idleTimeoutSeconds?"),
            ("maxCpu=1", "did you mean max-cpu?"),
            ("minReplicas=1.5", "a whole number"),
            ("podStartSeconds=NaN", "seconds from 0"),
            ("podStartSeconds=", "seconds from 0"),
            ("max-cpu=8Gi", "write cores from"),
            ("headroomCpus=0.5", "a whole number"),
            ("a/keepSmallSeconds=1", "write keepSmallSeconds=VALUE"),
        ] {
            let error = wrong.parse::<Variation>().unwrap_err();
            assert!(error.contains(says), "{error}");
        }
    }

    #[test]
    fn what_would_change_nothing_is_told_with_what_to_do() {
        let (world, both) = (WorldSettings::default(), [Strategy::Rayfit, Strategy::Ray]);
        let check =
            |text: &str, strategies: &[Strategy]| read(text).check(&cluster(), &world, strategies);
        for fine in [
            "max-cpu=2,8",
            "a/max-memory=8",
            "b/maxReplicas=3",
            "headroomCpus=4",
        ] {
            assert_eq!(check(fine, &both), Ok(()), "{fine}");
        }
        for (wrong, says) in [
            ("c/maxReplicas=1", "there are: \"a\", \"b\""),
            ("b/max-cpu=8", "rayfit explain RF101"),
            ("max-cpu=8,1", "its pods start with 2; write no less"),
            ("nodeStartSeconds=9", "--nodes pools.yaml"),
            ("imagePullSeconds=9", "--nodes pools.yaml"),
        ] {
            let error = check(wrong, &both).unwrap_err();
            assert!(error.contains(says), "{error}");
        }
        let error = check("keepSmallSeconds=9", &[Strategy::Ray]).unwrap_err();
        assert!(error.contains("--strategy rayfit"), "{error}");
    }

    #[test]
    fn fields_are_set_where_they_are() {
        let mut cluster = json!({"spec": {"workerGroupSpecs": [
            {"groupName": "a", "replicas": 0, "idleTimeoutSeconds": 5}, {"groupName": "b", "replicas": 3}
        ]}});
        let (mut world, mut reconciler) = (WorldSettings::default(), RoundSettings::default());
        for text in [
            "idleTimeoutSeconds=30",
            "minReplicas=2",
            "b/maxReplicas=7",
            "podStartSeconds=60",
            "keepSmallSeconds=40",
            "shrinkAfterSeconds=0",
            "headroomCpus=6",
        ] {
            let one = read(text);
            one.set(one.values[0], &mut cluster, &mut world, &mut reconciler);
        }
        assert_eq!(
            cluster,
            json!({"spec": {
                "autoscalerOptions": {"idleTimeoutSeconds": 30.0},
                "workerGroupSpecs": [
                    {"groupName": "a", "replicas": 2, "minReplicas": 2, "idleTimeoutSeconds": 30.0},
                    {"groupName": "b", "replicas": 3, "minReplicas": 2, "maxReplicas": 7}
                ]
            }})
        );
        assert!((world.pod_start_s + world.ray_start_s - 60.0).abs() < 1e-9);
        let plan = reconciler.plan;
        assert_eq!((plan.keep_small_s, plan.shrink_after_s), (Some(40.0), None));
        assert_eq!(plan.headroom.cpus, 6);
    }

    #[test]
    fn resize_limits_are_set_in_the_annotation() {
        let (mut cluster, mut world) = (cluster(), WorldSettings::default());
        let mut reconciler = RoundSettings::default();
        for text in ["max-cpu=8", "a/max-memory=32Gi"] {
            let one = read(text);
            one.set(one.values[0], &mut cluster, &mut world, &mut reconciler);
        }
        let object = ClusterObject::from(cluster);
        let limits = object.ippr.resize_limits("a").unwrap();
        assert_eq!(limits.amount(Resource::Cpu), Some(Quantity::from_units(8)));
        assert_eq!(
            limits.amount(Resource::Memory),
            Some(Quantity::from_units(32 << 30))
        );
        assert!(object.ippr.is_well_formed() && !object.ippr.lists("b"));
    }
}
