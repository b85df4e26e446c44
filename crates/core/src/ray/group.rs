//! The head group or a worker group.

use super::{Container, Kind};
use crate::json::{Fields, Json};
use crate::path::FieldPath;

/// The name by which Ray and the `ray.io/ippr` annotation call the head group.
pub const HEAD_NAME: &str = "headgroup";

/// The role of a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// `headGroupSpec`
    Head,
    /// An item of `workerGroupSpecs`.
    Worker {
        /// The position in `workerGroupSpecs`, from 0.
        index: usize,
    },
}

impl Role {
    /// The name by which messages call a group of that role and name.
    pub(crate) fn title(self, name: Option<&str>) -> String {
        match (self, name) {
            (Self::Head, _) => "the head group".to_owned(),
            (Self::Worker { .. }, Some(name)) => {
                format!("group {}", crate::text::shown_text(name))
            }
            (Self::Worker { index }, None) => format!("worker group {index}"),
        }
    }

    /// The path of a group of that role and name, in an object of `kind`.
    pub(crate) fn path(self, kind: Kind, name: Option<&str>) -> FieldPath {
        let cluster = FieldPath::of(kind.cluster_path());
        match (self, name) {
            (Self::Head, _) => cluster.key("headGroupSpec"),
            (Self::Worker { index }, Some(name)) => {
                cluster.key("workerGroupSpecs").item(index, name)
            }
            (Self::Worker { index }, None) => cluster.key("workerGroupSpecs").index(index),
        }
    }
}

/// A group of equal pods.
#[derive(Debug)]
pub struct Group<'a> {
    kind: Kind,
    /// The role: head group or worker group.
    pub role: Role,
    /// `groupName`; `headgroup` for the head; `None` for a worker group without a name.
    pub name: Option<&'a str>,
    /// The group's spec.
    pub spec: Fields<'a>,
    // These are looked up once, because nearly every rule asks for them.
    /// `rayStartParams`, if they are there.
    pub start_params: Option<Fields<'a>>,
    /// `template.spec`, if it is there.
    pub pod_spec: Option<Fields<'a>>,
    /// The first container of the template, which Ray and KubeRay take for the ray container.
    pub ray_container: Option<Container<'a>>,
    /// The group's own `resources`, if they are there and not empty (empty ones count for nothing).
    pub resources: Option<Fields<'a>>,
    containers: Vec<Container<'a>>,
}

impl<'a> Group<'a> {
    /// Reads a group of an object of `kind`.
    pub fn parse(kind: Kind, role: Role, spec: impl Into<Fields<'a>>) -> Self {
        let spec = spec.into();
        let name = match role {
            Role::Head => Some(HEAD_NAME),
            Role::Worker { .. } => spec.text("groupName"),
        };
        let pod_spec = spec.object_in(&["template", "spec"]);
        let resources = spec.object("resources");
        let containers: Vec<_> = containers(pod_spec, "containers").collect();
        Self {
            kind,
            role,
            name,
            spec,
            start_params: spec.object("rayStartParams"),
            pod_spec,
            ray_container: (containers.first().copied())
                // If the first item is not an object, the second one is not the ray container.
                .filter(|container| container.index == 0),
            containers,
            resources: resources.filter(|resources| !resources.is_empty()),
        }
    }

    /// True for the head group.
    pub fn is_head(&self) -> bool {
        self.role == Role::Head
    }

    /// The name by which messages call the group: `the head group`, `group "gpu"`, `worker group
    /// 2`.
    pub fn title(&self) -> String {
        self.role.title(self.name)
    }

    /// The path of the group's spec.
    pub fn path(&self) -> FieldPath {
        self.role.path(self.kind, self.name)
    }

    /// One value of `rayStartParams`, of whatever type.
    pub fn start_param(&self, key: &str) -> Option<Json<'a>> {
        self.start_params?.get(key)
    }

    /// The path of one of `rayStartParams`.
    pub fn start_param_path(&self, key: impl Into<std::borrow::Cow<'static, str>>) -> FieldPath {
        self.path().key("rayStartParams").key(key)
    }

    /// The Secrets of `imagePullSecrets`.
    pub fn pull_secrets(&self) -> impl Iterator<Item = &'a str> {
        let secrets = self.pod_spec.unwrap_or_default().list("imagePullSecrets");
        secrets.objects().filter_map(|secret| secret.text("name"))
    }

    /// True if pods of the group do not pull images with that Secret. Nothing is known of a template that leaves it to
    /// its own service account: Kubernetes gives a pod without Secrets those of its account, and only such a pod.
    pub fn lacks_pull_secret(&self, secret: &str) -> bool {
        let by_account = |spec: Fields<'_>| spec.filled("serviceAccountName").is_some();
        let leaves_it =
            self.pull_secrets().next().is_none() && self.pod_spec.is_some_and(by_account);
        !leaves_it && self.pull_secrets().all(|name| name != secret)
    }

    /// The path of `template.spec`.
    pub fn pod_spec_path(&self) -> FieldPath {
        self.path().key("template").key("spec")
    }

    /// The containers of the template, in their order. Init containers are not among them.
    pub fn containers(&self) -> impl Iterator<Item = Container<'a>> {
        self.containers.iter().copied()
    }

    /// The init containers of the template, in their order.
    pub fn init_containers(&self) -> impl Iterator<Item = Container<'a>> {
        containers(self.pod_spec, "initContainers")
    }

    /// The words of the ray container's command and arguments.
    pub fn command(&self) -> impl Iterator<Item = &'a str> {
        let words = |key| {
            let list = self.ray_container.map(|ray| ray.spec.list(key));
            list.unwrap_or_default().iter()
        };
        let all = words("command").chain(words("args"));
        all.filter_map(Json::as_str)
    }

    /// The path of a container of the template. The ray container is the first one, whatever its name is.
    pub fn container_path(&self, container: &Container<'_>) -> FieldPath {
        match container.index {
            0 => self.ray_container_path(),
            index => self.named_path("containers", index, container.spec),
        }
    }

    /// The path of an init container of the template.
    pub fn init_container_path(&self, container: &Container<'_>) -> FieldPath {
        self.named_path("initContainers", container.index, container.spec)
    }

    /// The path of an entry by its name, if it has one.
    fn named_path(&self, list: &'static str, index: usize, spec: Fields<'_>) -> FieldPath {
        let path = self.pod_spec_path().key(list);
        match spec.filled("name") {
            // Its faults then stay its own when others come or go before it.
            Some(name) => path.item(index, name),
            None => path.index(index),
        }
    }

    /// The path of the ray container.
    pub fn ray_container_path(&self) -> FieldPath {
        self.pod_spec_path().key("containers").index(0)
    }

    /// An integer of the group's spec, such as `replicas` or `minReplicas`. A value of another type
    /// reads as absent.
    pub fn integer(&self, key: &str) -> Option<i64> {
        self.spec.get(key)?.as_i64()
    }
}

/// The containers in a list of a pod's spec, in their order. An item that is not an object is skipped.
fn containers<'a>(
    pod_spec: Option<Fields<'a>>,
    list: &str,
) -> impl Iterator<Item = Container<'a>> + use<'a> {
    pod_spec
        .unwrap_or_default()
        .list(list)
        .iter()
        .enumerate()
        .filter_map(|(index, container)| Some(Container::new(index, container.as_object()?)))
}
