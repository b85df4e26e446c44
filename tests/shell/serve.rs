//! The real process: start, readiness, many connections, logs, stopping under load.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use rustix::process::Signal;
use serde_json::Value;
use tokio::process::Command;

use crate::client_support::{Connection, connect, get, request, usual};
use crate::monitoring_support::{asked, expressions, scraped};
use crate::process_support::{Process, soon};
use crate::review_support::{SECRET, bad_cluster, cluster, create};
use crate::tls_support::{expired, mount, self_signed};

fn review() -> String {
    create(&cluster()).to_string()
}

#[tokio::test]
async fn it_is_alive_at_once_and_ready_with_a_certificate_that_holds() {
    let process = Process::start(&[]).await;
    let health = process.health;
    assert_eq!(get(health, "/livez").await.unwrap().body, "alive\n");
    process.until_not_ready("no certificate yet").await;
    mount(process.volume.path(), 0, &self_signed("localhost"));
    process.until_ready(true).await;
    let mut connection = Connection::open(process.webhooks).await.unwrap();
    connection.review(&review()).await.unwrap();
    mount(process.volume.path(), 1, &expired());
    process.until_not_ready("expired").await;
    mount(process.volume.path(), 2, &self_signed("localhost"));
    process.until_ready(true).await;
    connection.review(&review()).await.unwrap();
}

#[tokio::test]
async fn metrics_tell_what_was_done() {
    let process = Process::ready(&["--rule", "RF105=audit"]).await;
    let mut connection = Connection::open(process.webhooks).await.unwrap();
    connection
        .review(&create(&bad_cluster()).to_string())
        .await
        .unwrap();
    let text = get(process.health, "/metrics").await.unwrap().body;
    for series in [
        "rayfit_findings_total{rule=\"RF105\",mode=\"audit\"} 1",
        "rayfit_admission_duration_seconds_bucket{le=\"0.0001\",webhook=\"validate\"}",
        "rayfit_admission_requests_total{webhook=\"validate\",kind=\"RayCluster\",operation=\"CREATE\"",
        "rayfit_connections_open 1",
        "rayfit_certificate_not_after_timestamp_seconds ",
        "rayfit_certificate_reloads_total 1",
        "rayfit_build_info{version=",
        "rayfit_admission_in_flight 0",
        "rayfit_admission_overload_total 0",
        "rayfit_admission_panics_total 0",
    ] {
        assert!(text.contains(series), "no {series} in\n{text}");
    }
    assert!(text.ends_with("# EOF\n"));
}

#[tokio::test]
async fn denials_are_logged_without_the_object() {
    let mut process = Process::ready(&["--log", "debug", "--shutdown-delay", "0"]).await;
    let mut connection = Connection::open(process.webhooks).await.unwrap();
    let denied = connection
        .review(&create(&bad_cluster()).to_string())
        .await
        .unwrap();
    assert!(denied.body.contains("\"allowed\":false"), "{}", denied.body);
    let broken = review().replace("RayCluster\"", "RayCluster\",,");
    let answer = connection.send(request("/validate", broken)).await.unwrap();
    assert_eq!(answer.status, 400);
    drop(connection);
    process.signal(Signal::TERM);
    assert_eq!(process.exit_code().await, Some(0));
    let mut lines = Vec::new();
    while let Some(line) = process.log.next_line().await {
        assert!(
            !line.contains(SECRET) && !line.contains("rayproject/ray"),
            "{line}"
        );
        lines.push(serde_json::from_str::<Value>(&line).unwrap());
    }
    let line = lines
        .iter()
        .find(|line| line["message"] == "denied")
        .unwrap();
    assert_eq!(line["object"], "ml/demo");
    assert_eq!(line["kind"], "RayCluster");
    assert_eq!(line["uid"], "0c6d5a3e-1");
    assert!(line["rules"].as_str().unwrap().contains("RF105"), "{line}");
    assert!(lines.iter().any(|line| line["outcome"] == "bad_request"));
}

#[tokio::test]
async fn hundreds_of_open_connections_are_served() {
    let process = Process::ready(&[]).await;
    let mut open = Vec::new();
    for _ in 0..300 {
        open.push(Connection::open(process.webhooks).await.unwrap());
    }
    let text = get(process.health, "/metrics").await.unwrap().body;
    assert!(text.contains("rayfit_connections_open 300"), "{text}");
    for connection in &mut open {
        connection.review(&review()).await.unwrap();
    }
}

/// Keeps one connection as an API server does: calls without pause, reconnects when told to, but
/// only while the Service still sends connections here, that is while the process is ready.
async fn call_until_sent_away(
    address: SocketAddr,
    in_service: Arc<AtomicBool>,
    calls: Arc<AtomicU64>,
) {
    loop {
        let mut connection = Connection::open(address).await.unwrap();
        loop {
            let answer = connection.review(&review()).await.expect("a failed call");
            calls.fetch_add(1, Ordering::Relaxed);
            if answer.closes() {
                break;
            }
        }
        if !in_service.load(Ordering::Acquire) {
            return;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stopping_under_load_fails_no_call() {
    // Long enough for the clients to hear of it before the listener closes.
    let mut process = Process::ready(&["--shutdown-delay", "10"]).await;
    let in_service = Arc::new(AtomicBool::new(true));
    let calls = Arc::new(AtomicU64::new(0));
    let workers: Vec<_> = (0..8)
        .map(|_| {
            let (in_service, calls) = (in_service.clone(), calls.clone());
            tokio::spawn(call_until_sent_away(process.webhooks, in_service, calls))
        })
        .collect();
    soon("load", async {
        while calls.load(Ordering::Relaxed) < 500 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    })
    .await;
    process.signal(Signal::TERM);
    let reason = process.until_ready(false).await;
    assert_eq!(reason, "not ready: stopping\n");
    let after = calls.load(Ordering::Relaxed);
    in_service.store(false, Ordering::Release);
    for worker in workers {
        soon("the workers are sent away", worker).await.unwrap();
    }
    assert!(
        calls.load(Ordering::Relaxed) > after,
        "it stopped serving at once"
    );
    assert_eq!(process.exit_code().await, Some(0));
}

#[tokio::test]
async fn a_connection_in_the_middle_of_a_call_is_waited_for() {
    let mut process = Process::ready(&["--shutdown-delay", "0"]).await;
    let mut stream = connect(process.webhooks, usual()).await.unwrap();
    let review = review();
    let head = format!(
        "POST /validate HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n\
         content-length: {}\r\n\r\n",
        review.len()
    );
    let (mut reader, mut writer) = tokio::io::split(&mut stream);
    tokio::io::AsyncWriteExt::write_all(&mut writer, head.as_bytes())
        .await
        .unwrap();
    tokio::io::AsyncWriteExt::flush(&mut writer).await.unwrap();
    soon("the call has begun", async {
        while !get(process.health, "/metrics")
            .await
            .unwrap()
            .body
            .contains("rayfit_admission_in_flight 1")
        {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
    process.signal(Signal::INT);
    soon("draining", async {
        while let Some(line) = process.log.next_line().await {
            if line.contains("Draining") {
                break;
            }
        }
    })
    .await;
    tokio::io::AsyncWriteExt::write_all(&mut writer, review.as_bytes())
        .await
        .unwrap();
    tokio::io::AsyncWriteExt::flush(&mut writer).await.unwrap();
    let mut answer = Vec::new();
    let _ = soon(
        "the answer",
        tokio::io::AsyncReadExt::read_to_end(&mut reader, &mut answer),
    )
    .await;
    let answer = String::from_utf8(answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    assert_eq!(process.exit_code().await, Some(0));
}

#[tokio::test]
async fn a_second_signal_stops_at_once() {
    let mut process = Process::ready(&["--shutdown-delay", "3600"]).await;
    process.signal(Signal::TERM);
    process.until_ready(false).await;
    process.signal(Signal::TERM);
    assert_eq!(process.exit_code().await, Some(2));
}

#[tokio::test]
async fn a_port_that_is_taken_is_said_with_what_to_do() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let output = Command::new(env!("CARGO_BIN_EXE_rayfit"))
        .args([
            "serve",
            "--bind",
            "127.0.0.1",
            "--health-port",
            "0",
            "--port",
            &port,
        ])
        .output()
        .await
        .unwrap();
    assert_eq!(output.status.code(), Some(2));
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(text.contains("choose another address or port"), "{text}");
}

/// Each alert and each panel of the dashboard asks for a metric of that name, with those labels.
#[tokio::test]
async fn alerts_and_dashboard_ask_for_metrics_that_are_there() {
    let process = Process::ready(&["--rule", "RF105=audit"]).await;
    let mut connection = Connection::open(process.webhooks).await.unwrap();
    let review = create(&bad_cluster()).to_string();
    connection.review(&review).await.unwrap();
    let mut there = scraped(&get(process.health, "/metrics").await.unwrap().body);
    for (metric, labels) in scraped(&crate::monitoring_support::counted()) {
        // Of the process it is taken only what a cluster is needed for.
        there.entry(metric).or_default().extend(labels);
    }
    let expressions = expressions();
    assert!(expressions.len() > 20, "{expressions:?}");
    let mut ours = 0;
    for expression in expressions {
        let (metrics, labels) = asked(&expression);
        ours += metrics.len();
        for metric in metrics {
            let known = there.get(&metric);
            let known = known.unwrap_or_else(|| panic!("no metric {metric}: {expression}"));
            for label in &labels {
                assert!(
                    known.contains(label),
                    "{metric} has no {label}: {expression}"
                );
            }
        }
    }
    assert!(
        ours > 15,
        "only {ours} of the metrics asked for are Rayfit's"
    );
}
