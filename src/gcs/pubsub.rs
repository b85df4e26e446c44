//! Messages published by way of the GCS: reports of the dashboard agents of Ray nodes, which say how much
//! memory is really in use, and the output of drivers.
//!
//! Each agent reports every five seconds to the GCS (`REPORTER_UPDATE_INTERVAL_MS`), by which
//! Ray's own dashboard gets it. Of all that a raylet, the GCS and the agents say, it is the only thing
//! that has the memory in use by the count of Ray's memory monitor, and KubeRay's probes need the
//! agents, so every cluster has them. A subscription names the nodes that it is about, so that the GCS
//! sends nothing else, and needs no connection to any other pod.

use std::collections::BTreeSet;
use std::time::Duration;

use rayfit_core::snapshot::NodeId;
use serde::Deserialize;

use super::wire::ray::rpc::command::CommandMessageOneOf;
use super::wire::ray::rpc::pub_message::InnerMessage;
use super::wire::ray::rpc::{
    self, ChannelType, Command, GcsPublishRequest, GcsSubscriberCommandBatchRequest,
    GcsSubscriberPollRequest, LogBatch, PubMessage, SubMessage, UnsubscribeMessage,
};
use super::{Call, CallError, Client, GcsFault};

/// The prefix of the key of a node's reports; the id of the node follows.
const KEY: &str = "RAY_REPORTER:";

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

/// The report in a message, if it is one that can be read.
// Anybody who runs code in a Ray cluster can publish anything.
fn report(message: &PubMessage) -> Option<MemoryReport> {
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

/// A subscription to the reports of some nodes of a cluster. The GCS forgets it when nobody has asked
/// for five minutes (`subscriber_timeout_ms`).
#[derive(Debug)]
pub struct Subscription {
    /// 28 bytes: Ray's ids have no other length.
    id: [u8; 28],
    /// The GCS, by the id that it gives itself; a restarted one has another, and knows no
    /// subscription.
    publisher: Vec<u8>,
    /// The last message that has arrived.
    last_sequence_id: i64,
    nodes: BTreeSet<NodeId>,
}

impl Subscription {
    /// A subscription to nothing yet, with an id that nobody else has.
    pub fn new(mut random: impl FnMut() -> u8) -> Self {
        Self {
            id: std::array::from_fn(|_| random()),
            publisher: Vec::new(),
            last_sequence_id: 0,
            nodes: BTreeSet::new(),
        }
    }
}

impl Client {
    /// Subscribes to these nodes and no others.
    pub async fn subscribe(
        &self,
        subscription: &mut Subscription,
        nodes: &BTreeSet<NodeId>,
    ) -> Result<(), CallError> {
        let command = |node: &NodeId, what| Command {
            channel_type: ChannelType::RayNodeResourceUsageChannel.into(),
            key_id: format!("{KEY}{node}").into(),
            command_message_one_of: Some(what),
        };
        let begin = CommandMessageOneOf::SubscribeMessage(SubMessage {});
        let end = CommandMessageOneOf::UnsubscribeMessage(UnsubscribeMessage {});
        let added = nodes.difference(&subscription.nodes);
        let ended = subscription.nodes.difference(nodes);
        let commands: Vec<Command> = (added.map(|node| command(node, begin)))
            .chain(ended.map(|node| command(node, end)))
            .collect();
        if commands.is_empty() {
            return Ok(());
        }
        let message = GcsSubscriberCommandBatchRequest {
            subscriber_id: subscription.id.to_vec(),
            commands,
        };
        let limit = self.usual_answer();
        let call = Call::Subscribe;
        let reply: rpc::GcsSubscriberCommandBatchReply = self.call(call, message, limit).await?;
        self.checked(call, reply.status)?;
        subscription.nodes.clone_from(nodes);
        Ok(())
    }

    /// The reports that have come since the last call, as soon as there is one; `None` if nothing
    /// comes for so long. A GCS that has been restarted knows nothing of the subscription, and says
    /// nothing.
    pub async fn reports(
        &self,
        subscription: &mut Subscription,
        longest: Duration,
    ) -> Result<Option<Vec<MemoryReport>>, CallError> {
        let message = GcsSubscriberPollRequest {
            subscriber_id: subscription.id.to_vec(),
            max_processed_sequence_id: subscription.last_sequence_id,
            publisher_id: subscription.publisher.clone(),
        };
        let (call, limit) = (Call::Reports, self.usual_answer());
        let reply = self.with_deadline(longest).call(call, message, limit).await;
        let reply: rpc::GcsSubscriberPollReply = match reply {
            Err(error) if matches!(error.fault, GcsFault::Deadline(_)) => return Ok(None),
            reply => reply?,
        };
        self.checked(call, reply.status)?;
        // A GCS that was restarted is another publisher, and counts its messages anew. (Ray,
        // `gcs_pubsub.py`.)
        if subscription.publisher != reply.publisher_id {
            subscription.publisher = reply.publisher_id;
            subscription.last_sequence_id = 0;
        }
        let messages = reply.pub_messages.iter();
        // The GCS repeats what it does not know to have arrived, as after an answer that was lost.
        let new = messages.filter(|message| message.sequence_id > subscription.last_sequence_id);
        let reports = new.filter_map(report).collect();
        let last = reply.pub_messages.iter().map(|one| one.sequence_id).max();
        subscription.last_sequence_id = subscription.last_sequence_id.max(last.unwrap_or(0));
        Ok(Some(reports))
    }

    /// Has all drivers that are connected print these lines as `(autoscaler +3s) ...`, each the JSON of one of Ray's
    /// events. The GCS is given them as Ray's log monitor gives it those of its autoscaler's file. (Ray, `log_monitor.py`;
    /// `worker.py`, `print_to_stdstream`.)
    ///
    /// Drivers on another node than `ip` print that address beside them.
    ///
    /// # Errors
    ///
    /// [`CallError`]; a GCS of a Ray that is older does not know the call.
    pub async fn print_in_drivers(&self, ip: String, lines: Vec<String>) -> Result<(), CallError> {
        let batch = LogBatch {
            ip,
            pid: "autoscaler".to_owned(),
            job_id: String::new(),
            is_error: false,
            lines,
        };
        let message = PubMessage {
            channel_type: ChannelType::RayLogChannel.into(),
            key_id: Vec::new(),
            sequence_id: 0,
            inner_message: Some(InnerMessage::LogBatchMessage(batch)),
        };
        let (call, limit) = (Call::Publish, self.usual_answer());
        let message = GcsPublishRequest {
            pub_messages: vec![message],
        };
        let reply: rpc::GcsPublishReply = self.call(call, message, limit).await?;
        self.checked(call, reply.status)
    }
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
