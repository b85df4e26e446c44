//! The client of the GCS against a played one: what is sent and read, and what happens when the
//! GCS is slow, away, somebody else, or speaks nonsense.

use std::collections::BTreeSet;
use std::time::Duration;

use rayfit_core::snapshot::NodeId;
use rayfit_core::snapshot::autoscaling_state::{AutoscalingState, PendingRequest};
use rayfit_core::snapshot::gcs::{ClusterResourceState, NodeStatus};

use crate::play_gcs::{Place, Played, PlayedGcs, messages, rpc};
use crate::process_support::PATIENCE;
use rayfit::controller::clock::Clock;
use rayfit::controller::head::memory_watch::fill_once;
use rayfit::gcs::{
    Address, Call, CallError, Client, DrainCall, Endpoint, GcsFault, GcsLimits, Material,
    Subscription,
};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tonic::Code;

const SHORT: GcsLimits = GcsLimits {
    deadline: Duration::from_millis(300),
    answer: 64 << 10,
};

/// Who asks for as long as it takes.
const PATIENT: GcsLimits = GcsLimits {
    deadline: PATIENCE,
    answer: 16 << 20,
};

fn client(address: Address, limits: GcsLimits) -> Client {
    Client::new(Endpoint::plain(address), limits)
}

fn node_id(byte: u8) -> NodeId {
    NodeId::from([byte; 28])
}

fn with_one_node() -> Played {
    let node = messages::NodeState {
        node_id: node_id(7).as_bytes().to_vec(),
        instance_id: "demo-w-1".to_owned(),
        total_resources: [("CPU".to_owned(), 2.0), ("memory".to_owned(), 1e9)].into(),
        status: messages::NodeStatus::Idle.into(),
        idle_duration_ms: 1500,
        ..Default::default()
    };
    Played {
        state: messages::ClusterResourceState {
            node_states: vec![node],
            pending_resource_requests: vec![messages::ResourceRequestByCount {
                request: Some(messages::ResourceRequest {
                    resources_bundle: [("CPU".to_owned(), 0.5)].into(),
                    label_selectors: vec![rpc::LabelSelector::default()],
                    ..Default::default()
                }),
                count: 12,
            }],
            ..Default::default()
        },
        ..Played::default()
    }
}

fn failing(code: Code, message: &str, details: &str) -> Played {
    Played {
        failure: Some((code, message.to_owned(), details.to_owned())),
        ..Played::default()
    }
}

/// Asks for the state until there is an answer.
async fn until_answered(client: &Client) -> ClusterResourceState {
    loop {
        match client.cluster_resource_state().await {
            Ok(state) => return state,
            Err(error) => match error.fault {
                // Asked too soon: only the client itself knows that.
                GcsFault::BackingOff(_) => tokio::time::sleep(Duration::from_millis(5)).await,
                GcsFault::Unreachable(_) | GcsFault::Deadline(_) => {}
                other => panic!("{other}"),
            },
        }
    }
}

async fn fault_of(client: &Client) -> GcsFault {
    client.cluster_resource_state().await.unwrap_err().fault
}

#[tokio::test]
async fn reads_the_state() {
    let gcs = PlayedGcs::start(with_one_node()).await;
    let client = client(gcs.address(), PATIENT);
    let state = client.cluster_resource_state().await.unwrap();
    let [node] = state.node_states.as_slice() else {
        panic!("{state:?}");
    };
    assert_eq!(node.node_id, node_id(7).to_string());
    assert_eq!(node.status, NodeStatus::Idle);
    assert_eq!(node.total_resources["CPU"].to_string(), "2");
    assert_eq!(state.pending_resource_requests[0].count, 12);
    assert_eq!(
        state.pending_resource_requests[0]
            .request
            .label_selectors
            .len(),
        1
    );
    client.cluster_resource_state().await.unwrap();
    let played = gcs.played();
    assert_eq!(played.connections, 1, "one connection serves every call");
    let forbidden = |name: &&String| *name == "ray_cluster_id" || *name == "authorization";
    assert_eq!(played.headers.iter().find(forbidden), None);
}

#[tokio::test]
async fn sends_what_is_asked() {
    let gcs = PlayedGcs::start(with_one_node()).await;
    let client = client(gcs.address(), PATIENT);
    let node = node_id(7);

    let drained = client.drain(node, "idle for 60 s", None).await.unwrap();
    assert_eq!(drained, DrainCall::Accepted);
    client
        .drain(node, "above maxReplicas", Some(1234))
        .await
        .unwrap();
    client.stop_node(node).await.unwrap();
    let totals = client.resize_raylet(node, Some(2500), None).await.unwrap();
    client
        .report(AutoscalingState {
            version: 1_700_000_000_000,
            pending_requests: vec![PendingRequest {
                group: "cpu".to_owned(),
                count: 3,
                since: 1_700_000_000,
            }],
            ..AutoscalingState::default()
        })
        .await
        .unwrap();

    let expected = [("CPU".to_owned(), 2.5), ("memory".to_owned(), 1e9)];
    assert_eq!(totals, expected.into());
    let played = gcs.played();
    let reasons: Vec<_> = played
        .drains
        .iter()
        .map(|drain| {
            (
                drain.node_id.as_slice() == node.as_bytes(),
                drain.reason,
                drain.reason_message.as_str(),
                drain.deadline_timestamp_ms,
            )
        })
        .collect();
    assert_eq!(
        reasons,
        [
            (true, 1, "idle for 60 s", 0),
            (true, 2, "above maxReplicas", 1234)
        ]
    );
    assert_eq!(played.stopped, [node.as_bytes().to_vec()]);
    assert_eq!(
        played.resizes[0].resources,
        [("CPU".to_owned(), 2.5)].into()
    );
    let [report] = played.reports.as_slice() else {
        panic!("{:?}", played.reports);
    };
    assert_eq!(report.autoscaler_state_version, 1_700_000_000_000);
    assert_eq!(
        report.pending_instance_requests[0].ray_node_type_name,
        "cpu"
    );
    assert_eq!(report.pending_instance_requests[0].count, 3);
}

#[tokio::test]
async fn a_rejected_drain_is_an_answer() {
    let busy = "The node to be idle terminated is no longer idle.";
    let gcs = PlayedGcs::start(Played {
        rejection: Some(busy.to_owned()),
        ..Played::default()
    })
    .await;
    let client = client(gcs.address(), PATIENT);
    let drained = client.drain(node_id(1), "idle", None).await.unwrap();
    assert_eq!(drained, DrainCall::Rejected(busy.to_owned()));
}

#[tokio::test]
async fn keys_are_written_over_and_read() {
    let gcs = PlayedGcs::start(Played::default()).await;
    let client = client(gcs.address(), PATIENT);
    assert_eq!(client.kv_get("", "__autoscaling_error").await, Ok(None));
    crate::gcs_contract::keys_are_kept(&client).await;
    let elsewhere = client.kv_get("__autoscaler", "__autoscaling_error").await;
    assert_eq!(elsewhere, Ok(None));
}

#[tokio::test]
async fn lines_for_drivers_are_given_to_the_gcs() {
    let gcs = PlayedGcs::start(Played::default()).await;
    let client = client(gcs.address(), PATIENT);
    crate::gcs_contract::lines_are_taken(&client).await;
    assert_eq!(gcs.played().printed, ["{}", "a line"]);
}

#[tokio::test]
async fn a_mute_gcs_costs_a_deadline() {
    let gcs = PlayedGcs::start(Played {
        is_mute: true,
        ..Played::default()
    })
    .await;
    let client = client(gcs.address(), SHORT);
    assert_eq!(fault_of(&client).await, GcsFault::Deadline(SHORT.deadline));
    gcs.played().is_mute = false;
    until_answered(&client.with_deadline(PATIENCE)).await;
}

#[tokio::test]
async fn a_connection_that_leads_nowhere_is_given_up() {
    let at = Place::free();
    let listener = at.listener();
    let client = client(Address::new("127.0.0.1", at.address().port()), SHORT);
    let (hole, fault) = tokio::join!(listener.accept(), fault_of(&client));
    assert_eq!(fault, GcsFault::Deadline(SHORT.deadline));
    drop(listener);
    let gcs = PlayedGcs::again(at, with_one_node(), None).await;
    let state = until_answered(&client.with_deadline(PATIENCE)).await;
    assert_eq!(state.node_states.len(), 1);
    drop((hole, gcs));
}

#[tokio::test]
async fn a_restart_is_survived() {
    let gcs = PlayedGcs::start(with_one_node()).await;
    let client = client(gcs.address(), PATIENT);
    client.cluster_resource_state().await.unwrap();

    let at = gcs.kill().await;
    let error = client.cluster_resource_state().await.unwrap_err();
    assert!(matches!(error.fault, GcsFault::Unreachable(_)), "{error}");
    assert_eq!(error.call, Call::ClusterState);
    let address = at.address().to_string();
    assert!(error.to_string().contains(&address), "{error}");

    let gcs = PlayedGcs::again(at, with_one_node(), None).await;
    assert_eq!(until_answered(&client).await.node_states.len(), 1);
    assert_eq!(gcs.played().connections, 1);
}

#[tokio::test]
async fn a_restart_between_calls_goes_unnoticed() {
    let gcs = PlayedGcs::start(with_one_node()).await;
    let client = client(gcs.address(), PATIENT);
    client.cluster_resource_state().await.unwrap();
    let at = gcs.kill().await;
    let gcs = PlayedGcs::again(at, with_one_node(), None).await;
    // The client may learn only by this call that its connection is gone, but then no pause
    // keeps it from the next.
    if client.cluster_resource_state().await.is_err() {
        client.cluster_resource_state().await.unwrap();
    }
    assert_eq!(gcs.played().connections, 1);
}

#[tokio::test]
async fn a_gcs_that_is_away_is_not_pestered() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let at = listener.local_addr().unwrap();
    let counting = tokio::spawn(async move {
        let mut attempts = 0;
        // Accepts and hangs up, until a client says goodbye.
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut first = [0; 3];
            let _ = stream.read_exact(&mut first).await;
            if &first == b"BYE" {
                return attempts;
            }
            attempts += 1;
        }
    });
    let client = client(Address::new("127.0.0.1", at.port()), PATIENT);
    let mut faults = Vec::new();
    for _ in 0..50 {
        faults.push(fault_of(&client).await);
    }
    let mut bye = tokio::net::TcpStream::connect(at).await.unwrap();
    bye.write_all(b"BYE").await.unwrap();
    let attempts = counting.await.unwrap();
    let tried = faults
        .iter()
        .filter(|fault| matches!(fault, GcsFault::Unreachable(_)))
        .count();
    let held_back = faults
        .iter()
        .filter(|fault| matches!(fault, GcsFault::BackingOff(_)))
        .count();
    assert_eq!(tried + held_back, 50, "{faults:?}");
    assert!(attempts < 10, "{attempts} connections for 50 calls");
}

#[tokio::test]
async fn what_is_no_gcs_is_unreachable() {
    for answer in [
        "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n".as_bytes(),
        &[0xff; 4096],
        b"",
    ] {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let client = client(Address::new("127.0.0.1", port), PATIENT);
        let server = async {
            let (mut stream, _) = listener.accept().await.unwrap();
            stream.write_all(answer).await.unwrap();
        };
        let ((), fault) = tokio::join!(server, fault_of(&client));
        assert!(matches!(fault, GcsFault::Unreachable(_)), "{fault}");
    }
}

#[tokio::test]
async fn an_answer_that_is_too_large_is_refused() {
    let mut played = with_one_node();
    let node = played.state.node_states[0].clone();
    played.state.node_states = vec![node; 5000];
    let gcs = PlayedGcs::start(played).await;
    let client = client(
        gcs.address(),
        GcsLimits {
            answer: SHORT.answer,
            ..PATIENT
        },
    );
    let fault = fault_of(&client).await;
    assert!(
        matches!(&fault, GcsFault::TooLarge(text) if text.contains("65536")),
        "{fault}"
    );
    gcs.played().state.node_states.truncate(1);
    client.cluster_resource_state().await.unwrap();
}

#[tokio::test]
async fn failures_are_distinguished() {
    for (code, message, details, expected) in [
        (
            Code::Aborted,
            "NotFound",
            "Raylet 07 is not alive.",
            GcsFault::NotFound("NotFound: Raylet 07 is not alive.".to_owned()),
        ),
        (
            Code::Aborted,
            "InvalidArgument",
            "",
            GcsFault::InvalidArgument("InvalidArgument".to_owned()),
        ),
        (
            Code::Aborted,
            "Invalid",
            "x",
            GcsFault::InvalidArgument("Invalid: x".to_owned()),
        ),
        (
            Code::Aborted,
            "GcsPassive",
            "GCS server is in passive (read-only) mode.",
            GcsFault::Passive,
        ),
        (
            Code::Aborted,
            "IOError",
            "disk",
            GcsFault::Other("IOError: disk".to_owned()),
        ),
        (
            Code::Unimplemented,
            "",
            "",
            GcsFault::Unsupported(Code::Unimplemented.to_string()),
        ),
        (
            Code::Unavailable,
            "going",
            "",
            GcsFault::Unreachable("going".to_owned()),
        ),
    ] {
        let gcs = PlayedGcs::start(failing(code, message, details)).await;
        let client = client(gcs.address(), PATIENT);
        assert_eq!(fault_of(&client).await, expected);
    }
}

#[tokio::test]
async fn a_token_is_shown_where_it_is_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("token");
    let gcs = PlayedGcs::start(Played {
        token: Some("right".to_owned()),
        ..with_one_node()
    })
    .await;
    let without = client(gcs.address(), PATIENT);
    let fault = fault_of(&without).await;
    assert!(matches!(fault, GcsFault::Unauthenticated(_)), "{fault}");

    let with = Client::new(
        Endpoint {
            token: Some(Material::File(file.clone())),
            ..Endpoint::plain(gcs.address())
        },
        PATIENT,
    );
    let fault = fault_of(&with).await;
    assert!(matches!(fault, GcsFault::Credentials(_)), "{fault}");
    std::fs::write(&file, "wrong-s3cret\n").unwrap();
    let error = with.cluster_resource_state().await.unwrap_err();
    assert!(
        matches!(error.fault, GcsFault::Unauthenticated(_)),
        "{error}"
    );
    let shown = format!("{error} {error:?} {:?}", with.endpoint);
    assert!(!shown.contains("s3cret"), "{shown}");
    // The token in the file is replaced: no new client is needed.
    std::fs::write(&file, "right\n").unwrap();
    with.cluster_resource_state().await.unwrap();
}

#[tokio::test]
async fn clones_share_a_connection() {
    let gcs = PlayedGcs::start(with_one_node()).await;
    let client = client(gcs.address(), PATIENT);
    let calls = (0..20).map(|_| {
        let client = client.clone();
        async move { client.cluster_resource_state().await.map(|_| ()) }
    });
    let answers: Vec<Result<(), CallError>> = futures_util::future::join_all(calls).await;
    assert!(answers.iter().all(Result::is_ok), "{answers:?}");
    assert_eq!(gcs.played().connections, 1);
}

#[tokio::test]
async fn reports_of_the_wanted_nodes_arrive_once_each() {
    let gcs = PlayedGcs::start(Played::default()).await;
    let client = client(gcs.address(), PATIENT);
    let mut subscription = Subscription::new(|| 9);
    let [one, two] = [node_id(1), node_id(2)];
    let publish = |node: NodeId, used| {
        let now = 1_768_392_000.0;
        gcs.played()
            .publish_memory(&node.to_string(), used, 1 << 30, now);
    };
    client
        .subscribe(&mut subscription, &[one].into())
        .await
        .unwrap();
    publish(two, 5);
    publish(one, 7);
    publish(one, 8);
    let mut heard = async |longest| {
        let reports = client.reports(&mut subscription, longest).await.unwrap();
        let used = |reports: Vec<rayfit::gcs::MemoryReport>| {
            let used = reports.into_iter().map(|report| (report.node, report.used));
            used.collect::<Vec<_>>()
        };
        reports.map(used)
    };
    let long = Duration::from_mins(1);
    assert_eq!(heard(long).await, Some(vec![(one, 7), (one, 8)]));
    assert_eq!(heard(Duration::from_millis(50)).await, None);
    publish(one, 9);
    assert_eq!(heard(long).await, Some(vec![(one, 9)]));
    client
        .subscribe(&mut subscription, &[two].into())
        .await
        .unwrap();
    publish(one, 10);
    publish(two, 11);
    let reports = client.reports(&mut subscription, long).await.unwrap();
    assert_eq!(reports.unwrap()[0].node, two);
    // That nothing was to be said is no fault of the connection.
    assert!(client.cluster_resource_state().await.is_ok());
    assert_eq!(gcs.played().connections, 1);
}

#[tokio::test]
async fn who_looks_once_is_told_how_much_memory_is_in_use() {
    let mut played = with_one_node();
    let node = &mut played.state.node_states[0];
    node.status = messages::NodeStatus::Running.into();
    node.ray_node_type_name = "cpu".to_owned();
    played.publish_memory(&node_id(7).to_string(), 900, 1000, 1.0);
    let gcs = PlayedGcs::start(played).await;
    let client = client(gcs.address(), PATIENT);
    let mut state = client.cluster_resource_state().await.unwrap();
    let groups = ["cpu".to_owned()].into();
    fill_once(&client, &groups, &mut state, &Clock::default()).await;
    let told = state.node_states[0].memory_in_use.unwrap();
    assert_eq!(told.bytes, 900);
    let subscribed: Vec<_> = gcs.played().subscribed.values().cloned().collect();
    assert_eq!(subscribed, [BTreeSet::new()], "nothing is kept for it");
}
