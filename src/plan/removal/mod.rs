//! Which nodes are removed: nodes above a maximum, and nodes that have been idle for too long. The
//! hosts of one replica are removed together or not at all. Idle nodes and pods without a Kubernetes
//! node go sooner where demand needs their room. Pods that stay give up CPU that they have
//! not needed for a while. Nodes above a maximum have a limited time to finish their work. What a
//! placement group leaves behind that did not become whole makes room for others.

pub(crate) mod deadline;
pub(crate) mod enforce;
pub(crate) mod gaps;
pub(crate) mod give_way;
pub(crate) mod idle_end;
pub(crate) mod keep;
pub(crate) mod make_room;
pub(crate) mod scattered;
pub(crate) mod shrink;
mod spare;
pub(crate) mod vain;
pub(crate) mod withdraw;
