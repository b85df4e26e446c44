//! Estimating the decoded size of an answer from its bytes, before any of it is decoded.
//!
//! Two bytes can be a whole message: an empty Ray node takes three hundred bytes once decoded, so a
//! limit on the bytes alone is not enough. The structure of Ray's messages is given here as data; a
//! scan reads the bytes once, without recursion beyond that structure and without allocating, and
//! counts.

use std::mem::size_of;

use FieldShape::{Entry, Message, Text, Texts};
use rayfit_core::snapshot::gcs;
use strum::EnumCount as _;

use super::generated::ray::rpc;
use super::generated::ray::rpc::autoscaler as wire;
use crate::gcs::validate::{Counted, ENTRIES, Excess, MEMORY, RECORDED_MEMORY, TEXT};

/// A kind of message: what one takes in memory, and which fields take more.
pub(in crate::gcs) struct MessageShape {
    size: usize,
    counted: Option<Counted>,
    fields: &'static [(u64, FieldShape)],
}

enum FieldShape {
    Message(&'static MessageShape),
    /// An entry of a map, with the size of a key and its value.
    Entry(usize),
    Text,
    /// Texts in a list.
    Texts,
}

/// An answer whose shape is known. One takes no more memory than its bytes where nothing else is said.
pub(in crate::gcs) trait GcsAnswer {
    /// The shape of the answer.
    const SHAPE: &'static MessageShape = &single(&[]);
    /// The memory that it may take.
    const MEMORY: usize = MEMORY;
}

/// A message of which there is one, with no size of its own.
const fn single(fields: &'static [(u64, FieldShape)]) -> MessageShape {
    MessageShape {
        size: 0,
        counted: None,
        fields,
    }
}

/// Messages in lists, which have capacity for twice as many in the worst case.
const fn listed<T>(counted: Counted, fields: &'static [(u64, FieldShape)]) -> MessageShape {
    let counted = Some(counted);
    MessageShape {
        size: 2 * size_of::<T>(),
        counted,
        fields,
    }
}

const AMOUNT: FieldShape = Entry(size_of::<(String, f64)>());
const LABEL: FieldShape = Entry(size_of::<(String, String)>());

const NAMED: MessageShape = single(&[(1, Text), (2, Text)]);
const CONDITION: MessageShape =
    listed::<gcs::LabelConstraint>(Counted::Parts, &[(1, Text), (3, Texts)]);
const SELECTOR: MessageShape =
    listed::<gcs::LabelSelector>(Counted::Parts, &[(1, Message(&CONDITION))]);
const PLACEMENT: MessageShape = listed::<gcs::PlacementConstraint>(
    Counted::Parts,
    &[(1, Message(&NAMED)), (2, Message(&NAMED))],
);
const REQUEST_FIELDS: &[(u64, FieldShape)] = &[
    (1, AMOUNT),
    (2, Message(&PLACEMENT)),
    (3, Message(&SELECTOR)),
];
const BUNDLE: MessageShape = listed::<gcs::ResourceRequest>(Counted::Parts, REQUEST_FIELDS);
const REQUEST: MessageShape = single(REQUEST_FIELDS);
const BY_COUNT: MessageShape =
    listed::<gcs::ResourceRequestByCount>(Counted::Requests, &[(1, Message(&REQUEST))]);
const WAY: MessageShape = listed::<gcs::BundleSelector>(Counted::Parts, &[(1, Message(&BUNDLE))]);
const GANG: MessageShape = listed::<gcs::GangResourceRequest>(
    Counted::Gangs,
    &[(1, Message(&BUNDLE)), (2, Text), (3, Message(&WAY))],
);
const CONSTRAINT: MessageShape =
    listed::<gcs::ClusterResourceConstraint>(Counted::Gangs, &[(1, Message(&BY_COUNT))]);
const NODE: MessageShape = listed::<wire::NodeState>(
    Counted::Nodes,
    &[
        (1, Text),
        (2, Text),
        (3, Text),
        (4, AMOUNT),
        (5, AMOUNT),
        (6, LABEL),
        (13, LABEL),
    ],
);
const STATE: MessageShape = single(&[
    (3, Message(&NODE)),
    (4, Message(&BY_COUNT)),
    (5, Message(&GANG)),
    (6, Message(&CONSTRAINT)),
]);

impl GcsAnswer for wire::GetClusterResourceStateReply {
    const SHAPE: &'static MessageShape = &single(&[(1, Message(&STATE))]);
}

const PENDING: MessageShape =
    listed::<wire::PendingInstanceRequest>(Counted::Parts, &[(1, Text), (2, Text)]);
// The reasons in this and the next one quote messages of schedulers, which may be longer than a name.
const FAILED: MessageShape =
    listed::<wire::FailedInstanceRequest>(Counted::Parts, &[(1, Text), (2, Text)]);
const PENDING_POD: MessageShape =
    listed::<wire::PendingInstance>(Counted::Nodes, &[(1, Text), (2, Text), (3, Text)]);
const REPORTED: MessageShape = single(&[
    (3, Message(&PENDING)),
    (4, Message(&BUNDLE)),
    (5, Message(&GANG)),
    (6, Message(&CONSTRAINT)),
    (7, Message(&PENDING_POD)),
    (8, Message(&FAILED)),
]);

impl GcsAnswer for wire::GetClusterStatusReply {
    const SHAPE: &'static MessageShape = &single(&[(1, Message(&REPORTED)), (2, Message(&STATE))]);
}

const TASK_INFO: MessageShape = single(&[
    (2, Text),
    (4, Text),
    (8, Text),
    (13, AMOUNT),
    (25, Text),
    (26, Text),
]);
const TASK_STATES: MessageShape = single(&[(14, Entry(size_of::<(i32, i64)>()))]);
const TASK: MessageShape = listed::<rpc::TaskEvents>(
    Counted::Tasks,
    &[
        (1, Text),
        (3, Message(&TASK_INFO)),
        (4, Message(&TASK_STATES)),
    ],
);
const ACTOR: MessageShape = listed::<rpc::ActorTableData>(Counted::Tasks, &[(1, Text), (19, Text)]);
const JOB_CONFIG: MessageShape = MessageShape {
    size: size_of::<rpc::JobConfig>(),
    counted: None,
    fields: &[(5, Text)],
};
const JOB: MessageShape =
    listed::<rpc::JobTableData>(Counted::Tasks, &[(1, Text), (6, Message(&JOB_CONFIG))]);
const GROUP_BUNDLE: MessageShape = listed::<rpc::Bundle>(Counted::Parts, &[(2, AMOUNT)]);
const GROUP: MessageShape = listed::<rpc::PlacementGroupTableData>(
    Counted::Gangs,
    &[(1, Text), (3, Message(&GROUP_BUNDLE))],
);

impl GcsAnswer for rpc::GetTaskEventsReply {
    const SHAPE: &'static MessageShape = &single(&[(2, Message(&TASK))]);
    const MEMORY: usize = RECORDED_MEMORY;
}

impl GcsAnswer for rpc::GetAllActorInfoReply {
    const SHAPE: &'static MessageShape = &single(&[(2, Message(&ACTOR))]);
}

impl GcsAnswer for rpc::GetAllJobInfoReply {
    const SHAPE: &'static MessageShape = &single(&[(2, Message(&JOB))]);
}

impl GcsAnswer for rpc::GetAllPlacementGroupReply {
    const SHAPE: &'static MessageShape = &single(&[(2, Message(&GROUP))]);
}

/// The text of a report takes no more memory than its bytes, which are bounded.
const PUBLISHED: MessageShape = listed::<rpc::PubMessage>(Counted::Tasks, &[(2, Text)]);

impl GcsAnswer for rpc::GcsSubscriberPollReply {
    const SHAPE: &'static MessageShape = &single(&[(1, Message(&PUBLISHED)), (2, Text)]);
}

impl GcsAnswer for wire::ResizeRayletResourceInstancesReply {
    const SHAPE: &'static MessageShape = &single(&[(1, AMOUNT)]);
}

impl GcsAnswer for wire::ReportAutoscalingStateReply {}
impl GcsAnswer for wire::DrainNodeReply {}
impl GcsAnswer for rpc::DrainNodeReply {}
impl GcsAnswer for rpc::InternalKvGetReply {}
impl GcsAnswer for rpc::InternalKvPutReply {}
impl GcsAnswer for rpc::InternalKvDelReply {}
impl GcsAnswer for rpc::GcsSubscriberCommandBatchReply {}
impl GcsAnswer for rpc::GcsPublishReply {}

/// Checks that an answer of this kind may be decoded.
pub(in crate::gcs) fn check<A: GcsAnswer>(bytes: &[u8]) -> Result<(), Excess> {
    let mut scan = Scan {
        memory: A::MEMORY,
        counts: [0; Counted::COUNT],
    };
    scan.message(bytes, A::SHAPE)
}

struct Scan {
    memory: usize,
    /// The number of each kind that has come, by [`Counted`].
    counts: [usize; Counted::COUNT],
}

impl Scan {
    fn message(&mut self, mut bytes: &[u8], shape: &MessageShape) -> Result<(), Excess> {
        self.take(shape.size)?;
        if let Some(counted) = shape.counted {
            self.count(counted)?;
        }
        let varint = |bytes: &mut &[u8]| {
            prost::encoding::decode_varint(bytes).map_err(|_| Excess::Malformed)
        };
        let mut entries = 0;
        while !bytes.is_empty() {
            let key = varint(&mut bytes)?;
            // The wire types of protobuf: 0 is a varint, 1 eight bytes, 2 a length and as many
            // bytes, 5 four bytes. Groups (3 and 4) are not in proto3, and skipping them would
            // need recursion.
            let length = match key & 7 {
                0 => {
                    varint(&mut bytes)?;
                    continue;
                }
                1 => 8,
                2 => varint(&mut bytes)?,
                5 => 4,
                _ => return Err(Excess::Malformed),
            };
            let length = usize::try_from(length).map_err(|_| Excess::Malformed)?;
            let (content, rest) = bytes.split_at_checked(length).ok_or(Excess::Malformed)?;
            bytes = rest;
            if key & 7 != 2 {
                continue;
            }
            let field = shape.fields.iter().find(|(number, _)| *number == key >> 3);
            match field {
                // The decoder drops fields that it does not know.
                None => {}
                Some((_, Text)) => self.text(content)?,
                Some((_, Texts)) => {
                    self.count(Counted::Parts)?;
                    self.take(2 * size_of::<String>())?;
                    self.text(content)?;
                }
                Some((_, Message(inner))) => self.message(content, inner)?,
                Some((_, Entry(size))) => {
                    entries += 1;
                    if entries > ENTRIES || content.len() > 2 * TEXT {
                        return Err(Excess::Long);
                    }
                    // A node of a B-tree map has capacity for eleven entries, and in the worst
                    // case contains five. The first entry of a map allocates a whole node.
                    let nodes = if entries <= 2 { 11 } else { 3 };
                    self.take(nodes * size + 32 + content.len())?;
                }
            }
        }
        Ok(())
    }

    fn count(&mut self, counted: Counted) -> Result<(), Excess> {
        let count = &mut self.counts[counted as usize];
        *count += 1;
        if *count > counted.most().0 {
            return Err(Excess::Many(counted));
        }
        Ok(())
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

#[cfg(test)]
mod tests {
    use prost::Message as _;

    use super::*;

    fn refused(state: wire::ClusterResourceState) -> Option<Excess> {
        let reply = wire::GetClusterResourceStateReply {
            cluster_resource_state: Some(state),
        };
        check::<wire::GetClusterResourceStateReply>(&reply.encode_to_vec()).err()
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
        let request = gcs::ResourceRequestByCount {
            request: gcs::ResourceRequest {
                resources_bundle: amounts(),
                ..Default::default()
            },
            count: 2_000,
        };
        let bundle = gcs::ResourceRequest {
            resources_bundle: [("CPU".to_owned(), 1.0)].into(),
            ..Default::default()
        };
        let gang = gcs::GangResourceRequest {
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
            pending_gang_resource_requests: vec![gcs::GangResourceRequest::default(); 50_001],
            ..empty()
        };
        assert_eq!(refused(gangs), Some(Excess::Many(Counted::Gangs)));
        let bundles = gcs::GangResourceRequest {
            requests: vec![gcs::ResourceRequest::default(); 400_001],
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
    fn what_was_reported_about_launches_is_bounded_but_for_reasons() {
        let refused = |state: wire::AutoscalingState| {
            let reply = wire::GetClusterStatusReply {
                autoscaling_state: Some(state),
                ..Default::default()
            };
            check::<wire::GetClusterStatusReply>(&reply.encode_to_vec()).err()
        };
        let pods = |ray_node_type_name: &str, details: &str, count| wire::AutoscalingState {
            pending_instances: vec![
                wire::PendingInstance {
                    ray_node_type_name: ray_node_type_name.to_owned(),
                    details: details.to_owned(),
                    ..Default::default()
                };
                count
            ],
            ..Default::default()
        };
        assert_eq!(refused(pods("cpu", &"why ".repeat(2_000), 100)), None);
        let long = "a".repeat(5_000);
        assert_eq!(refused(pods(&long, "", 1)), Some(Excess::Long));
        let many = Excess::Many(Counted::Nodes);
        assert_eq!(refused(pods("", "", 20_001)), Some(many));
    }

    #[test]
    fn bytes_that_are_no_message_are_refused() {
        let check = check::<wire::GetClusterResourceStateReply>;
        for bytes in [
            &[0x0a, 5, 1][..],
            &[0x0b],
            &[0xff; 12],
            &[0x0a, 0xff, 0xff, 0xff, 0x7f],
        ] {
            assert_eq!(check(bytes), Err(Excess::Malformed), "{bytes:?}");
        }
        assert_eq!(check(&[]), Ok(()));
    }
}
