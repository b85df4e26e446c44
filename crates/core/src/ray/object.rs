//! A RayCluster, RayJob, RayService or RayCronJob, and the RayClusterSpec in it.

use super::{Cluster, Ippr, Kind, ReconcileMode, ippr, kueue, reconcile};
use crate::json::{Fields, Json};
use crate::path::FieldPath;

/// True for an annotation that rules and defaults look at, so that a change of the
/// annotation is a change of what they judge. They see no other annotations, so this list cannot
/// fall behind them.
pub fn is_judged(annotation: &str) -> bool {
    matches!(
        annotation,
        ippr::ANNOTATION
            | kueue::ELASTIC
            | OVERWRITE_COMMAND
            | FT_ENABLED
            | EXTERNAL_STORAGE
            | INITIALIZING_TIMEOUT
    ) || annotation.starts_with(reconcile::PREFIX)
}

/// The annotation with which KubeRay leaves the commands of the ray containers as they are.
pub const OVERWRITE_COMMAND: &str = "ray.io/overwrite-container-cmd";

/// The annotation that switches GCS fault tolerance on without `gcsFaultToleranceOptions`.
pub const FT_ENABLED: &str = "ray.io/ft-enabled";

/// The annotation with the namespace of a cluster in Redis.
pub const EXTERNAL_STORAGE: &str = "ray.io/external-storage-namespace";

/// The annotation with the time that a RayService may take to start.
pub const INITIALIZING_TIMEOUT: &str = "ray.io/initializing-timeout";

/// A name as KubeRay cuts it for what it makes of an object: the last 50 characters, with `r` in place of a first
/// character that is a digit or a mark. (KubeRay, `CheckName`.)
pub fn kuberay_name(name: &str) -> String {
    const LONGEST: usize = 50;
    let cut = name.len().saturating_sub(LONGEST);
    let end = name.get(cut..).unwrap_or(name);
    match end.strip_prefix(|first: char| !first.is_ascii_alphabetic()) {
        Some(rest) => format!("r{rest}"),
        None => end.to_owned(),
    }
}

/// One Ray object, parsed once for all rules and defaults.
#[derive(Debug)]
pub struct RayObject<'a> {
    /// The kind of the object, one of four.
    pub kind: Kind,
    /// The whole object.
    pub root: Fields<'a>,
    /// The cluster that the object describes; `None` for a RayJob with `clusterSelector`, or
    /// without a spec.
    pub cluster: Option<Cluster<'a>>,
    /// Its `ray.io/ippr` annotation.
    pub ippr: Ippr,
}

impl<'a> RayObject<'a> {
    /// Reads `value`. Returns `None` if it is not a Ray object; an object of any version of
    /// `ray.io` is one.
    pub fn parse(value: impl Into<Json<'a>>) -> Option<Self> {
        let root = value.into().as_object()?;
        let (group, _version) = root.text("apiVersion")?.split_once('/')?;
        if group != "ray.io" {
            return None;
        }
        Some(Self::of_kind(Kind::from_name(root.text("kind")?)?, root))
    }

    /// Reads `root` as the given kind, as the API server names it beside the object.
    pub fn of_kind(kind: Kind, root: impl Into<Fields<'a>>) -> Self {
        let root = root.into();
        let spec = root.object_in(kind.cluster_path());
        let annotations = root.object_in(&["metadata", "annotations"]);
        let annotation = annotations.and_then(|all| all.text(ippr::ANNOTATION));
        Self {
            kind,
            root,
            cluster: spec.map(|spec| Cluster::parse(kind, spec)),
            ippr: Ippr::parse(annotation.unwrap_or_default()),
        }
    }

    /// `metadata`, if it is there.
    pub fn metadata(&self) -> Option<Fields<'a>> {
        self.root.object("metadata")
    }

    /// `metadata.name`, if it is there and not empty.
    pub fn name(&self) -> Option<&'a str> {
        self.metadata()?.filled("name")
    }

    /// `metadata.uid`, which the API server gives each object, if it is there and not empty.
    pub fn uid(&self) -> Option<&'a str> {
        self.metadata()?.filled("uid")
    }

    /// `metadata.generateName`, if it is there and not empty.
    pub fn generate_name(&self) -> Option<&'a str> {
        self.metadata()?.filled("generateName")
    }

    /// The name, or `generateName` while the API server has not made a name; empty if it has neither.
    pub fn written_name(&self) -> &'a str {
        let name = self.name().or_else(|| self.generate_name());
        name.unwrap_or_default()
    }

    /// `metadata.namespace`, if it is there.
    pub fn namespace(&self) -> Option<&'a str> {
        self.metadata()?.text("namespace")
    }

    /// The annotations that rules judge ([`is_judged`]), in their order.
    pub fn annotations(&self) -> impl Iterator<Item = (&'a str, Json<'a>)> {
        self.all_annotations()
            .unwrap_or_default()
            .iter()
            .filter(|(name, _)| is_judged(name))
    }

    /// The value of one annotation, of whatever type. `None` for an annotation that rules do not
    /// judge.
    pub fn annotation_value(&self, name: &str) -> Option<Json<'a>> {
        self.all_annotations()?
            .get(name)
            .filter(|_| is_judged(name))
    }

    /// The text of one annotation. `None` for an annotation that rules do not judge.
    pub fn annotation(&self, name: &str) -> Option<&'a str> {
        self.annotation_value(name)?.as_str()
    }

    /// True if KubeRay leaves the commands of the ray containers as they are.
    pub fn overwrites_commands(&self) -> bool {
        self.annotation(OVERWRITE_COMMAND)
            .is_some_and(|value| value.eq_ignore_ascii_case("true"))
    }

    /// The annotations of whatever names.
    pub fn all_annotations(&self) -> Option<Fields<'a>> {
        self.metadata()?.object("annotations")
    }

    /// The value of one label.
    pub fn label(&self, name: &str) -> Option<&'a str> {
        (self.metadata()?.object("labels")?).text(name)
    }

    /// `spec` of the object itself, which for a RayJob is not the spec of its cluster.
    pub fn spec(&self) -> Option<Fields<'a>> {
        self.root.object("spec")
    }

    /// The spec of the RayJob that the object is, or that it makes, and its path.
    pub fn job(&self) -> Option<(Fields<'a>, FieldPath)> {
        let path: &[&'static str] = match self.kind {
            Kind::RayJob => &["spec"],
            Kind::RayCronJob => &["spec", "jobTemplate"],
            Kind::RayCluster | Kind::RayService => return None,
        };
        Some((self.root.object_in(path)?, FieldPath::of(path)))
    }

    /// The autoscaler that scales the cluster. It is `ray` without an annotation or with an unknown
    /// value, and on a RayCronJob, whose annotations do not reach the cluster.
    pub fn reconcile_mode(&self) -> ReconcileMode {
        if self.kind == Kind::RayCronJob {
            return ReconcileMode::Ray;
        }
        self.annotation(reconcile::ANNOTATION)
            .and_then(|value| value.parse().ok())
            .unwrap_or_default()
    }

    /// True while the object is being deleted. KubeRay acts on it all the same, as long as a finalizer
    /// holds it.
    pub fn is_deleting(&self) -> bool {
        self.metadata()
            .and_then(|metadata| metadata.get("deletionTimestamp"))
            // Clients in Go write `null` for a time that is not set.
            .is_some_and(|timestamp| !timestamp.is_null())
    }

    /// True if an object that is being deleted (`old`) loses its last finalizer with this update,
    /// and so is gone: whatever else the update says is never stored.
    pub fn ends(&self, old: &RayObject<'_>) -> bool {
        let has_finalizers = |metadata: Fields<'_>| !metadata.list("finalizers").is_empty();
        old.is_deleting() && !self.metadata().is_some_and(has_finalizers)
    }

    /// The path of the RayClusterSpec.
    pub fn cluster_path(&self) -> FieldPath {
        FieldPath::of(self.kind.cluster_path())
    }

    /// The kind and the name of the controlling owner, if it is a Ray object: KubeRay made this object from it.
    pub fn ray_owner(&self) -> Option<(Kind, &'a str)> {
        self.metadata()?
            .list("ownerReferences")
            .objects()
            .filter(|owner| {
                // Of any version: objects of `v1alpha1` are still stored somewhere.
                let version = owner.text("apiVersion").unwrap_or_default();
                version.starts_with("ray.io/") && owner.is_true("controller")
            })
            .find_map(|owner| {
                let kind = Kind::from_name(owner.text("kind")?)?;
                Some((kind, owner.text("name").unwrap_or_default()))
            })
    }
}
