//! The kept parts of a watched object: those that decisions need, as compact JSON. The pods of ten
//! thousand Kubernetes nodes then take 20 MB instead of a gigabyte.

use std::borrow::Cow;
use std::marker::PhantomData;

use kube::Resource;
use kube::api::ObjectMeta;
use serde::de::DeserializeSeed as _;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

use crate::ray::{ReconcileMode, reconcile};
use crate::reconcile::ownership::record::NOBODY;
use crate::snapshot::KubeNode;
use crate::snapshot::allowed::RAY_CLUSTER;
use crate::snapshot::pod_object::PodObject;

/// A kind of watched objects.
pub trait Watched: std::fmt::Debug + Send + Sync + 'static {
    /// The API group; empty for the core.
    const GROUP: &'static str;
    /// The API version.
    const VERSION: &'static str;
    /// The kind.
    const KIND: &'static str;
    /// The name of the resource.
    const PLURAL: &'static str;
    /// Reads an object, of which more than what is kept need not be read.
    fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Value, D::Error> {
        Value::deserialize(deserializer)
    }
    /// The parts of an object that are kept, as JSON; nothing but the identity is kept where this is empty.
    fn keep(object: &Value) -> Vec<u8>;
}

/// RayClusters.
#[derive(Debug, Clone, Copy)]
pub enum WatchedRayClusters {}
/// Pods of RayClusters.
#[derive(Debug, Clone, Copy)]
pub enum WatchedPods {}
/// Kubernetes nodes.
#[derive(Debug, Clone, Copy)]
pub enum WatchedNodes {}

impl Watched for WatchedRayClusters {
    const GROUP: &'static str = "ray.io";
    const VERSION: &'static str = "v1";
    const KIND: &'static str = "RayCluster";
    const PLURAL: &'static str = "rayclusters";
    fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Value, D::Error> {
        RAY_CLUSTER.deserialize(deserializer)
    }
    fn keep(object: &Value) -> Vec<u8> {
        if !concerns_rayfit(object) {
            return Vec::new();
        }
        let kept = RAY_CLUSTER.keep(object);
        let metadata = &kept["metadata"];
        let words = [&metadata["labels"], &metadata["annotations"]];
        if words.iter().any(|words| size(words) > MOST_WORDS) {
            return Vec::new();
        }
        let text = kept.to_string().into_bytes();
        if text.len() > MOST { Vec::new() } else { text }
    }
}

impl Watched for WatchedPods {
    const GROUP: &'static str = "";
    const VERSION: &'static str = "v1";
    const KIND: &'static str = "Pod";
    const PLURAL: &'static str = "pods";
    fn keep(object: &Value) -> Vec<u8> {
        typed::<PodObject>(object)
    }
}

impl Watched for WatchedNodes {
    const GROUP: &'static str = "";
    const VERSION: &'static str = "v1";
    const KIND: &'static str = "Node";
    const PLURAL: &'static str = "nodes";
    fn keep(object: &Value) -> Vec<u8> {
        typed::<KubeNode>(object)
    }
}

/// The most that is kept of a RayCluster, in bytes: its parsed form takes twenty times as much, and two are worked on
/// at a time. A RayCluster of a hundred worker groups has a tenth of that; ten thousand workers that leave at once have
/// 400 KiB of names in `workersToDelete`, which nobody would shorten if the RayCluster were no longer scaled.
const MOST: usize = 512 << 10;

/// The most that its labels, and its annotations that Rayfit reads, may have. All labels are kept: those by which policies
/// select change with each policy, and then all RayClusters would have to be read again.
const MOST_WORDS: usize = 64 << 10;

/// Whether somebody has asked Rayfit to scale a RayCluster, or has: of all others nothing is decided.
fn concerns_rayfit(object: &Value) -> bool {
    let annotations = &object["metadata"]["annotations"];
    let record = annotations[reconcile::RECORD].as_str();
    mode_of(annotations[reconcile::ANNOTATION].as_str()).is_ours()
        || record.is_some_and(|record| record != NOBODY)
}

/// The mode that an annotation asks for; a text that is none asks for nothing.
pub fn mode_of(annotation: Option<&str>) -> ReconcileMode {
    let mode = annotation.and_then(|mode| mode.parse().ok());
    mode.unwrap_or_default()
}

fn size(words: &Value) -> usize {
    let words = words.as_object().into_iter().flatten();
    words
        .map(|(key, value)| key.len() + value.as_str().map_or(0, str::len))
        .sum()
}

/// The fields of an object that a type has. An object that does not have the form of its kind,
/// which the API server never stores, is kept as an empty one.
fn typed<T: Default + for<'de> Deserialize<'de> + Serialize>(object: &Value) -> Vec<u8> {
    let kept = T::deserialize(object).unwrap_or_default();
    serde_json::to_vec(&kept).unwrap_or_default()
}

/// The metadata that is kept of any object: its identity, and the labels and annotations of Ray and
/// Rayfit.
fn metadata(metadata: &Value) -> Map<String, Value> {
    let keys = ["name", "namespace", "uid", "resourceVersion"];
    let given = |key: &str| Some((key.to_owned(), metadata.get(key)?.clone()));
    let mut kept: Map<String, Value> = keys.into_iter().filter_map(given).collect();
    for key in ["labels", "annotations"] {
        let all = metadata[key].as_object().into_iter().flatten();
        let ours =
            all.filter(|(name, _)| name.starts_with("ray.io/") || name.starts_with("rayfit.dev/"));
        let ours = ours.map(|(name, value)| (name.clone(), value.clone()));
        kept.insert(key.to_owned(), Value::Object(ours.collect()));
    }
    kept
}

/// A watched object, reduced to the parts that are kept.
#[derive(Debug)]
pub struct KeptObject<K> {
    /// Its name, namespace, UID, resource version, labels and annotations.
    pub meta: ObjectMeta,
    /// The kept parts, as JSON; empty if nothing is kept but the identity.
    pub json: Box<[u8]>,
    kind: PhantomData<K>,
}

impl<K> Clone for KeptObject<K> {
    fn clone(&self) -> Self {
        Self {
            meta: self.meta.clone(),
            json: self.json.clone(),
            kind: PhantomData,
        }
    }
}

impl<K: Watched> KeptObject<K> {
    /// Keeps the needed parts of an object.
    pub fn of(object: &Value) -> Self {
        let meta = Value::Object(metadata(&object["metadata"]));
        Self {
            // Metadata from the API server always has this form; anything else is kept without a
            // name.
            meta: serde_json::from_value(meta).unwrap_or_default(),
            json: K::keep(object).into_boxed_slice(),
            kind: PhantomData,
        }
    }
}

impl<'de, K: Watched> Deserialize<'de> for KeptObject<K> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        K::read(deserializer).map(|object| Self::of(&object))
    }
}

impl<K: Watched> Resource for KeptObject<K> {
    type DynamicType = ();
    type Scope = kube::core::DynamicResourceScope;

    fn kind((): &()) -> Cow<'_, str> {
        K::KIND.into()
    }
    fn group((): &()) -> Cow<'_, str> {
        K::GROUP.into()
    }
    fn version((): &()) -> Cow<'_, str> {
        K::VERSION.into()
    }
    fn plural((): &()) -> Cow<'_, str> {
        K::PLURAL.into()
    }
    fn meta(&self) -> &ObjectMeta {
        &self.meta
    }
    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.meta
    }
}
