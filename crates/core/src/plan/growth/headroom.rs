//! The headroom of Kubernetes nodes for pods that grow.

use crate::hash::HashMap;
use crate::plan::growth::size::{Size, bytes, cores, from_cores};
use crate::plan::list::{KubeNodeIndex, List};
use crate::quantity::Quantity;
use crate::ray::resource::Amounts;
use crate::snapshot::pod::Pod;
use crate::snapshot::{KubeNode, NodeLoads};

/// Free CPU and memory of a Kubernetes node: its allocatable amounts minus the requests of all pods
/// on it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct NodeHeadroom {
    pub(crate) node: String,
    pub(crate) cpu: Quantity,
    pub(crate) memory: Quantity,
    /// The node is about to leave or in trouble, so that it has nothing to give, whatever
    /// goes.
    pub(crate) is_closed: bool,
}

/// The headroom of Kubernetes nodes, and where each is, by its name.
pub(crate) type Headrooms = (
    List<KubeNodeIndex, NodeHeadroom>,
    HashMap<String, KubeNodeIndex>,
);

impl NodeHeadroom {
    /// The headroom of all Kubernetes nodes, and where each is, by its name.
    pub(crate) fn all(nodes: &[KubeNode], own_pods: &[Pod<'_>], loads: &NodeLoads) -> Headrooms {
        let headrooms = nodes.iter().filter_map(|node| {
            let is_closed = !node.is_open();
            let allocatable = if is_closed {
                Amounts::new(Quantity::ZERO, Quantity::ZERO)
            } else {
                node.status.allocatable
            };
            Some(Self {
                node: node.metadata.name.clone(),
                cpu: allocatable.cpu?,
                memory: allocatable.memory?,
                is_closed,
            })
        });
        let mut headrooms: List<KubeNodeIndex, Self> = headrooms.collect();
        let names = headrooms.enumerate();
        let names = names.map(|(at, headroom)| (headroom.node.clone(), at));
        let index: HashMap<String, KubeNodeIndex> = names.collect();
        // A pod that has ended takes nothing of its node.
        let own_pods = own_pods.iter().filter(|pod| !pod.ended);
        let own_pods = own_pods.filter_map(|pod| Some((pod.node?, pod.requests())));
        let others = loads.iter().map(|(node, load)| (node.as_str(), *load));
        for (node, load) in own_pods.chain(others) {
            if let Some(at) = index.get(node) {
                headrooms[*at].take(load);
            }
        }
        (headrooms, index)
    }

    /// Takes what a pod asks for.
    pub(crate) fn take(&mut self, load: Amounts) {
        // A resize that the kubelet defers is requested already, so what is left can be below zero, and
        // then says how much has to go before anything fits.
        let less = |from: Quantity, amount: Option<Quantity>| {
            let rest = from.checked_sub(amount.unwrap_or_default());
            rest.unwrap_or_default()
        };
        self.cpu = less(self.cpu, load.cpu);
        self.memory = less(self.memory, load.memory);
    }

    /// Puts back what a pod asked for.
    pub(crate) fn put(&mut self, load: Amounts) {
        // Nothing starts or grows on a node that is about to leave, whatever goes from it.
        if self.is_closed {
            return;
        }
        let sum = Amounts::new(self.cpu, self.memory).plus(load);
        self.cpu = sum.cpu.unwrap_or_default();
        self.memory = sum.memory.unwrap_or_default();
    }

    /// True with room for a pod that asks for so much, if pods give up so many cores.
    pub(crate) fn holds(&self, asked: Amounts, shrinks: f64) -> bool {
        let cpu = cores(asked.cpu.unwrap_or_default());
        !self.is_closed
            && cpu <= cores(self.cpu) + shrinks.max(0.0)
            && asked.memory.unwrap_or_default() <= self.memory
    }

    /// The largest size up to `limit`, and not below `current`, that the headroom allows.
    pub(crate) fn bound(&self, current: Size, limit: Size) -> Size {
        let cpu = limit.cpu.min(current.cpu + cores(self.cpu));
        let memory = limit
            .memory
            .min(current.memory.saturating_add(bytes(self.memory)));
        Size {
            // The headroom is below zero where a resize was deferred, and no pod shrinks for that.
            cpu: cpu.max(current.cpu),
            memory: memory.max(current.memory),
        }
    }

    /// Takes what a pod gains between two sizes off the headroom.
    pub(crate) fn give(&mut self, current: Size, goal: Size) {
        let (cpu, memory) = (goal.cpu - current.cpu, goal.memory - current.memory);
        self.take(Amounts::new(from_cores(cpu), Quantity::from_units(memory)));
    }
}
