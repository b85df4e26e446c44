//! Random demand, within what a GCS may say: decided without harm, whatever it is. The fuzz target
//! `decide` does the same for as long as one likes.

use proptest::collection::vec;
use proptest::prelude::*;
use rayfit::gcs::read_state;
use rayfit_core::plan::check::check;
use rayfit_core::plan::{PlanSettings, Strategy as Way, decide};

use super::planner::{cluster, group, read, settings};

/// Bytes that are often enough a message.
fn message() -> impl Strategy<Value = Vec<u8>> {
    let amount = prop_oneof![Just(0.0), Just(1.0), 0.0001..64.0_f64, 1e6..1e18_f64];
    let resource = prop_oneof![
        Just("CPU"),
        Just("GPU"),
        Just("memory"),
        Just("node:__internal_implicit_resource_x")
    ];
    let bundle = vec((resource, amount), 0..3).prop_map(|amounts| {
        amounts
            .into_iter()
            .flat_map(|(name, amount)| entry(name, amount))
            .collect::<Vec<u8>>()
    });
    let counted = (bundle.clone(), any::<i64>()).prop_map(|(bundle, count)| {
        let mut by_count = field(1, &bundle);
        prost::encoding::int64::encode(2, &count, &mut by_count);
        field(4, &by_count)
    });
    let gang = vec(bundle, 0..6).prop_map(|bundles| {
        field(
            5,
            &bundles
                .iter()
                .flat_map(|bundle| field(1, bundle))
                .collect::<Vec<u8>>(),
        )
    });
    let part = prop_oneof![4 => counted, 2 => gang, 1 => vec(any::<u8>(), 0..20)];
    vec(part, 0..12).prop_map(|parts| field(1, &parts.concat()))
}

fn field(number: u32, content: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    prost::encoding::bytes::encode(number, &content.to_vec(), &mut bytes);
    bytes
}

fn entry(name: &str, amount: f64) -> Vec<u8> {
    let mut entry = field(1, name.as_bytes());
    prost::encoding::double::encode(2, &amount, &mut entry);
    field(1, &entry)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn whatever_is_asked_for_is_decided(
        bytes in message(),
        limits in vec((0..50_000_i64, any::<u16>(), 1..5_i64), 1..4),
    ) {
        let Ok(state) = read_state(&bytes) else { return Ok(()) };
        let groups = limits.iter().enumerate().map(|(number, (most, least, hosts))| {
            let mut group = group(&format!("g-{number}"), 4);
            group["maxReplicas"] = (*most).into();
            group["minReplicas"] = i64::from(*least).min(*most).into();
            group["numOfHosts"] = (*hosts).into();
            group
        });
        let mut snapshot = read(cluster(groups.collect()));
        let head = snapshot.gcs.node_states.clone();
        snapshot.gcs = state;
        snapshot.gcs.node_states.extend(head);
        for way in [Way::Rayfit, Way::Ray] {
            let (plan, report) = decide(&snapshot, &settings(way));
            let launched: u64 = plan.groups.iter().map(|group| group.launch).sum();
            prop_assert!(launched <= PlanSettings::default().max_workers);
            if way == Way::Rayfit {
                prop_assert_eq!(check(&snapshot, &plan), []);
            }
            for demand in &report.demands {
                let placed: u64 = demand.placed.iter().map(|placed| placed.count).sum();
                prop_assert!(plan.waiting.is_some() || placed + demand.unmet == demand.count, "{:?}", demand);
            }
        }
    }
}
