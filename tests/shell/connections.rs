//! The listener under real TLS connections, in this process: protocols, rotation, time limits.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use rayfit::admission::AdmissionLimits;
use rayfit::server::{ConnectionTimeouts, Listener, Phase, Shutdown};
use rayfit::tls::directory::Poller;
use rayfit::tls::{CertificateStore, server_config_for};
use rustls::server::WebPkiClientVerifier;
use rustls::version::{TLS12, TLS13};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::client_support::{Connection, connect, tls, usual};
use crate::process_support::{PATIENCE, soon};
use crate::review_support::{cluster, create};
use crate::tls_support::{mount, self_signed};

struct Running {
    address: SocketAddr,
    shutdown: Arc<Shutdown>,
    store: Arc<CertificateStore>,
    served: tokio::task::JoinHandle<()>,
}

async fn start(times: ConnectionTimeouts, limits: AdmissionLimits) -> Running {
    let store = Arc::new(CertificateStore::default());
    self_signed("localhost").install(&store).unwrap();
    start_with(store, times, limits).await
}

async fn start_with(
    store: Arc<CertificateStore>,
    times: ConnectionTimeouts,
    limits: AdmissionLimits,
) -> Running {
    let mut listener = Listener::bind("127.0.0.1:0".parse().unwrap(), 2000)
        .await
        .unwrap();
    listener.tls =
        Some(server_config_for(store.clone(), WebPkiClientVerifier::no_client_auth()).unwrap());
    listener.times = times;
    let address = listener.address().unwrap();
    let shutdown = Arc::new(Shutdown::default());
    let router = crate::review_support::with(limits).router;
    let served = tokio::spawn(listener.serve(router, shutdown.clone()));
    Running {
        address,
        shutdown,
        store,
        served,
    }
}

/// Time limits that no test reaches, on whatever machine. A test that wants one to be reached shortens it.
const LONG: ConnectionTimeouts = ConnectionTimeouts {
    handshake: PATIENCE,
    head: PATIENCE,
    idle: PATIENCE,
    write: PATIENCE,
};

/// A time limit that a test can wait for.
const SHORT: Duration = Duration::from_millis(300);

/// Enough for reviews to be read on whatever machine.
fn patient() -> AdmissionLimits {
    AdmissionLimits {
        body_read: PATIENCE,
        ..AdmissionLimits::default()
    }
}

fn review() -> String {
    create(&cluster()).to_string()
}

/// Reads until the server closes.
async fn read_to_end(stream: &mut (impl tokio::io::AsyncRead + Unpin)) -> Vec<u8> {
    let mut bytes = Vec::new();
    let _ = soon("the server closes", stream.read_to_end(&mut bytes)).await;
    bytes
}

#[tokio::test]
async fn both_versions_of_tls_are_served() {
    let server = start(LONG, patient()).await;
    for version in [&TLS12, &TLS13] {
        let config = tls(&[version], "http/1.1");
        let mut connection = Connection::open_with(server.address, config).await.unwrap();
        connection.review(&review()).await.unwrap();
    }
}

/// With h2 one connection could hold as much as many, and API servers never ask for it.
#[tokio::test]
async fn a_client_that_speaks_h2_too_is_served_by_http_1_and_one_that_speaks_nothing_else_is_not() {
    let server = start(LONG, patient()).await;
    let mut both = tls(&[&TLS13], "h2").as_ref().clone();
    both.alpn_protocols.push(b"http/1.1".to_vec());
    let mut connection = Connection::open_with(server.address, both.into())
        .await
        .unwrap();
    connection.review(&review()).await.unwrap();
    assert!(connect(server.address, tls(&[&TLS13], "h2")).await.is_err());
    // Nor by a client that does not ask.
    let mut stream = connect(server.address, usual()).await.unwrap();
    stream
        .write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
        .await
        .unwrap();
    let answer = read_to_end(&mut stream).await;
    assert!(!answer.starts_with(b"HTTP/1.1 2"), "{answer:?}");
}

/// Three reviews on one connection, which is idle between them for longer than a head may take. What is longer than that
/// is only virtual; the reviews themselves are sent in real time, for which the limit is long.
#[tokio::test]
async fn an_idle_connection_outlives_the_time_limit_of_heads() {
    let times = ConnectionTimeouts {
        idle: 10 * LONG.head,
        ..LONG
    };
    let server = start(times, patient()).await;
    let mut connection = Connection::open(server.address).await.unwrap();
    for _ in 0..3 {
        connection.review(&review()).await.unwrap();
        tokio::time::pause();
        tokio::time::advance(2 * LONG.head).await;
        tokio::time::resume();
    }
}

#[tokio::test]
async fn a_silent_handshake_is_cut_off() {
    let times = ConnectionTimeouts {
        handshake: SHORT,
        ..LONG
    };
    let server = start(times, patient()).await;
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    assert_eq!(read_to_end(&mut stream).await, b"");
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    stream.write_all(&[22, 3, 1, 2, 0, 1]).await.unwrap();
    assert_eq!(read_to_end(&mut stream).await, b"");
}

#[tokio::test]
async fn a_dripping_head_is_cut_off() {
    let times = ConnectionTimeouts {
        head: SHORT,
        ..LONG
    };
    let server = start(times, patient()).await;
    let stream = connect(server.address, usual()).await.unwrap();
    let (mut reader, mut writer) = tokio::io::split(stream);
    let drip = tokio::spawn(async move {
        // On a busy machine the server may have closed before the first drop.
        let _ = writer.write_all(b"POST /validate HTTP/1.1\r\n").await;
        while writer.write_all(b"x: y\r\n").await.is_ok() {
            let _ = writer.flush().await;
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    });
    read_to_end(&mut reader).await;
    soon("writing fails", drip).await.unwrap();
}

#[tokio::test]
async fn a_body_that_does_not_come_is_given_up() {
    let limits = AdmissionLimits {
        body_read: SHORT,
        ..AdmissionLimits::default()
    };
    let server = start(LONG, limits).await;
    let mut stream = connect(server.address, usual()).await.unwrap();
    let head = "POST /validate HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n\
                content-length: 100\r\n\r\n{";
    stream.write_all(head.as_bytes()).await.unwrap();
    let answer = String::from_utf8(read_to_end(&mut stream).await).unwrap();
    assert!(answer.starts_with("HTTP/1.1 408"), "{answer}");
}

#[tokio::test]
async fn an_endless_head_is_refused() {
    let server = start(LONG, patient()).await;
    let mut stream = connect(server.address, usual()).await.unwrap();
    stream
        .write_all(b"POST /validate HTTP/1.1\r\n")
        .await
        .unwrap();
    let (mut reader, mut writer) = tokio::io::split(stream);
    let flood = tokio::spawn(async move {
        let line = format!("x: {}\r\n", "y".repeat(1000));
        let mut sent = 0;
        while sent < 10_000 && writer.write_all(line.as_bytes()).await.is_ok() {
            sent += 1;
        }
        sent
    });
    let answer = String::from_utf8(read_to_end(&mut reader).await).unwrap();
    assert!(
        answer.is_empty() || answer.starts_with("HTTP/1.1 4"),
        "{answer}"
    );
    assert!(soon("writing fails", flood).await.unwrap() < 10_000);
}

#[tokio::test]
async fn what_is_no_tls_harms_nobody() {
    let server = start(LONG, patient()).await;
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    stream.write_all(b"GET / HTTP/1.1\r\n\r\n").await.unwrap();
    read_to_end(&mut stream).await;
    let mut connection = Connection::open(server.address).await.unwrap();
    connection.review(&review()).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rotations_by_symlink_swap_fail_no_call() {
    let volume = tempfile::tempdir().unwrap();
    let first = self_signed("localhost");
    mount(volume.path(), 0, &first);
    let store = Arc::new(CertificateStore::default());
    poll(volume.path(), &store);
    soon("the first certificate", reaches(&store, 1)).await;
    let server = start_with(store, LONG, patient()).await;
    let stop = Arc::new(AtomicBool::new(false));
    let calls = Arc::new(AtomicU64::new(0));
    let load: Vec<_> = (0..4)
        .map(|worker| tokio::spawn(load(server.address, worker, stop.clone(), calls.clone())))
        .collect();
    for version in 1..=5 {
        let next = self_signed("localhost");
        mount(volume.path(), version, &next);
        soon("the swap", reaches(&server.store, version as u64 + 1)).await;
        let connection = Connection::open(server.address).await.unwrap();
        assert_eq!(connection.leaf, next.der());
        let target = calls.load(Ordering::Relaxed) + 40;
        soon("more calls", async {
            while calls.load(Ordering::Relaxed) < target {
                tokio::task::yield_now().await;
            }
        })
        .await;
    }
    stop.store(true, Ordering::Relaxed);
    for worker in load {
        worker.await.unwrap();
    }
    assert_eq!(server.store.refused(), 0);
}

fn poll(directory: &Path, store: &Arc<CertificateStore>) {
    let poller = Poller::new(directory.to_owned(), store.clone());
    tokio::spawn(poller.run(Duration::from_millis(5)));
}

async fn reaches(store: &CertificateStore, swaps: u64) {
    while store.swapped() < swaps {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

/// Calls without pause; every other worker takes a new connection, and so a handshake, each time.
async fn load(address: SocketAddr, worker: usize, stop: Arc<AtomicBool>, calls: Arc<AtomicU64>) {
    let mut connection = Connection::open(address).await.unwrap();
    while !stop.load(Ordering::Relaxed) {
        if worker.is_multiple_of(2) {
            connection = Connection::open(address).await.unwrap();
        }
        connection.review(&review()).await.unwrap();
        calls.fetch_add(1, Ordering::Relaxed);
    }
}

#[tokio::test]
async fn shedding_asks_every_client_to_reconnect_and_closing_keeps_the_promise() {
    let server = start(LONG, patient()).await;
    let mut connection = Connection::open(server.address).await.unwrap();
    server.shutdown.enter(Phase::Unready);
    assert!(!connection.review(&review()).await.unwrap().closes());
    server.shutdown.enter(Phase::Shedding);
    assert!(connection.review(&review()).await.unwrap().closes());
    // Opened before the door closes, used after.
    let mut late = Connection::open(server.address).await.unwrap();
    server.shutdown.enter(Phase::Closing);
    assert!(late.review(&review()).await.unwrap().closes());
    soon("the listener ends", server.served).await.unwrap();
    assert!(TcpStream::connect(server.address).await.is_err());
}

#[tokio::test]
async fn draining_closes_idle_connections() {
    let server = start(LONG, patient()).await;
    let mut stream = connect(server.address, usual()).await.unwrap();
    server.shutdown.enter(Phase::Draining);
    read_to_end(&mut stream).await;
    soon("the listener ends", server.served).await.unwrap();
}
