//! Bodies that are small for what they make of themselves.

use super::client_support::{Connection, request};
use super::process_support::{Process, soon};
use super::review_support::{bad_cluster, cluster, create, update};
use super::{ATTACKERS, NEIGHBOUR, all_is_well, object_of, review_from};
use rayfit::manifests::names::WEBHOOK_MEMORY;
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

/// Several at once, to both webhooks, wherever lists are looked at.
#[tokio::test]
async fn bodies_of_brackets_fill_no_memory() {
    let process = Process::ready(&[]).await;
    let container = "/spec/headGroupSpec/template/spec/containers";
    let attacks = [
        ("/spec/workerGroupSpecs", "[[]],"),
        ("/spec/workerGroupSpecs", "{},"),
        ("/spec/headGroupSpec/rayStartParams", "{\"\":0},"),
        (container, "{},"),
        (container, "0,"),
    ];
    let bodies: Vec<_> = attacks
        .into_iter()
        .zip(ATTACKERS.into_iter().cycle())
        .map(|((place, item), source)| {
            let body = bomb(cluster(), place, item);
            status_of(source, &process, "/mutate?timeout=30s", body)
        })
        .collect();
    let (statuses, ()) = tokio::join!(futures_util::future::join_all(bodies), async {
        all_is_well(&process).await;
    });
    assert!(statuses.contains(&413), "{statuses:?}");
    for status in statuses {
        assert!([413, 429, 504].contains(&status), "{status}");
    }
    all_is_well(&process).await;
    eprintln!("peak memory: {} MiB", process.peak_memory() >> 20);
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
    assert_eq!(status_of(ATTACKERS[0], &process, path, body).await, 400);
    let repeated = format!("{{{}\"a\":1}}", "\"a\":[[]],".repeat(600_000));
    let body = create(&object).to_string().replace("\"@\"", &repeated);
    let status = status_of(ATTACKERS[0], &process, path, body).await;
    assert!([200, 413].contains(&status), "{status}");
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

/// The bounds are for attackers: what an API server can send passes.
#[tokio::test]
async fn the_largest_objects_pass() {
    let process = Process::ready(&[]).await;
    let object = object_of(2_900_000);
    for recreate in [false, true] {
        let mut new = object.clone();
        if recreate {
            // Then all of both objects is compared.
            new["spec"]["upgradeStrategy"] = json!({ "type": "Recreate" });
        }
        new["spec"]["workerGroupSpecs"][0]["maxReplicas"] = 5.into();
        let body = update(&new, &object).to_string();
        assert_eq!(review_from(NEIGHBOUR, &process, body).await, 200);
    }
    let peak = process.peak_memory();
    eprintln!("peak memory: {} MiB", peak >> 20);
    assert!(peak < WEBHOOK_MEMORY);
}
