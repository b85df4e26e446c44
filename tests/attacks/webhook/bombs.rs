//! Bodies that are small for what they make of themselves.

use rayfit_core::manifests::names::WEBHOOK_MEMORY;

use super::client_support::{Connection, request};
use super::process_support::{Process, soon};
use super::review_support::{bad_cluster, cluster, create, post, server, update};
use super::{ATTACKERS, NEIGHBOUR, all_is_well, object_of, review_from};
use serde_json::{Value, json};

/// As long as a body may be.
const LONGEST: usize = 6_700_000;

/// A review in which `@` stands for as many of `item` as there is room for.
fn bomb(mut object: Value, place: &str, item: &str) -> String {
    *object.pointer_mut(place).unwrap() = json!("@");
    let review = create(&object).to_string();
    let items = (LONGEST - review.len()) / item.len();
    let list = format!("[{}{}]", item.repeat(items - 1), item.trim_end_matches(','));
    review.replace("\"@\"", &list)
}

async fn status_of(source: [u8; 4], process: &Process, path: &str, body: String) -> u16 {
    let mut connection = Connection::open_from(source, process.webhooks)
        .await
        .unwrap();
    let answer = soon("an answer", connection.send(request(path, body))).await;
    // Who is turned away while still sending may see no more than the end of it.
    answer.map_or(429, |answer| answer.status.as_u16())
}

/// Of brackets, wherever lists are looked at.
fn bombs() -> [String; 5] {
    let container = "/spec/headGroupSpec/template/spec/containers";
    [
        ("/spec/workerGroupSpecs", "[[]],"),
        ("/spec/workerGroupSpecs", "{},"),
        ("/spec/headGroupSpec/rayStartParams", "{\"\":0},"),
        (container, "{},"),
        (container, "0,"),
    ]
    .map(|(place, item)| bomb(cluster(), place, item))
}

#[tokio::test(start_paused = true)]
async fn bodies_of_brackets_are_too_much() {
    let server = server();
    for body in bombs() {
        let (status, answer) = server.send(post("/mutate", body)).await;
        assert_eq!(status.as_u16(), 413, "{answer}");
    }
}

/// Several at once. A slow machine may give up waiting for what is said of them.
#[tokio::test]
async fn bodies_of_brackets_fill_no_memory() {
    let process = Process::ready(&[]).await;
    let attacks = bombs()
        .into_iter()
        .zip(ATTACKERS.into_iter().cycle())
        .map(|(body, source)| status_of(source, &process, "/mutate?timeout=30s", body));
    let attacks = futures_util::future::join_all(attacks);
    let (statuses, ()) = tokio::join!(attacks, all_is_well(&process));
    for status in statuses {
        assert!([413, 429, 504].contains(&status), "{status}");
    }
    all_is_well(&process).await;
}

/// A text in which JSON is written counts as text only.
#[tokio::test]
async fn json_in_texts_is_no_way_around() {
    let brackets = format!("'{{\"a\":[{}[]]}}'", "[[]],".repeat(1_200_000));
    for place in [
        "/spec/headGroupSpec/rayStartParams/resources",
        "/metadata/annotations/ray.io~1ippr",
    ] {
        // A process for each of them: however long one takes, no other is read beside it.
        let process = Process::ready(&[]).await;
        let mut object = bad_cluster();
        object["spec"]["headGroupSpec"]["rayStartParams"]["resources"] = "".into();
        *object.pointer_mut(place).unwrap() = brackets.clone().into();
        let body = create(&object).to_string();
        status_of(ATTACKERS[0], &process, "/validate?timeout=30s", body).await;
        all_is_well(&process).await;
        let peak = process.peak_memory();
        assert!(peak < 200 << 20, "{} MiB", peak >> 20);
    }
}

#[tokio::test]
async fn depth_and_repeated_keys_are_answered() {
    let process = Process::ready(&[]).await;
    let deep = "[".repeat(3_000_000) + &"]".repeat(3_000_000);
    let mut object = cluster();
    object["spec"]["headGroupSpec"] = "@".into();
    let body = create(&object).to_string().replace("\"@\"", &deep);
    let path = "/validate?timeout=30s";
    // On a slow machine it may take longer than it may; `tests/shell/hostile.rs` waits for what is then said.
    let status = status_of(ATTACKERS[0], &process, path, body).await;
    assert!([400, 504].contains(&status), "{status}");
    let repeated = format!("{{{}\"a\":1}}", "\"a\":[[]],".repeat(600_000));
    let body = create(&object).to_string().replace("\"@\"", &repeated);
    let status = status_of(ATTACKERS[0], &process, path, body).await;
    assert!([200, 413, 504].contains(&status), "{status}");
    all_is_well(&process).await;
}

/// Each group of them has something to be said about it.
#[tokio::test]
async fn thousands_of_groups_hold_nobody_up() {
    let process = Process::ready(&[]).await;
    let groups = |count: usize| {
        let mut object = bad_cluster();
        let list = (0..count).map(|n| json!({ "groupName": format!("g{}", n / 2) }));
        object["spec"]["workerGroupSpecs"] = list.collect();
        object
    };
    // As many as are judged on the threads that serve, and as many as there can be.
    for count in [2500, 12_000, 130_000] {
        let (new, old) = (groups(count), groups(count - 1));
        let body = update(&new, &old).to_string();
        let attack = status_of(ATTACKERS[0], &process, "/validate?timeout=30s", body);
        let (status, ()) = tokio::join!(attack, async { all_is_well(&process).await });
        assert!([200, 413, 504].contains(&status), "{status}");
    }
    all_is_well(&process).await;
}

/// The largest that an API server can send: what is compared of them is little, and then all.
fn largest() -> [String; 2] {
    let object = object_of(2_900_000);
    [false, true].map(|recreate| {
        let mut new = object.clone();
        if recreate {
            new["spec"]["upgradeStrategy"] = json!({ "type": "Recreate" });
        }
        new["spec"]["workerGroupSpecs"][0]["maxReplicas"] = 5.into();
        update(&new, &object).to_string()
    })
}

/// The bounds are for attackers: what an API server can send passes.
#[tokio::test(start_paused = true)]
async fn the_largest_objects_pass() {
    let server = server();
    for body in largest() {
        let (status, answer) = server.send(post("/validate", body)).await;
        assert_eq!(status.as_u16(), 200, "{answer}");
    }
}

#[tokio::test]
async fn the_largest_objects_fill_no_memory() {
    let process = Process::ready(&[]).await;
    let after = create(&object_of(200_000)).to_string();
    for body in largest() {
        let path = "/validate?timeout=30s";
        let status = status_of(NEIGHBOUR, &process, path, body).await;
        // A slow machine may give up waiting for it, but what is done goes on.
        assert!([200, 504].contains(&status), "{status}");
        // Large ones are reviewed one after the other: once this one is, that one was.
        while review_from(NEIGHBOUR, &process, after.clone()).await == 504 {}
    }
    let peak = process.peak_memory();
    assert!(peak < WEBHOOK_MEMORY / 2, "{} MiB", peak >> 20);
}
