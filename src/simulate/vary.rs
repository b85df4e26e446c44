//! What a study varies: one field, with several values.

use std::fmt;
use std::str::FromStr;

use serde_json::{Value, json};

use crate::simulate::settings::WorldSettings;
use crate::text::nearest;

/// The most values of one field.
const MOST_VALUES: usize = 50;

/// A field that can be varied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Field {
    /// `autoscalerOptions.idleTimeoutSeconds`, and of each group that has its own.
    IdleTimeoutSeconds,
    /// `minReplicas` of each group.
    MinReplicas,
    /// `maxReplicas` of each group.
    MaxReplicas,
    /// How long a pod takes from its node to its Ray node, in seconds.
    PodStartSeconds,
    /// How long a Kubernetes node takes to be ready, in seconds.
    NodeStartSeconds,
}

/// A field, and the values that it is to have one after the other.
#[derive(Debug, Clone, PartialEq)]
pub struct Variation {
    /// The field.
    pub field: Field,
    /// The values.
    pub values: Vec<f64>,
}

/// A variation that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum VariationError {
    /// It is not `FIELD=VALUE,...`.
    #[error("{0:?} is not FIELD=VALUE,VALUE: write for example idleTimeoutSeconds=10,60,300")]
    Form(String),
    /// There is no such field.
    #[error("there is no field {field:?} to vary{}; these can be: {}", suggestion(.field), names())]
    Field {
        /// The name that was written.
        field: String,
    },
    /// A value is not a number that the field can have.
    #[error("{field} cannot be {value:?}: write {wanted}")]
    Value {
        /// The field.
        field: Field,
        /// What was written.
        value: String,
        /// What can be written.
        wanted: &'static str,
    },
    /// There are too many values.
    #[error("{0} values are too many: write up to {MOST_VALUES}")]
    Many(usize),
}

fn names() -> String {
    let names: Vec<String> = Field::ALL.iter().map(Field::to_string).collect();
    names.join(", ")
}

fn suggestion(name: &str) -> String {
    let names: Vec<String> = Field::ALL.iter().map(Field::to_string).collect();
    let nearest = nearest(name, names.iter().map(String::as_str));
    nearest
        .map(|name| format!(" (did you mean {name}?)"))
        .unwrap_or_default()
}

impl Field {
    /// All fields.
    pub const ALL: [Self; 5] = [
        Self::IdleTimeoutSeconds,
        Self::MinReplicas,
        Self::MaxReplicas,
        Self::PodStartSeconds,
        Self::NodeStartSeconds,
    ];

    fn is_whole(self) -> bool {
        matches!(self, Self::MinReplicas | Self::MaxReplicas)
    }

    /// Sets the field.
    pub fn set(self, value: f64, cluster: &mut Value, world: &mut WorldSettings) {
        #[expect(clippy::cast_possible_truncation, reason = "checked when it was read")]
        let whole = value as i64;
        match self {
            Self::IdleTimeoutSeconds => {
                cluster["spec"]["autoscalerOptions"]["idleTimeoutSeconds"] = json!(value);
                each_group(cluster, |group| {
                    if group.contains_key("idleTimeoutSeconds") {
                        group.insert("idleTimeoutSeconds".to_owned(), json!(value));
                    }
                });
            }
            Self::MinReplicas => each_group(cluster, |group| {
                group.insert("minReplicas".to_owned(), json!(whole));
                let replicas = group.get("replicas").and_then(Value::as_i64);
                group.insert(
                    "replicas".to_owned(),
                    json!(replicas.unwrap_or(0).max(whole)),
                );
            }),
            Self::MaxReplicas => each_group(cluster, |group| {
                group.insert("maxReplicas".to_owned(), json!(whole));
            }),
            Self::PodStartSeconds => world.set_pod_start(value),
            Self::NodeStartSeconds => {
                for pool in &mut world.pools {
                    pool.start_s = value;
                }
            }
        }
    }
}

fn each_group(cluster: &mut Value, mut change: impl FnMut(&mut serde_json::Map<String, Value>)) {
    let groups = cluster
        .pointer_mut("/spec/workerGroupSpecs")
        .and_then(Value::as_array_mut);
    for group in groups
        .into_iter()
        .flatten()
        .filter_map(Value::as_object_mut)
    {
        change(group);
    }
}

impl fmt::Display for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::IdleTimeoutSeconds => "idleTimeoutSeconds",
            Self::MinReplicas => "minReplicas",
            Self::MaxReplicas => "maxReplicas",
            Self::PodStartSeconds => "podStartSeconds",
            Self::NodeStartSeconds => "nodeStartSeconds",
        })
    }
}

impl FromStr for Variation {
    type Err = VariationError;

    fn from_str(text: &str) -> Result<Self, VariationError> {
        let (name, values) = text
            .split_once('=')
            .ok_or_else(|| VariationError::Form(text.to_owned()))?;
        let mut fields = Field::ALL.into_iter();
        let field = fields.find(|field| field.to_string() == name);
        let field = field.ok_or_else(|| VariationError::Field {
            field: name.to_owned(),
        })?;
        let values: Vec<&str> = values.split(',').map(str::trim).collect();
        if values.len() > MOST_VALUES {
            return Err(VariationError::Many(values.len()));
        }
        let number = |text: &&str| {
            let (most, wanted) = if field.is_whole() {
                (100_000.0, "a whole number from 0 to 100000")
            } else {
                (86_400.0, "seconds from 0 to 86400")
            };
            let value: Option<f64> = text.parse().ok();
            let value = value.filter(|value| (0.0..=most).contains(value));
            let value = value.filter(|value| !field.is_whole() || value.fract() == 0.0);
            value.ok_or_else(|| VariationError::Value {
                field,
                value: (*text).to_owned(),
                wanted,
            })
        };
        Ok(Self {
            field,
            values: values.iter().map(number).collect::<Result<_, _>>()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variation_is_a_field_and_values() {
        let read: Variation = "idleTimeoutSeconds=10, 60".parse().unwrap();
        assert_eq!(read.values, [10.0, 60.0]);
        for (wrong, says) in [
            ("idleTimeoutSeconds", "is not FIELD=VALUE"),
            ("idleTimeoutSecond=1", "did you mean idleTimeoutSeconds?"),
            ("minReplicas=1.5", "a whole number"),
            ("podStartSeconds=NaN", "seconds from 0"),
            ("podStartSeconds=", "seconds from 0"),
        ] {
            let error = wrong.parse::<Variation>().unwrap_err().to_string();
            assert!(error.contains(says), "{error}");
        }
    }

    #[test]
    fn fields_are_set_where_they_are() {
        let mut cluster = json!({"spec": {"workerGroupSpecs": [
            {"groupName": "a", "replicas": 0, "idleTimeoutSeconds": 5}, {"groupName": "b", "replicas": 3}
        ]}});
        let mut world = WorldSettings::default();
        Field::IdleTimeoutSeconds.set(30.0, &mut cluster, &mut world);
        Field::MinReplicas.set(2.0, &mut cluster, &mut world);
        Field::PodStartSeconds.set(60.0, &mut cluster, &mut world);
        assert_eq!(
            cluster,
            json!({"spec": {
                "autoscalerOptions": {"idleTimeoutSeconds": 30.0},
                "workerGroupSpecs": [
                    {"groupName": "a", "replicas": 2, "minReplicas": 2, "idleTimeoutSeconds": 30.0},
                    {"groupName": "b", "replicas": 3, "minReplicas": 2}
                ]
            }})
        );
        assert!((world.pod_start_s + world.ray_start_s - 60.0).abs() < 1e-9);
    }
}
