//! Bodies that are slow, large, or have no end.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::client_support::{Connection, connect_tls_from, request};
use super::process_support::{Process, soon};
use super::review_support::update;
use super::{ATTACKERS, NEIGHBOUR, all_is_well, begun, object_of, review_from, small_review};
use futures_util::future::join_all;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

/// Also where the neighbour has the attackers' address, as behind address translation.
#[tokio::test]
async fn slow_bodies_take_nobodys_place() {
    let process = Process::ready(&[]).await;
    let mut slow = Vec::new();
    for source in [NEIGHBOUR, ATTACKERS[0]] {
        for _ in 0..6 {
            let some = (0..50).map(|_| begun(source, &process, 1000, b"{"));
            slow.extend(join_all(some).await);
        }
    }
    all_is_well(&process).await;
}

/// Large objects need memory while they come, and find it.
#[tokio::test]
async fn memory_held_by_unfinished_bodies_is_given_to_who_holds_less() {
    let process = Process::ready(&[]).await;
    let part = vec![b' '; 6 << 20];
    let attacks = (0..18).map(|number| begun(ATTACKERS[number % 3], &process, 6_500_000, &part));
    let _held = join_all(attacks).await;
    let object = object_of(700_000);
    let mut changed = object.clone();
    changed["spec"]["workerGroupSpecs"][0]["maxReplicas"] = 5.into();
    let large = update(&changed, &object).to_string();
    assert!(large.len() > 1_300_000);
    assert_eq!(review_from(NEIGHBOUR, &process, large).await, 200);
    all_is_well(&process).await;
}

/// One source's large reviews wait for their turn beside those of others.
#[tokio::test]
async fn a_queue_of_large_reviews_is_the_queue_of_its_source() {
    let process = Process::ready(&[]).await;
    let large = super::review_support::create(&object_of(300_000)).to_string();
    let checked = Arc::new(AtomicUsize::new(0));
    let flood = (0..40).map(|_| {
        let (address, large, checked) = (process.webhooks, large.clone(), Arc::clone(&checked));
        tokio::spawn(async move {
            let mut connection = Connection::open_from(ATTACKERS[0], address).await.unwrap();
            let request = request("/validate?timeout=30s", large);
            // Who is turned away while still sending may see no more than the end of it.
            let answer = connection.send(request).await;
            let status = answer.map_or(0, |answer| answer.status.as_u16());
            checked.fetch_add(usize::from(status == 200), Ordering::Relaxed);
            status
        })
    });
    let flood: Vec<_> = flood.collect();
    assert_eq!(review_from(NEIGHBOUR, &process, large).await, 200);
    // Where all had one queue, it would be behind those 31 that came before it.
    let before = checked.load(Ordering::Relaxed);
    assert!(before < 16, "{before} of the flood were checked before");
    all_is_well(&process).await;
    for answer in soon("the flood's answers", join_all(flood)).await {
        let status = answer.unwrap();
        assert!([0, 200, 429, 504].contains(&status), "{status}");
    }
}

#[tokio::test]
async fn bodies_without_an_end_are_cut_off() {
    let process = Process::ready(&[]).await;
    for source in ATTACKERS {
        let mut stream = connect_tls_from(source, process.webhooks).await.unwrap();
        let head = "POST /validate HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n\
                    transfer-encoding: chunked\r\n\r\n";
        stream.write_all(head.as_bytes()).await.unwrap();
        let chunk = format!("10000\r\n{}\r\n", " ".repeat(0x10000));
        let mut sent = 0;
        soon("the end of patience", async {
            while sent < 2000 && stream.write_all(chunk.as_bytes()).await.is_ok() {
                sent += 1;
            }
        })
        .await;
        assert!(sent < 2000, "everything was taken");
        let mut answer = Vec::new();
        let _ = soon("its end", stream.read_to_end(&mut answer)).await;
    }
    all_is_well(&process).await;
}

#[tokio::test]
async fn bodies_that_stop_half_way_hold_nothing_for_long() {
    let process = Process::ready(&[]).await;
    for _ in 0..50 {
        drop(begun(ATTACKERS[0], &process, 5_000_000, &vec![b' '; 2 << 20]).await);
    }
    let status = review_from(ATTACKERS[0], &process, small_review()).await;
    assert_eq!(status, 200);
    all_is_well(&process).await;
}
