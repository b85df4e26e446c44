//! Facts about the Kubernetes cluster around an object. A rule that needs a fact reports nothing
//! without it.
//!
//! Facts are made of native Kubernetes objects, from a watch or from a file of this form, whose
//! lists may also be what `kubectl get nodes -o json` prints:
//!
//! ```yaml
//! kubernetesVersion: "1.35"
//! nodes: []           # Node objects
//! limitRanges: []     # LimitRange objects, of any namespaces
//! resourceQuotas: []  # ResourceQuota objects, of any namespaces
//! namespaces: []      # Namespace objects, for policies that go by their labels
//! pods: []            # Pod objects of Ray clusters
//! ```

mod file;
mod known;
pub mod limits;
pub mod node;
mod objects;
pub mod pods;
pub mod scheduling;
mod version;

pub use known::{DEFAULT_NAMESPACE, Facts};
pub use limits::{LimitRange, ResourceQuota};
pub use node::{Node, Nodes};
pub use objects::{Objects, StoredObject};
pub use pods::{Pods, RayPod};
pub use version::KubernetesVersion;
