//! Bytes and canonical JSON lead to the same state: with what Ray itself wrote
//! (`tests/parity/wire.jsonl.gz`), and with random messages and our own JSON.

use std::io::{BufRead as _, BufReader};
use std::path::Path;

use base64::Engine as _;
use proptest::collection::{btree_map, vec};
use proptest::prelude::*;
use prost::Message as _;
use rayfit_core::snapshot::gcs::{
    BundleSelector, ClusterResourceConstraint, ClusterResourceState, GangResourceRequest, Label,
    LabelConstraint, LabelSelector, PlacementConstraint, ResourceRequest, ResourceRequestByCount,
};
use serde_json::Value;

use super::ray::rpc::autoscaler as wire;

fn from_bytes(bytes: &[u8]) -> ClusterResourceState {
    wire::ClusterResourceState::decode(bytes).unwrap().into()
}

#[test]
fn what_ray_writes_in_bytes_and_in_json_is_the_same() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/parity/wire.jsonl.gz");
    let file = std::fs::File::open(path).unwrap();
    let mut compared = 0;
    for line in BufReader::new(flate2::read::GzDecoder::new(file)).lines() {
        let case: Value = serde_json::from_str(&line.unwrap()).unwrap();
        let bytes = base64::engine::general_purpose::STANDARD
            .decode(case["bytes"].as_str().unwrap())
            .unwrap();
        let json: ClusterResourceState = serde_json::from_value(case["json"].clone()).unwrap();
        assert_eq!(from_bytes(&bytes), json, "{case}");
        compared += 1;
    }
    assert_eq!(compared, 250);
}

#[test]
fn enum_values_of_a_later_ray_are_unsaid() {
    let node = wire::NodeState {
        status: 99,
        total_resources: [("GPU".to_owned(), 1.0)].into(),
        ..Default::default()
    };
    let state = from_bytes(
        &wire::ClusterResourceState {
            node_states: vec![node],
            ..Default::default()
        }
        .encode_to_vec(),
    );
    let node = &state.node_states[0];
    assert!(!node.is_running());
    assert_eq!(node.total_resources, [("GPU".to_owned(), 1.0)].into());
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        Just(String::new()),
        "[a-zA-Z0-9_./:|-]{1,12}",
        any::<String>()
    ]
}

fn amounts() -> impl Strategy<Value = std::collections::BTreeMap<String, f64>> {
    let amount = prop_oneof![(0..64u8).prop_map(f64::from), -1e300..1e300f64];
    btree_map(text(), amount, 0..3)
}

fn selector() -> impl Strategy<Value = LabelSelector> {
    let constraint =
        (text(), 0..3i32, vec(text(), 0..3)).prop_map(|(key, operator, values)| LabelConstraint {
            label_key: key,
            operator,
            label_values: values,
        });
    vec(constraint, 0..3).prop_map(|label_constraints| LabelSelector { label_constraints })
}

fn label((label_name, label_value): (String, String)) -> Label {
    Label {
        label_name,
        label_value,
    }
}

fn constraint() -> impl Strategy<Value = PlacementConstraint> {
    let named = || proptest::option::of((text(), text()));
    (named(), named()).prop_map(|(apart, together)| PlacementConstraint {
        anti_affinity: apart.map(label),
        affinity: together.map(label),
    })
}

fn request() -> impl Strategy<Value = ResourceRequest> {
    (amounts(), vec(constraint(), 0..2), vec(selector(), 0..3)).prop_map(
        |(resources_bundle, placement_constraints, label_selectors)| ResourceRequest {
            resources_bundle,
            placement_constraints,
            label_selectors,
        },
    )
}

fn counted() -> impl Strategy<Value = Vec<ResourceRequestByCount>> {
    let one = (request(), any::<i64>());
    vec(
        one.prop_map(|(request, count)| ResourceRequestByCount { request, count }),
        0..3,
    )
}

fn gang() -> impl Strategy<Value = GangResourceRequest> {
    let bundles = || vec(request(), 0..3);
    (bundles(), text(), vec(bundles(), 0..2)).prop_map(|(requests, details, selectors)| {
        GangResourceRequest {
            requests,
            details,
            bundle_selectors: selectors
                .into_iter()
                .map(|resource_requests| BundleSelector { resource_requests })
                .collect(),
        }
    })
}

fn node() -> impl Strategy<Value = wire::NodeState> {
    let labels = || btree_map(text(), text(), 0..3);
    let names = (vec(any::<u8>(), 0..30), text(), text());
    let rest = (
        amounts(),
        amounts(),
        labels(),
        labels(),
        0..5i32,
        any::<i64>(),
    );
    (names, rest).prop_map(|((node_id, instance_id, group), rest)| {
        let (available_resources, total_resources, dynamic_labels, labels, status, idle) = rest;
        wire::NodeState {
            node_id,
            instance_id,
            ray_node_type_name: group,
            available_resources,
            total_resources,
            dynamic_labels,
            status,
            idle_duration_ms: idle,
            labels,
        }
    })
}

fn state() -> impl Strategy<Value = wire::ClusterResourceState> {
    let constraints = vec(
        counted().prop_map(|resource_requests| ClusterResourceConstraint { resource_requests }),
        0..2,
    );
    (vec(node(), 0..3), counted(), vec(gang(), 0..2), constraints).prop_map(
        |(node_states, pending_resource_requests, gangs, cluster_resource_constraints)| {
            wire::ClusterResourceState {
                node_states,
                pending_resource_requests,
                pending_gang_resource_requests: gangs,
                cluster_resource_constraints,
            }
        },
    )
}

proptest! {
    #[test]
    fn a_state_survives_being_recorded(sent in state()) {
        let read = from_bytes(&sent.encode_to_vec());
        let recorded = serde_json::to_string(&read).unwrap();
        prop_assert_eq!(serde_json::from_str::<ClusterResourceState>(&recorded).unwrap(), read);
    }

    #[test]
    fn no_bytes_are_too_strange(bytes in vec(any::<u8>(), 0..200)) {
        // Read or refused: never a panic.
        let _ = super::read_state(&bytes);
        let _ = wire::ClusterResourceState::decode(bytes.as_slice()).map(ClusterResourceState::from);
    }

    #[test]
    fn what_is_decoded_was_looked_over_and_nothing_usual_is_refused(sent in state()) {
        let reply = wire::GetClusterResourceStateReply { cluster_resource_state: Some(sent) };
        let bytes = reply.encode_to_vec();
        let checked = super::bounds::check::<wire::GetClusterResourceStateReply>(&bytes);
        prop_assert_eq!(checked, Ok(()));
    }
}
