//! The health port under attack.

use tokio::io::AsyncWriteExt as _;

use super::client_support::{connect_from, get};
use super::process_support::Process;
use super::{ATTACKERS, all_is_well, probes_are_answered};

#[tokio::test]
async fn idle_sockets_on_the_health_port_give_way() {
    let process = Process::ready(&[]).await;
    let mut held = Vec::new();
    for number in 0..600 {
        let mut stream = connect_from(ATTACKERS[number % 3], process.health)
            .await
            .unwrap();
        if number % 2 == 0 {
            let _ = stream.write_all(b"GET /livez HT").await;
        }
        held.push(stream);
    }
    all_is_well(&process).await;
}

/// Those who ask without end, and for what takes the most.
#[tokio::test]
async fn a_flood_of_questions_for_metrics_holds_up_no_probe() {
    let process = Process::ready(&[]).await;
    let health = process.health;
    let flood: Vec<_> = (0..8)
        .map(|_| {
            tokio::spawn(async move {
                loop {
                    let answer = get(health, "/metrics").await.unwrap();
                    assert!(answer.body.ends_with("# EOF\n"));
                }
            })
        })
        .collect();
    for _ in 0..20 {
        probes_are_answered(&process).await;
    }
    all_is_well(&process).await;
    for task in flood {
        assert!(!task.is_finished(), "metrics were not answered");
        task.abort();
    }
}
