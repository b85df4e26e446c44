//! Subscribing to the reports of nodes.

use std::collections::BTreeSet;
use std::time::Duration;

use crate::gcs::pubsub::parse::{self, KEY, MemoryReport};
use crate::gcs::wire::ray::rpc::command::CommandMessageOneOf;
use crate::gcs::wire::ray::rpc::observability_pub_sub_service_client::ObservabilityPubSubServiceClient;
use crate::gcs::wire::ray::rpc::{
    ChannelType, Command, GcsSubscriberCommandBatchRequest, GcsSubscriberPollRequest, SubMessage,
    UnsubscribeMessage,
};
use crate::gcs::{Call, CallError, Client};
use crate::snapshot::NodeId;

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
    seen: i64,
    nodes: BTreeSet<NodeId>,
}

impl Subscription {
    /// A subscription to nothing yet, with an id that nobody else has.
    pub fn new(mut random: impl FnMut() -> u8) -> Self {
        Self {
            id: std::array::from_fn(|_| random()),
            publisher: Vec::new(),
            seen: 0,
            nodes: BTreeSet::new(),
        }
    }

    fn commands(&self, wanted: &BTreeSet<NodeId>) -> Vec<Command> {
        let command = |node: &NodeId, what| Command {
            channel_type: ChannelType::RayNodeResourceUsageChannel.into(),
            key_id: format!("{KEY}{node}").into(),
            command_message_one_of: Some(what),
        };
        let added = wanted.difference(&self.nodes);
        let added = added.map(|node| {
            let what = CommandMessageOneOf::SubscribeMessage(SubMessage {});
            command(node, what)
        });
        let ended = self.nodes.difference(wanted);
        let ended = ended.map(|node| {
            let what = CommandMessageOneOf::UnsubscribeMessage(UnsubscribeMessage {});
            command(node, what)
        });
        added.chain(ended).collect()
    }
}

impl Client {
    /// Subscribes to these nodes and no others.
    pub async fn subscribe(
        &self,
        subscription: &mut Subscription,
        nodes: &BTreeSet<NodeId>,
    ) -> Result<(), CallError> {
        let commands = subscription.commands(nodes);
        if commands.is_empty() {
            return Ok(());
        }
        let message = GcsSubscriberCommandBatchRequest {
            subscriber_id: subscription.id.to_vec(),
            commands,
        };
        let limit = self.usual_answer();
        let call = Call::Subscribe;
        let reply = self
            .call(call, message, |channel, request| async move {
                ObservabilityPubSubServiceClient::new(channel)
                    .max_decoding_message_size(limit)
                    .gcs_subscriber_command_batch(request)
                    .await
            })
            .await?;
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
            max_processed_sequence_id: subscription.seen,
            publisher_id: subscription.publisher.clone(),
        };
        let (call, limit) = (Call::Reports, self.usual_answer());
        let reply = self
            .with_deadline(longest)
            .wait(call, message, |channel, request| async move {
                ObservabilityPubSubServiceClient::new(channel)
                    .max_decoding_message_size(limit)
                    .gcs_subscriber_poll(request)
                    .await
            })
            .await?;
        let Some(reply) = reply else {
            return Ok(None);
        };
        self.checked(call, reply.status)?;
        // A GCS that was restarted is another publisher, and counts its messages anew. (Ray,
        // `gcs_pubsub.py`.)
        if subscription.publisher != reply.publisher_id {
            subscription.publisher = reply.publisher_id;
            subscription.seen = 0;
        }
        let messages = reply.pub_messages.iter();
        // The GCS repeats what it does not know to have arrived, as after an answer that was lost.
        let new = messages.filter(|message| message.sequence_id > subscription.seen);
        let reports = new.filter_map(parse::report).collect();
        let last = reply.pub_messages.iter().map(|one| one.sequence_id).max();
        subscription.seen = subscription.seen.max(last.unwrap_or(0));
        Ok(Some(reports))
    }
}
