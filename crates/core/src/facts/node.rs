//! A Kubernetes node, as far as it decides which pods it can hold.

use serde::Deserialize;

use crate::json::Fields;
use crate::quantity::Quantity;
use crate::ray::Resource;

/// A Kubernetes node.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Node {
    /// Its name.
    pub name: String,
    /// Its labels.
    pub labels: Vec<(String, String)>,
    /// Its taints that keep pods off (`NoSchedule` and `NoExecute`).
    pub taints: Vec<NodeTaint>,
    /// The node is cordoned.
    pub unschedulable: bool,
    /// CPU that pods can have, in cores; zero if the node does not say.
    pub cpu: Quantity,
    /// Memory that pods can have, in bytes; zero if the node does not say.
    pub memory: Quantity,
}

/// A taint that keeps pods off.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NodeTaint {
    /// Its key.
    pub key: String,
    /// Its value, empty if it has none.
    #[serde(default)]
    pub value: String,
    /// `NoSchedule` or `NoExecute`.
    pub effect: String,
}

impl Node {
    /// Reads a Node object; fields that are absent or of a wrong type read as empty.
    pub fn read(object: Fields<'_>) -> Self {
        let (metadata, spec) = (object.below("metadata"), object.below("spec"));
        let allocatable = object.below("status").below("allocatable");
        let amount = |resource: Resource| {
            let value = allocatable.get(resource.name())?;
            Quantity::from_json(value).ok()
        };
        let taints = spec.list("taints").objects().map(|taint| {
            let text = |key| taint.text(key).unwrap_or_default().to_owned();
            NodeTaint {
                key: text("key"),
                value: text("value"),
                effect: text("effect"),
            }
        });
        // By `PreferNoSchedule` the scheduler only prefers other nodes.
        let taints =
            taints.filter(|taint| matches!(taint.effect.as_str(), "NoSchedule" | "NoExecute"));
        Self {
            name: metadata.text("name").unwrap_or_default().to_owned(),
            labels: metadata.below("labels").texts().collect(),
            taints: taints.collect(),
            unschedulable: spec.is_true("unschedulable"),
            cpu: amount(Resource::Cpu).unwrap_or_default(),
            memory: amount(Resource::Memory).unwrap_or_default(),
        }
    }

    /// The value of a label.
    pub fn label(&self, key: &str) -> Option<&str> {
        self.labels
            .iter()
            .find(|(name, _)| name == key)
            .map(|(_, value)| value.as_str())
    }

    /// The amount of a resource that pods can have.
    pub fn allocatable(&self, resource: Resource) -> Quantity {
        match resource {
            Resource::Cpu => self.cpu,
            Resource::Memory => self.memory,
        }
    }
}

/// All nodes, in orders that make it quick to find the largest.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Nodes {
    /// Most CPU first.
    by_cpu: Vec<Node>,
    /// Positions in `by_cpu`, most memory first.
    by_memory: Vec<usize>,
}

impl Nodes {
    /// Puts nodes in order.
    pub fn new(mut nodes: Vec<Node>) -> Self {
        nodes.sort_by(|left, right| {
            // By name at last, so that messages name the same of several equal nodes each time.
            (right.cpu, right.memory, &left.name).cmp(&(left.cpu, left.memory, &right.name))
        });
        let mut by_memory: Vec<usize> = (0..nodes.len()).collect();
        by_memory.sort_by_key(|at| std::cmp::Reverse(nodes.get(*at).map(|node| node.memory)));
        Self {
            by_cpu: nodes,
            by_memory,
        }
    }

    /// Every node, those with most CPU first.
    pub fn all(&self) -> &[Node] {
        &self.by_cpu
    }

    /// The node with most of `resource` among those that `may` accepts.
    pub fn largest(&self, resource: Resource, may: impl Fn(&Node) -> bool) -> Option<&Node> {
        match resource {
            Resource::Cpu => self.by_cpu.iter().find(|node| may(node)),
            Resource::Memory => self
                .by_memory
                .iter()
                .filter_map(|at| self.by_cpu.get(*at))
                .find(|node| may(node)),
        }
    }

    /// True if a single node that `may` accepts has that much CPU and that much memory.
    pub fn any_holds(&self, cpu: Quantity, memory: Quantity, may: impl Fn(&Node) -> bool) -> bool {
        self.by_cpu
            .iter()
            .take_while(|node| node.cpu >= cpu)
            .any(|node| node.memory >= memory && may(node))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn node(name: &str, cpu: &str, memory: &str) -> Node {
        Node {
            name: name.to_owned(),
            cpu: Quantity::parse(cpu).unwrap(),
            memory: Quantity::parse(memory).unwrap(),
            ..Node::default()
        }
    }

    #[test]
    fn reads_a_node_and_survives_nonsense() {
        let object = json!({"metadata": {"name": "a", "labels": {"zone": "z", "n": 1}},
            "spec": {"unschedulable": true, "taints": [
                {"key": "gpu", "effect": "NoSchedule"},
                {"key": "soft", "effect": "PreferNoSchedule"}, 7]},
            "status": {"allocatable": {"cpu": "3920m", "memory": 1024}}});
        let node = Node::read((&object).into());
        assert_eq!((node.label("zone"), node.label("n")), (Some("z"), None));
        assert_eq!(node.taints.len(), 1);
        assert!(node.unschedulable);
        assert_eq!(node.cpu, Quantity::from_milli(3920));
        assert_eq!(node.memory, Quantity::from_units(1024));
        assert_eq!(Node::read(Fields::default()), Node::default());
    }

    #[test]
    fn finds_the_largest_and_needs_both_on_one_node() {
        let nodes = Nodes::new(vec![
            node("cpu", "16", "8Gi"),
            node("memory", "4", "64Gi"),
            node("small", "2", "4Gi"),
        ]);
        let largest = |resource| nodes.largest(resource, |_| true).unwrap().name.as_str();
        assert_eq!(largest(Resource::Cpu), "cpu");
        assert_eq!(largest(Resource::Memory), "memory");
        let but_memory = |node: &Node| node.name != "memory";
        assert_eq!(
            nodes.largest(Resource::Memory, but_memory).unwrap().name,
            "cpu"
        );
        let holds = |cpu, memory: &str| {
            nodes.any_holds(
                Quantity::from_units(cpu),
                Quantity::parse(memory).unwrap(),
                |_| true,
            )
        };
        assert!(
            holds(16, "8Gi") && holds(4, "64Gi"),
            "the bounds are inside"
        );
        assert!(!holds(5, "9Gi") && !holds(17, "1Gi"));
        assert!(Nodes::default().all().is_empty());
    }
}
