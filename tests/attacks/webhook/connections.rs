//! Connections that are opened and left.

use futures_util::future::join_all;
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;

use super::client_support::{Connection, connect, connect_from, connect_tls_from, tls, usual};
use super::process_support::Process;
use super::{ATTACKERS, NEIGHBOUR, all_is_well, small_review};

/// Few, so that a test can fill them.
const FEW: [&str; 2] = ["--max-connections", "64"];

#[tokio::test]
async fn connections_without_a_handshake_give_way() {
    let process = Process::ready(&FEW).await;
    let mut held = Vec::new();
    for source in ATTACKERS {
        for _ in 0..100 {
            held.push(connect_from(source, process.webhooks).await.unwrap());
        }
    }
    all_is_well(&process).await;
}

/// Some have sent a review before, some only half of a head.
#[tokio::test]
async fn idle_connections_give_way() {
    let process = Process::ready(&FEW).await;
    let mut used = Vec::new();
    let mut silent = Vec::new();
    for number in 0..60 {
        let source = ATTACKERS[number % 3];
        let mut connection = Connection::open_from(source, process.webhooks)
            .await
            .unwrap();
        connection.review(&small_review()).await.unwrap();
        used.push(connection);
        let mut stream = connect_tls_from(source, process.webhooks).await.unwrap();
        let _ = stream.write_all(b"POST /validate HTT").await;
        silent.push(stream);
    }
    all_is_well(&process).await;
}

/// What the neighbour has open stays open, though it is the oldest: it holds less than others.
#[tokio::test]
async fn who_holds_few_keeps_them() {
    let process = Process::ready(&FEW).await;
    let mut neighbour = Connection::open_from(NEIGHBOUR, process.webhooks)
        .await
        .unwrap();
    neighbour.review(&small_review()).await.unwrap();
    let mut held = Vec::new();
    for _ in 0..200 {
        held.push(
            connect_tls_from(ATTACKERS[0], process.webhooks)
                .await
                .unwrap(),
        );
    }
    neighbour.review(&small_review()).await.unwrap();
    all_is_well(&process).await;
}

/// Every client of one address: the neighbour's newest connection is served all the same.
#[tokio::test]
async fn an_address_that_many_share_is_served() {
    let process = Process::ready(&FEW).await;
    let opened = (0..200).map(|_| connect(process.webhooks, usual()));
    let _held = join_all(opened).await;
    let mut connection = Connection::open(process.webhooks).await.unwrap();
    connection.review(&small_review()).await.unwrap();
    all_is_well(&process).await;
}

#[tokio::test]
async fn what_is_no_http_1_over_tls_takes_no_place() {
    let process = Process::ready(&FEW).await;
    let h2 = tls(&[&rustls::version::TLS13], "h2");
    for _ in 0..100 {
        assert!(connect(process.webhooks, h2.clone()).await.is_err());
    }
    let mut held = Vec::new();
    for _ in 0..100 {
        let mut stream = connect_tls_from(ATTACKERS[1], process.webhooks)
            .await
            .unwrap();
        let _ = stream.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").await;
        held.push(stream);
    }
    all_is_well(&process).await;
}

/// Each head is as long as one may be, and the last line of it never comes.
#[tokio::test]
async fn floods_of_heads_hold_little() {
    let process = Process::ready(&[]).await;
    let line = format!("x: {}\r\n", "y".repeat(1000));
    let mut held = Vec::new();
    for number in 0..300 {
        let source = ATTACKERS[number % 3];
        let mut stream = connect_tls_from(source, process.webhooks).await.unwrap();
        let begin = "POST /validate HTTP/1.1\r\nhost: x\r\n".to_owned();
        let _ = stream
            .write_all((begin + &line.repeat(29)).as_bytes())
            .await;
        held.push(stream);
    }
    let peak = process.peak_memory();
    assert!(peak < 200 << 20, "{} MiB", peak >> 20);
    all_is_well(&process).await;
    // One more line than that, for ever.
    let mut stream = connect_tls_from(ATTACKERS[0], process.webhooks)
        .await
        .unwrap();
    stream
        .write_all(b"POST /validate HTTP/1.1\r\n")
        .await
        .unwrap();
    let mut sent = 0;
    while sent < 10_000 && stream.write_all(line.as_bytes()).await.is_ok() {
        sent += 1;
    }
    assert!(sent < 10_000, "everything was taken");
    all_is_well(&process).await;
}

/// Whatever holds the webhook port, probes have another thread.
#[tokio::test]
async fn a_full_webhook_port_is_not_the_probes_matter() {
    let process = Process::ready(&["--max-connections", "1"]).await;
    let _held: Vec<TcpStream> =
        join_all((0..50).map(|_| async { TcpStream::connect(process.webhooks).await.unwrap() }))
            .await;
    super::probes_are_answered(&process).await;
}
