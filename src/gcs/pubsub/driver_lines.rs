//! Lines that all drivers of a cluster print as `(autoscaler +3s) ...`, given to the GCS as Ray's log monitor
//! gives it those of its autoscaler's file. (Ray, `log_monitor.py`; `worker.py`, `print_to_stdstream`.)

use crate::gcs::wire::ray::rpc::observability_pub_sub_service_client::ObservabilityPubSubServiceClient;
use crate::gcs::wire::ray::rpc::pub_message::InnerMessage;
use crate::gcs::wire::ray::rpc::{ChannelType, GcsPublishRequest, LogBatch, PubMessage};
use crate::gcs::{Call, CallError, Client};

/// The process by which drivers know these lines.
const AUTOSCALER: &str = "autoscaler";

impl Client {
    /// Has all drivers that are connected print these lines, each the JSON of one of Ray's events.
    /// Drivers on another node than `ip` print that address beside them.
    ///
    /// # Errors
    ///
    /// [`CallError`]; a GCS of a Ray that is older does not know the call.
    pub async fn print_in_drivers(&self, ip: String, lines: Vec<String>) -> Result<(), CallError> {
        let batch = LogBatch {
            ip,
            pid: AUTOSCALER.to_owned(),
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
        let reply = self
            .call(call, message, |channel, request| async move {
                ObservabilityPubSubServiceClient::new(channel)
                    .max_decoding_message_size(limit)
                    .gcs_publish(request)
                    .await
            })
            .await?;
        self.checked(call, reply.status)
    }
}
