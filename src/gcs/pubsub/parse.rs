//! The memory in a report of a dashboard agent.

use serde::Deserialize;

use crate::gcs::wire::ray::rpc::PubMessage;
use crate::gcs::wire::ray::rpc::pub_message::InnerMessage;
use crate::snapshot::NodeId;

/// The prefix of the key of a node's reports; the id of the node follows.
pub(super) const KEY: &str = "RAY_REPORTER:";

/// No machine has as much memory, in bytes.
const MOST: f64 = 1e15;

/// The memory in use on a node, as its dashboard agent reports it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MemoryReport {
    /// The node.
    pub node: NodeId,
    /// The bytes in use, without cached files, as Ray's memory monitor counts them.
    pub used: i64,
    /// The bytes that the node has: the limit of its container.
    pub total: i64,
    /// The time of the report, in seconds by the node's own clock.
    pub at: f64,
}

/// The part of a report that is read. (Ray, `reporter_agent.py`, `_collect_stats`.)
#[derive(Deserialize)]
struct Stats {
    now: f64,
    /// Total, available, percent, used.
    mem: (f64, f64, f64, f64),
}

/// The report in a message, if it is one that can be read. Anybody who runs code in a Ray cluster
/// can publish anything.
pub(super) fn report(message: &PubMessage) -> Option<MemoryReport> {
    let key = std::str::from_utf8(&message.key_id).ok()?;
    let node = key.strip_prefix(KEY)?.parse().ok()?;
    let Some(InnerMessage::NodeResourceUsageMessage(usage)) = &message.inner_message else {
        return None;
    };
    let Stats {
        now,
        mem: (total, _, _, used),
    } = serde_json::from_str(&usage.json).ok()?;
    let is_amount = |amount: f64| (0.0..=MOST).contains(&amount);
    let is_sound = is_amount(total) && is_amount(used) && now.is_finite();
    #[expect(clippy::cast_possible_truncation, reason = "bounded above")]
    is_sound.then_some(MemoryReport {
        node,
        used: used as i64,
        total: total as i64,
        at: now,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gcs::wire::ray::rpc::NodeResourceUsage;

    const ID: &str = "057cb78ee6d6668d8a3abe9ce1fbf16d1d956f280fbe2a5db7e392f1";

    fn read(key: &str, json: &str) -> Option<MemoryReport> {
        let json = json.to_owned();
        let usage = NodeResourceUsage { json };
        report(&PubMessage {
            key_id: key.into(),
            inner_message: Some(InnerMessage::NodeResourceUsageMessage(usage)),
            ..PubMessage::default()
        })
    }

    #[test]
    fn a_report_of_ray_is_read() {
        // As Ray 2.60.0 wrote it, without its lists of processes.
        let json = r#"{"now": 1795469688.11, "hostname": "a", "cpu": 100.0, "cpus": [1, 1],
            "mem": [1073741824, 160, 84.5, 907313152], "hostMem": [9, 9, 1.0, 9], "workers": [{}]}"#;
        let read = read(&format!("{KEY}{ID}"), json).unwrap();
        assert_eq!(read.node.to_string(), ID);
        assert_eq!((read.used, read.total), (907_313_152, 1 << 30));
    }

    #[test]
    fn anything_else_is_not() {
        let key = format!("{KEY}{ID}");
        let good = r#"{"now": 1, "mem": [2, 1, 50.0, 1]}"#;
        assert!(read(&key, good).is_some());
        assert!(read(ID, good).is_none());
        assert!(read("RAY_REPORTER:", good).is_none());
        for bad in [
            "",
            "[]",
            r#"{"now": 1}"#,
            r#"{"now": 1, "mem": [2, 1, 50.0]}"#,
            r#"{"now": 1, "mem": [2, 1, 50.0, -1]}"#,
            r#"{"now": 1, "mem": [2, 1, 50.0, 1e300]}"#,
            r#"{"now": 1, "mem": [2, 1, 50.0, "1"]}"#,
            r#"{"now": "x", "mem": [2, 1, 50.0, 1]}"#,
        ] {
            assert!(read(&key, bad).is_none(), "{bad}");
        }
        let deep = format!(r#"{{"now": 1, "x": {}"#, "[".repeat(100_000));
        assert!(read(&key, &deep).is_none());
    }
}
