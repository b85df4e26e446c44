//! A RayClusterSpec: its groups and its autoscaler settings.

use super::{Group, Kind, RayVersion, Role};
use crate::hash::HashMap;
use crate::json::{Fields, Json};
use crate::path::FieldPath;

/// The environment variable by which a head container itself chooses the version of the autoscaler.
pub const V2_ENV: &str = "RAY_enable_autoscaler_v2";

/// The port of the GCS where `rayStartParams.port` of the head names no other.
pub const GCS_PORT: u16 = 6379;

/// The port of the GCS, by `rayStartParams.port` of the head.
pub fn gcs_port(start_param: Option<Json<'_>>) -> u16 {
    let port = start_param.and_then(Json::as_str);
    let port = port.and_then(|port| port.trim().parse().ok());
    port.unwrap_or(GCS_PORT)
}

/// `networkPolicy` of a RayClusterSpec, if it closes the head to whoever is not of the cluster. Without a mode it
/// does (KubeRay, `buildHeadNetworkPolicy`).
pub fn closing_policy(spec: Fields<'_>) -> Option<Fields<'_>> {
    let policy = spec.object("networkPolicy")?;
    (policy.text("mode") != Some("DenyAllEgress")).then_some(policy)
}

/// The version of Ray's autoscaler, as `autoscalerOptions.version` names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::EnumString)]
#[strum(serialize_all = "lowercase")]
pub enum AutoscalerVersion {
    /// The version `v1`.
    V1,
    /// The version `v2`.
    V2,
}

/// A RayClusterSpec, in whichever kind of object it is.
#[derive(Debug)]
pub struct Cluster<'a> {
    /// The kind of the object that it is in.
    pub kind: Kind,
    /// The RayClusterSpec.
    pub spec: Fields<'a>,
    /// `headGroupSpec`, if it is there.
    pub head: Option<Group<'a>>,
    /// `workerGroupSpecs`, in order.
    pub workers: Vec<Group<'a>>,
    /// The position of each worker group by its name.
    by_name: HashMap<&'a str, usize>,
}

impl<'a> Cluster<'a> {
    /// Reads the RayClusterSpec of an object of `kind`.
    pub fn parse(kind: Kind, spec: impl Into<Fields<'a>>) -> Self {
        let spec = spec.into();
        let head = spec.object("headGroupSpec");
        let head = head.map(|group| Group::parse(kind, Role::Head, group));
        let worker = |(index, group): (usize, Json<'a>)| {
            let role = Role::Worker { index };
            Some(Group::parse(kind, role, group.as_object()?))
        };
        let workers = spec.list("workerGroupSpecs").iter().enumerate();
        let workers: Vec<Group<'a>> = workers.filter_map(worker).collect();
        // The groups are taken backwards, so that the first one of several with the same name is found.
        let named = workers.iter().enumerate().rev();
        let named = named.filter_map(|(index, group)| Some((group.name?, index)));
        Self {
            kind,
            spec,
            head,
            by_name: named.collect(),
            workers,
        }
    }

    /// The groups: the head first, then the worker groups in their order.
    pub fn groups(&self) -> impl Iterator<Item = &Group<'a>> {
        self.head.iter().chain(&self.workers)
    }

    /// The group with that name. `headgroup` is the head, as for Ray.
    pub fn group(&self, name: &str) -> Option<&Group<'a>> {
        let head = self.head.as_ref().filter(|head| head.name == Some(name));
        head.or_else(|| self.workers.get(*self.by_name.get(name)?))
    }

    /// `enableInTreeAutoscaling`
    pub fn autoscaling(&self) -> bool {
        self.spec.is_true("enableInTreeAutoscaling")
    }

    /// `autoscalerOptions`, if it is there.
    pub fn autoscaler_options(&self) -> Option<Fields<'a>> {
        self.spec.object("autoscalerOptions")
    }

    /// One value of `autoscalerOptions`.
    pub fn autoscaler_option(&self, key: &str) -> Option<Json<'a>> {
        self.autoscaler_options()?.get(key)
    }

    /// `autoscalerOptions.version`, if it is one that KubeRay knows.
    pub fn autoscaler_version(&self) -> Option<AutoscalerVersion> {
        self.autoscaler_option("version")?.as_str()?.parse().ok()
    }

    /// The value of `RAY_enable_autoscaler_v2` in the head's ray container. It is empty if the
    /// value comes from elsewhere (`valueFrom`).
    pub fn v2_env(&self) -> Option<&'a str> {
        self.head.as_ref()?.ray_container?.env(V2_ENV)
    }

    /// True if the environment variable asks for v2 as KubeRay reads it: exactly `1` or `true`.
    pub fn v2_by_env(&self) -> bool {
        matches!(self.v2_env(), Some("1" | "true"))
    }

    /// True if v2 is asked for, by field or environment variable, as KubeRay reads them.
    pub fn uses_v2(&self) -> bool {
        self.autoscaler_version() == Some(AutoscalerVersion::V2) || self.v2_by_env()
    }

    /// `rayVersion`, as it is written.
    pub fn ray_version_text(&self) -> Option<&'a str> {
        self.spec.filled("rayVersion")
    }

    /// `rayVersion`, if it is a version.
    pub fn ray_version(&self) -> Option<RayVersion> {
        self.ray_version_text()?.parse().ok()
    }

    /// `spec.upgradeStrategy.type`.
    pub fn upgrade_strategy(&self) -> Option<&'a str> {
        (self.spec.object("upgradeStrategy")?).text("type")
    }

    /// The path of the RayClusterSpec.
    pub fn path(&self) -> FieldPath {
        FieldPath::of(self.kind.cluster_path())
    }

    /// The path of a value of `autoscalerOptions`.
    pub fn option_path(&self, key: &'static str) -> FieldPath {
        self.path().key("autoscalerOptions").key(key)
    }
}

/// The Ray of a cluster, and where the object says so.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RaySource {
    /// The place: `rayVersion` or the image of the head.
    pub path: FieldPath,
    /// The text there.
    pub text: String,
    /// The version that it names.
    pub version: RayVersion,
}

impl RaySource {
    /// The version by `rayVersion`, or else by the tag of an official image in the head's ray
    /// container.
    pub fn of(cluster: &Cluster<'_>) -> Option<Self> {
        // YAML makes a number of a version such as 2.9.
        let text = match cluster.spec.get("rayVersion") {
            Some(Json::String(text)) if !text.is_empty() => text.to_owned(),
            Some(Json::Number(number)) => number.to_string(),
            _ => return Self::of_head(cluster),
        };
        Some(Self {
            version: text.parse().ok()?,
            path: cluster.path().key("rayVersion"),
            text,
        })
    }

    /// The latest version that the object names for its autoscaler: `rayVersion` and the images differ
    /// in many clusters.
    pub fn latest(cluster: &Cluster<'_>) -> Option<Self> {
        let image = cluster.autoscaler_option("image").and_then(Json::as_str);
        let autoscaler =
            image.and_then(|image| Self::official(cluster.option_path("image"), image));
        let named = [Self::of(cluster), Self::of_head(cluster), autoscaler];
        named
            .into_iter()
            .flatten()
            .max_by_key(|source| source.version)
    }

    fn of_head(cluster: &Cluster<'_>) -> Option<Self> {
        let head = cluster.head.as_ref()?;
        let path = head.ray_container_path().key("image");
        Self::official(path, head.ray_container?.image()?)
    }

    fn official(path: FieldPath, image: &str) -> Option<Self> {
        Some(Self {
            path,
            text: image.to_owned(),
            version: RayVersion::of_official_image(image)?,
        })
    }
}
