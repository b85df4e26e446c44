//! The kept parts of a watched object: those that decisions need, as compact JSON. The pods of ten
//! thousand Kubernetes nodes then take 20 MB instead of a gigabyte.

use kube::api::ObjectMeta;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use rayfit_core::ray::{ReconcileMode, reconcile};
use rayfit_core::reconcile::ownership::record::NOBODY;
use rayfit_core::snapshot::KubeNode;
use rayfit_core::snapshot::allowed::RAY_CLUSTER;
use rayfit_core::snapshot::pod_object::PodObject;

/// A kind of watched objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum StoredKind {
    /// RayClusters.
    RayClusters,
    /// Pods of RayClusters.
    Pods,
    /// Kubernetes nodes.
    Nodes,
}

/// The most that is kept of a RayCluster, in bytes.
// Its parsed form takes twenty times as much, and two are worked on at a time. A RayCluster of a hundred worker groups
// has a tenth of that; ten thousand workers that leave at once have 400 KiB of names in `workersToDelete`, which nobody
// would shorten if the RayCluster were no longer scaled.
const MOST: usize = 512 << 10;

/// The most that its labels, and its annotations that Rayfit reads, may have.
// All labels are kept: those by which policies select change with each policy, and then all RayClusters would have to
// be read again.
const MOST_WORDS: usize = 64 << 10;

/// The text that is kept of a RayCluster; none of one that Rayfit is not to scale, or that is too large.
fn kept_cluster(object: &Value) -> Option<Vec<u8>> {
    let annotations = &object["metadata"]["annotations"];
    let record = annotations[reconcile::RECORD].as_str();
    // Of those that nobody has asked Rayfit to scale, and that it does not scale, nothing is decided.
    let is_asked = mode_of(annotations[reconcile::ANNOTATION].as_str()).is_ours();
    if !is_asked && record.is_none_or(|record| record == NOBODY) {
        return None;
    }
    let fields = RAY_CLUSTER.keep(object);
    let size = |words: &Value| -> usize {
        let words = words.as_object().into_iter().flatten();
        words
            .map(|(key, value)| key.len() + value.as_str().map_or(0, str::len))
            .sum()
    };
    let metadata = &fields["metadata"];
    if size(&metadata["labels"]) > MOST_WORDS || size(&metadata["annotations"]) > MOST_WORDS {
        return None;
    }
    Some(fields.to_string().into_bytes()).filter(|text| text.len() <= MOST)
}

/// The mode that an annotation asks for; a text that is none asks for nothing.
pub fn mode_of(annotation: Option<&str>) -> ReconcileMode {
    let mode = annotation.and_then(|mode| mode.parse().ok());
    mode.unwrap_or_default()
}

/// The fields of an object that a type has. An object that does not have the form of its kind,
/// which the API server never stores, is kept as an empty one.
fn typed<T: Default + for<'de> Deserialize<'de> + Serialize>(object: &Value) -> Vec<u8> {
    let fields = T::deserialize(object).unwrap_or_default();
    serde_json::to_vec(&fields).unwrap_or_default()
}

/// A watched object, reduced to the parts that are kept.
#[derive(Debug, Clone)]
pub struct KeptObject {
    /// Its name, namespace, UID, resource version, labels and annotations.
    pub meta: ObjectMeta,
    /// The kept parts, as JSON; empty if nothing is kept but the identity.
    pub json: Box<[u8]>,
}

impl KeptObject {
    /// Keeps the needed parts of an object.
    pub fn of(kind: StoredKind, object: &Value) -> Self {
        let json = match kind {
            StoredKind::RayClusters => kept_cluster(object).unwrap_or_default(),
            StoredKind::Pods => typed::<PodObject>(object),
            StoredKind::Nodes => typed::<KubeNode>(object),
        };
        // Of the metadata, the identity is kept, and the labels and annotations of Ray and Rayfit.
        let metadata = &object["metadata"];
        let keys = ["name", "namespace", "uid", "resourceVersion"];
        let given = |key: &str| Some((key.to_owned(), metadata.get(key)?.clone()));
        let mut fields: Map<String, Value> = keys.into_iter().filter_map(given).collect();
        for key in ["labels", "annotations"] {
            let all = metadata[key].as_object().into_iter().flatten();
            let ours = all
                .filter(|(name, _)| name.starts_with("ray.io/") || name.starts_with("rayfit.dev/"));
            let ours = ours.map(|(name, value)| (name.clone(), value.clone()));
            fields.insert(key.to_owned(), Value::Object(ours.collect()));
        }
        Self {
            // Metadata from the API server always has this form; anything else is kept without a
            // name.
            meta: serde_json::from_value(Value::Object(fields)).unwrap_or_default(),
            json: json.into_boxed_slice(),
        }
    }
}
