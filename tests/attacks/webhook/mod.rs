//! The webhooks under attack: by whoever can reach their ports, which with a network policy is
//! nobody but API servers, and without one every pod. The neighbour is an API server with reviews of
//! others; it calls from an address of its own, unless the test says otherwise.

mod bodies;
mod bombs;
mod connections;
mod logs;
mod probes;

use rayfit_core::manifests::names::WEBHOOK_MEMORY;

use crate::{client_support, process_support, review_support};
use client_support::{Connection, get, request};
use process_support::{Process, soon};
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt as _;

/// Addresses of this machine, for several clients.
const NEIGHBOUR: [u8; 4] = [127, 0, 0, 2];
const ATTACKERS: [[u8; 4]; 3] = [[127, 0, 0, 66], [127, 0, 0, 67], [127, 0, 0, 68]];

/// A review as there are many.
fn small_review() -> String {
    review_support::create(&review_support::cluster()).to_string()
}

/// A RayCluster with so many groups, each with the environment that teams write, that it has about
/// `bytes`.
fn object_of(bytes: usize) -> Value {
    let mut object = review_support::cluster();
    let mut group = object["spec"]["workerGroupSpecs"][0].clone();
    let variable = json!({ "name": "A_VARIABLE_OF_A_TEAM", "value": "with-some-value-of-theirs" });
    group["template"]["spec"]["containers"][0]["env"] = vec![variable; 12].into();
    let each = group.to_string().len();
    let groups = (0..bytes / each).map(|number| {
        let mut group = group.clone();
        group["groupName"] = format!("group-{number}").into();
        group
    });
    object["spec"]["workerGroupSpecs"] = groups.collect();
    object
}

/// The status of one review of the neighbour's, over a connection of its own.
async fn review_from(source: [u8; 4], process: &Process, review: String) -> u16 {
    let answer = soon("the neighbour's answer", async {
        let mut connection = Connection::open_from(source, process.webhooks)
            .await
            .unwrap();
        let request = request("/validate?timeout=30s", review);
        connection.send(request).await.unwrap()
    })
    .await;
    answer.status.as_u16()
}

/// The neighbour is served as if it was alone, and probes are answered.
async fn all_is_well(process: &Process) {
    for _ in 0..3 {
        let status = review_from(NEIGHBOUR, process, small_review()).await;
        assert_eq!(status, 200);
    }
    probes_are_answered(process).await;
    let peak = process.peak_memory();
    assert!(peak < WEBHOOK_MEMORY / 2, "{} MiB", peak >> 20);
}

async fn probes_are_answered(process: &Process) {
    for (path, text) in [("/livez", "alive\n"), ("/readyz", "ready\n")] {
        let answer = soon("a probe", get(process.health, path)).await.unwrap();
        assert_eq!(answer.body, text);
    }
}

/// The head of a review of so many bytes.
fn head(length: usize) -> String {
    format!(
        "POST /validate?timeout=30s HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n\
         content-length: {length}\r\n\r\n"
    )
}

/// A connection on which a review has begun, of which no more comes than this.
async fn begun(source: [u8; 4], process: &Process, length: usize, sent: &[u8]) -> impl Sized {
    let connecting = client_support::connect_tls_from(source, process.webhooks);
    let mut stream = soon("a connection of an attacker", connecting)
        .await
        .unwrap();
    stream.write_all(head(length).as_bytes()).await.unwrap();
    // It may be cut off meanwhile.
    let _ = stream.write_all(sent).await;
    let _ = stream.flush().await;
    stream
}
