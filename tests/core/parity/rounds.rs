//! Strategy `Ray` over several rounds, against recorded rounds of Ray 2.60.0's own code, which keeps its
//! table of instances from round to round (`tests/parity/rounds.py`).

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader};
use std::path::Path;

use flate2::read::GzDecoder;
use rayfit_core::plan::{Plan, PlanSettings, RemovalCause, Strategy, decide};
use rayfit_core::snapshot::{History, Snapshot};
use serde_json::{Value, json};

/// The rounds of each sequence.
fn sequences() -> Vec<Vec<Value>> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/parity/rounds.jsonl.gz");
    let lines = BufReader::new(GzDecoder::new(std::fs::File::open(path).unwrap())).lines();
    let read = |line: std::io::Result<String>| serde_json::from_str(&line.unwrap()).unwrap();
    lines.map(read).collect()
}

/// The plan in the form of Ray's answer.
fn answer(plan: &Plan) -> Value {
    let mut drains: Vec<&str> = plan.drains.iter().map(|drain| drain.pod.as_str()).collect();
    let deletes = plan.groups.iter().flat_map(|group| &group.delete);
    let deletes = deletes.filter(|deletion| deletion.cause != RemovalCause::Stopped);
    let mut deletes: Vec<&str> = deletes.map(|deletion| deletion.pod.as_str()).collect();
    drains.sort_unstable();
    deletes.sort_unstable();
    let launches = plan.groups.iter().filter(|group| group.launch_now > 0);
    let launches: BTreeMap<&str, u64> = launches
        .map(|group| (group.name.as_str(), group.launch_now))
        .collect();
    json!({"drains": drains, "deletes": deletes, "launchNow": launches})
}

/// How many rounds are decided otherwise than by Ray, and the first of them. `known` makes what a round
/// knows of what the round before it remembered.
fn differences(known: impl Fn(History) -> History) -> (usize, String) {
    let settings = PlanSettings {
        strategy: Strategy::Ray,
        ..PlanSettings::default()
    };
    let (mut count, mut first) = (0, String::new());
    for (number, rounds) in sequences().iter().enumerate() {
        let mut history = History::default();
        for (round, case) in rounds.iter().enumerate() {
            let mut snapshot: Snapshot = serde_json::from_value(case["snapshot"].clone()).unwrap();
            snapshot.history = known(history);
            let (plan, _) = decide(&snapshot, &settings);
            let ours = answer(&plan);
            if ours != case["ray"] {
                count += 1;
                if first.is_empty() {
                    first = format!(
                        "sequence {number}, round {round}: {ours}, Ray: {}",
                        case["ray"]
                    );
                }
            }
            history = plan.remember;
        }
    }
    (count, first)
}

#[test]
fn over_several_rounds_the_nodes_go_that_ray_removes() {
    let (count, first) = differences(|history| history);
    assert_eq!(count, 0, "{first}");
    // Without the order of the table many of these would go wrong.
    let (count, _) = differences(|mut history| {
        history.instances.retain(|instance| instance.pod.is_none());
        history
    });
    assert!(count > 20, "{count}");
}
