//! Estimating the decoded size of an answer from its bytes, before any of it is decoded.
//!
//! Two bytes can be a whole message: an empty Ray node takes three hundred bytes once decoded, so a
//! limit on the bytes alone is not enough. The structure of Ray's messages is given here as data; a
//! scan reads the bytes once, without recursion beyond that structure and without allocating, and
//! counts.

use std::mem::size_of;

use super::generated::ray::rpc;
use super::generated::ray::rpc::autoscaler as wire;
use crate::gcs::excess::{Counted, ENTRIES, Excess, MEMORY, RECORDED_MEMORY, TEXT};

/// A kind of message: what one takes in memory, and which fields take more.
pub(in crate::gcs) struct MessageShape {
    size: usize,
    counted: Option<Counted>,
    fields: &'static [(u64, Field)],
}

enum Field {
    Message(&'static MessageShape),
    /// An entry of a map, with the size of a key and its value.
    Entry(usize),
    Text,
    /// Texts in a list.
    Texts,
}

/// An answer whose shape is known.
pub(in crate::gcs) trait GcsAnswer {
    /// The shape of the answer.
    const SHAPE: &'static MessageShape;
    /// The memory that it may take.
    const MEMORY: usize = MEMORY;
}

/// Messages in lists, which have capacity for twice as many in the worst case.
const fn listed(size: usize, counted: Counted, fields: &'static [(u64, Field)]) -> MessageShape {
    let counted = Some(counted);
    MessageShape {
        size: 2 * size,
        counted,
        fields,
    }
}

const AMOUNT: Field = Field::Entry(size_of::<(String, f64)>());
const LABEL: Field = Field::Entry(size_of::<(String, String)>());

const PLAIN: MessageShape = MessageShape {
    size: 0,
    counted: None,
    fields: &[],
};
const NAMED: MessageShape = MessageShape {
    size: 0,
    counted: None,
    fields: &[(1, Field::Text), (2, Field::Text)],
};
const CONDITION: MessageShape = listed(
    size_of::<rpc::LabelSelectorConstraint>(),
    Counted::Parts,
    &[(1, Field::Text), (3, Field::Texts)],
);
const SELECTOR: MessageShape = listed(
    size_of::<rpc::LabelSelector>(),
    Counted::Parts,
    &[(1, Field::Message(&CONDITION))],
);
const PLACEMENT: MessageShape = listed(
    size_of::<wire::PlacementConstraint>(),
    Counted::Parts,
    &[(1, Field::Message(&NAMED)), (2, Field::Message(&NAMED))],
);
const REQUEST_FIELDS: &[(u64, Field)] = &[
    (1, AMOUNT),
    (2, Field::Message(&PLACEMENT)),
    (3, Field::Message(&SELECTOR)),
];
const BUNDLE: MessageShape = listed(
    size_of::<wire::ResourceRequest>(),
    Counted::Parts,
    REQUEST_FIELDS,
);
const REQUEST: MessageShape = MessageShape {
    size: 0,
    counted: None,
    fields: REQUEST_FIELDS,
};
const BY_COUNT: MessageShape = listed(
    size_of::<wire::ResourceRequestByCount>(),
    Counted::Requests,
    &[(1, Field::Message(&REQUEST))],
);
const WAY: MessageShape = listed(
    size_of::<wire::BundleSelector>(),
    Counted::Parts,
    &[(1, Field::Message(&BUNDLE))],
);
const GANG: MessageShape = listed(
    size_of::<wire::GangResourceRequest>(),
    Counted::Gangs,
    &[
        (1, Field::Message(&BUNDLE)),
        (2, Field::Text),
        (3, Field::Message(&WAY)),
    ],
);
const CONSTRAINT: MessageShape = listed(
    size_of::<wire::ClusterResourceConstraint>(),
    Counted::Gangs,
    &[(1, Field::Message(&BY_COUNT))],
);
const NODE: MessageShape = listed(
    size_of::<wire::NodeState>(),
    Counted::Nodes,
    &[
        (1, Field::Text),
        (2, Field::Text),
        (3, Field::Text),
        (4, AMOUNT),
        (5, AMOUNT),
        (6, LABEL),
        (13, LABEL),
    ],
);
const STATE: MessageShape = MessageShape {
    size: 0,
    counted: None,
    fields: &[
        (3, Field::Message(&NODE)),
        (4, Field::Message(&BY_COUNT)),
        (5, Field::Message(&GANG)),
        (6, Field::Message(&CONSTRAINT)),
    ],
};

impl GcsAnswer for wire::GetClusterResourceStateReply {
    const SHAPE: &'static MessageShape = &MessageShape {
        size: 0,
        counted: None,
        fields: &[(1, Field::Message(&STATE))],
    };
}

const TASK_INFO: MessageShape = MessageShape {
    size: 0,
    counted: None,
    fields: &[
        (2, Field::Text),
        (4, Field::Text),
        (8, Field::Text),
        (13, AMOUNT),
        (25, Field::Text),
        (26, Field::Text),
    ],
};
const TASK_STATES: MessageShape = MessageShape {
    size: 0,
    counted: None,
    fields: &[(14, Field::Entry(size_of::<(i32, i64)>()))],
};
const TASK: MessageShape = listed(
    size_of::<rpc::TaskEvents>(),
    Counted::Tasks,
    &[
        (1, Field::Text),
        (3, Field::Message(&TASK_INFO)),
        (4, Field::Message(&TASK_STATES)),
    ],
);
const ACTOR: MessageShape = listed(
    size_of::<rpc::ActorTableData>(),
    Counted::Tasks,
    &[(1, Field::Text), (19, Field::Text)],
);
const JOB_CONFIG: MessageShape = MessageShape {
    size: size_of::<rpc::JobConfig>(),
    counted: None,
    fields: &[(5, Field::Text)],
};
const JOB: MessageShape = listed(
    size_of::<rpc::JobTableData>(),
    Counted::Tasks,
    &[(1, Field::Text), (6, Field::Message(&JOB_CONFIG))],
);
const GROUP_BUNDLE: MessageShape = listed(size_of::<rpc::Bundle>(), Counted::Parts, &[(2, AMOUNT)]);
const GROUP: MessageShape = listed(
    size_of::<rpc::PlacementGroupTableData>(),
    Counted::Gangs,
    &[(1, Field::Text), (3, Field::Message(&GROUP_BUNDLE))],
);

impl GcsAnswer for rpc::GetTaskEventsReply {
    const SHAPE: &'static MessageShape = &MessageShape {
        size: 0,
        counted: None,
        fields: &[(2, Field::Message(&TASK))],
    };
    const MEMORY: usize = RECORDED_MEMORY;
}

impl GcsAnswer for rpc::GetAllActorInfoReply {
    const SHAPE: &'static MessageShape = &MessageShape {
        size: 0,
        counted: None,
        fields: &[(2, Field::Message(&ACTOR))],
    };
}

impl GcsAnswer for rpc::GetAllJobInfoReply {
    const SHAPE: &'static MessageShape = &MessageShape {
        size: 0,
        counted: None,
        fields: &[(2, Field::Message(&JOB))],
    };
}

impl GcsAnswer for rpc::GetAllPlacementGroupReply {
    const SHAPE: &'static MessageShape = &MessageShape {
        size: 0,
        counted: None,
        fields: &[(2, Field::Message(&GROUP))],
    };
}

/// The text of a report takes no more memory than its bytes, which are bounded.
const PUBLISHED: MessageShape = listed(
    size_of::<rpc::PubMessage>(),
    Counted::Tasks,
    &[(2, Field::Text)],
);

impl GcsAnswer for rpc::GcsSubscriberPollReply {
    const SHAPE: &'static MessageShape = &MessageShape {
        size: 0,
        counted: None,
        fields: &[(1, Field::Message(&PUBLISHED)), (2, Field::Text)],
    };
}

impl GcsAnswer for wire::ResizeRayletResourceInstancesReply {
    const SHAPE: &'static MessageShape = &MessageShape {
        size: 0,
        counted: None,
        fields: &[(1, AMOUNT)],
    };
}

/// Answers that take no more memory than their bytes.
macro_rules! plain {
    ($($answer:ty),*) => {
        $(impl GcsAnswer for $answer {
            const SHAPE: &'static MessageShape = &PLAIN;
        })*
    };
}

plain!(
    wire::ReportAutoscalingStateReply,
    wire::DrainNodeReply,
    rpc::DrainNodeReply,
    rpc::InternalKvGetReply,
    rpc::InternalKvPutReply,
    rpc::InternalKvDelReply,
    rpc::GcsSubscriberCommandBatchReply,
    rpc::GcsPublishReply
);

/// Whether an answer of this shape may be decoded.
pub(in crate::gcs) fn check(bytes: &[u8], shape: &MessageShape) -> Result<(), Excess> {
    check_within(bytes, shape, MEMORY)
}

/// Whether an answer of this shape may be decoded into so much memory.
pub(in crate::gcs) fn check_within(
    bytes: &[u8],
    shape: &MessageShape,
    memory: usize,
) -> Result<(), Excess> {
    let mut scan = Scan {
        memory,
        left: Counted::ALL.map(Counted::most),
    };
    scan.message(bytes, shape)
}

struct Scan {
    memory: usize,
    /// The number of each kind that may still come, by [`Counted`].
    left: [usize; Counted::ALL.len()],
}

impl Scan {
    fn message(&mut self, mut bytes: &[u8], shape: &MessageShape) -> Result<(), Excess> {
        self.take(shape.size)?;
        if let Some(counted) = shape.counted {
            self.count(counted)?;
        }
        let mut entries = 0;
        while !bytes.is_empty() {
            let key = varint(&mut bytes)?;
            // The wire types of protobuf: 0 is a varint, 1 eight bytes, 2 a length and as many
            // bytes, 5 four bytes.
            let content = match key & 7 {
                0 => {
                    varint(&mut bytes)?;
                    continue;
                }
                1 => {
                    take(&mut bytes, 8)?;
                    continue;
                }
                5 => {
                    take(&mut bytes, 4)?;
                    continue;
                }
                2 => {
                    let length = varint(&mut bytes)?;
                    take(&mut bytes, length)?
                }
                // Groups (3 and 4) are not in proto3, and skipping them would need recursion.
                _ => return Err(Excess::Malformed),
            };
            let known = shape.fields.iter().find(|(number, _)| *number == key >> 3);
            match known {
                // The decoder drops fields that it does not know.
                None => {}
                Some((_, Field::Text)) => self.text(content)?,
                Some((_, Field::Texts)) => {
                    self.count(Counted::Parts)?;
                    self.take(2 * size_of::<String>())?;
                    self.text(content)?;
                }
                Some((_, Field::Message(inner))) => self.message(content, inner)?,
                Some((_, Field::Entry(size))) => {
                    entries += 1;
                    self.entry(content, *size, entries)?;
                }
            }
        }
        Ok(())
    }

    fn count(&mut self, counted: Counted) -> Result<(), Excess> {
        if let Some(left) = self.left.get_mut(counted as usize) {
            *left = left.checked_sub(1).ok_or(Excess::Many(counted))?;
        }
        Ok(())
    }

    fn entry(&mut self, bytes: &[u8], size: usize, entries: usize) -> Result<(), Excess> {
        if entries > ENTRIES || bytes.len() > 2 * TEXT {
            return Err(Excess::Long);
        }
        // A node of a B-tree map has capacity for eleven entries, and in the worst case contains
        // five. The first entry of a map allocates a whole node.
        let nodes = if entries <= 2 { 11 } else { 3 };
        self.take(nodes * size + 32 + bytes.len())
    }

    fn text(&mut self, bytes: &[u8]) -> Result<(), Excess> {
        if bytes.len() > TEXT {
            return Err(Excess::Long);
        }
        self.take(16 + 2 * bytes.len())
    }

    fn take(&mut self, memory: usize) -> Result<(), Excess> {
        self.memory = self.memory.checked_sub(memory).ok_or(Excess::Memory)?;
        Ok(())
    }
}

fn varint(bytes: &mut &[u8]) -> Result<u64, Excess> {
    prost::encoding::decode_varint(bytes).map_err(|_| Excess::Malformed)
}

fn take<'a>(bytes: &mut &'a [u8], length: u64) -> Result<&'a [u8], Excess> {
    let length = usize::try_from(length).map_err(|_| Excess::Malformed)?;
    let (content, rest) = bytes.split_at_checked(length).ok_or(Excess::Malformed)?;
    *bytes = rest;
    Ok(content)
}

#[cfg(test)]
mod tests {
    use prost::Message as _;

    use super::*;

    fn refused(state: wire::ClusterResourceState) -> Option<Excess> {
        let reply = wire::GetClusterResourceStateReply {
            cluster_resource_state: Some(state),
        };
        let shape = wire::GetClusterResourceStateReply::SHAPE;
        check(&reply.encode_to_vec(), shape).err()
    }

    #[test]
    fn what_large_clusters_report_is_read() {
        let amounts = || (0..10).map(|at| (format!("resource-{at}"), 4.0)).collect();
        let labels = || (0..6).map(|at| (format!("label-{at}"), "value".to_owned()));
        let node = wire::NodeState {
            node_id: vec![7; 28],
            instance_id: "a-cluster-with-a-long-name-worker-group-x7k2p".to_owned(),
            total_resources: amounts(),
            available_resources: amounts(),
            labels: labels().collect(),
            ..Default::default()
        };
        let request = wire::ResourceRequestByCount {
            request: Some(wire::ResourceRequest {
                resources_bundle: amounts(),
                ..Default::default()
            }),
            count: 2_000,
        };
        let bundle = wire::ResourceRequest {
            resources_bundle: [("CPU".to_owned(), 1.0)].into(),
            ..Default::default()
        };
        let gang = wire::GangResourceRequest {
            requests: vec![bundle; 100],
            ..Default::default()
        };
        let state = wire::ClusterResourceState {
            node_states: vec![node; 5_000],
            pending_resource_requests: vec![request; 50],
            pending_gang_resource_requests: vec![gang; 100],
            ..Default::default()
        };
        assert_eq!(refused(state), None);
    }

    #[test]
    fn what_no_cluster_reports_is_not() {
        let empty = || wire::ClusterResourceState::default();
        let nodes = vec![wire::NodeState::default(); 20_001];
        let many = wire::ClusterResourceState {
            node_states: nodes,
            ..empty()
        };
        assert_eq!(refused(many), Some(Excess::Many(Counted::Nodes)));
        let gangs = wire::ClusterResourceState {
            pending_gang_resource_requests: vec![wire::GangResourceRequest::default(); 50_001],
            ..empty()
        };
        assert_eq!(refused(gangs), Some(Excess::Many(Counted::Gangs)));
        let bundles = wire::GangResourceRequest {
            requests: vec![wire::ResourceRequest::default(); 400_001],
            ..Default::default()
        };
        let bundles = wire::ClusterResourceState {
            pending_gang_resource_requests: vec![bundles],
            ..empty()
        };
        assert_eq!(refused(bundles), Some(Excess::Many(Counted::Parts)));
        let named = |instance_id: String| wire::ClusterResourceState {
            node_states: vec![wire::NodeState {
                instance_id,
                ..Default::default()
            }],
            ..empty()
        };
        assert_eq!(refused(named("a".repeat(5_000))), Some(Excess::Long));
        let node = wire::NodeState {
            labels: (0..900).map(|at| (at.to_string(), String::new())).collect(),
            ..Default::default()
        };
        let wide = wire::ClusterResourceState {
            node_states: vec![node; 1_000],
            ..empty()
        };
        assert_eq!(refused(wide), Some(Excess::Memory));
    }

    #[test]
    fn bytes_that_are_no_message_are_refused() {
        let shape = wire::GetClusterResourceStateReply::SHAPE;
        for bytes in [
            &[0x0a, 5, 1][..],
            &[0x0b],
            &[0xff; 12],
            &[0x0a, 0xff, 0xff, 0xff, 0x7f],
        ] {
            assert_eq!(check(bytes, shape), Err(Excess::Malformed), "{bytes:?}");
        }
        assert_eq!(check(&[], shape), Ok(()));
    }
}
