//! The calls, with Rayfit's own types.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;

use prost::Message as _;
use rayfit_core::simulate::trace::{RayGroup, RayHistory, RayRun};
use rayfit_core::snapshot::NodeId;
use rayfit_core::snapshot::autoscaling_state::{AutoscalingState, LaunchCounts};
use rayfit_core::snapshot::gcs::{ClusterResourceState, RayUsers};
use rayfit_core::text::ForeignText;

use super::error::LONGEST_MESSAGE;
use super::wire::ray::rpc::autoscaler::{
    DrainNodeReason, DrainNodeRequest, GetClusterResourceStateRequest, GetClusterStatusRequest,
    ReportAutoscalingStateRequest, ResizeRayletResourceInstancesRequest,
};
use super::wire::ray::rpc::{
    self, ActorTableData, DrainNodeData, DrainNodeRequest as StopNodeRequest, GcsStatus,
    GetAllActorInfoRequest, GetAllJobInfoRequest, GetAllPlacementGroupRequest,
    GetTaskEventsRequest, InternalKvDelRequest, InternalKvGetRequest, InternalKvPutRequest,
};
use super::wire::users;
use super::{Call, CallError, Client, GcsFault, validate};
use crate::fair_semaphore::FairPermit;

/// Ray's code for a key that does not exist.
const NO_SUCH_KEY: i32 = 17;

/// The answer of a raylet to a drain request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DrainCall {
    /// The node takes no new work and will stop. This is also the answer for a node that is unknown
    /// or has already stopped.
    Accepted,
    /// The node keeps running, because it is no longer idle; with the raylet's reason.
    Rejected(String),
}

impl Client {
    /// The nodes and the demand. Ray gathers them about once a second.
    pub async fn cluster_resource_state(&self) -> Result<ClusterResourceState, CallError> {
        Ok(self.whole_state().await?.0)
    }

    /// The state with the permit of an answer that is larger than usual, which has to be kept as
    /// long as the state.
    pub async fn whole_state(
        &self,
    ) -> Result<(ClusterResourceState, Option<FairPermit>), CallError> {
        let mut permit = None;
        if self.is_large.load(Ordering::Relaxed) {
            permit = Some(self.permit().await);
        }
        let (limit, largest) = (self.limit(permit.as_ref()), self.limits.answer);
        match self.state_within(limit).await {
            // gRPC announces the size of a message, so little of the refused answer has been
            // received.
            Err(CallError {
                fault: GcsFault::TooLarge(_),
                ..
            }) if limit < largest => {
                self.is_large.store(true, Ordering::Relaxed);
                let permit = self.permit().await;
                Ok((self.state_within(largest).await?, Some(permit)))
            }
            result => Ok((result?, permit)),
        }
    }

    async fn state_within(&self, limit: usize) -> Result<ClusterResourceState, CallError> {
        // It names no version of a state that was seen before: a GCS that has been restarted aborts at
        // one that it has not reached yet.
        let message = GetClusterResourceStateRequest {};
        let reply: rpc::autoscaler::GetClusterResourceStateReply =
            self.call(Call::ClusterState, message, limit).await?;
        // Only half of the limit counts as usual again, so that a cluster whose answers are about
        // as large as the limit is not asked twice each time.
        if reply.encoded_len() <= self.usual_answer() / 2 {
            self.is_large.store(false, Ordering::Relaxed);
        }
        let state = reply.cluster_resource_state.unwrap_or_default();
        let state = ClusterResourceState::from(state);
        match validate::check(&state) {
            Ok(()) => Ok(state),
            Err(unusable) => Err(self.error(Call::ClusterState, GcsFault::Unusable(unusable))),
        }
    }

    /// The same state with what the cluster's scaler reported last, for a process that has one cluster: it takes
    /// the permit of a large answer each time.
    pub async fn cluster_status(&self) -> Result<(ClusterResourceState, LaunchCounts), CallError> {
        let (_permit, limit) = (self.permit().await, self.limits.answer);
        let call = Call::ClusterStatus;
        let request = GetClusterStatusRequest {};
        let reply: rpc::autoscaler::GetClusterStatusReply = self.call(call, request, limit).await?;
        let state = ClusterResourceState::from(reply.cluster_resource_state.unwrap_or_default());
        validate::check(&state)
            .map_err(|unusable| self.error(call, GcsFault::Unusable(unusable)))?;
        Ok((state, reply.autoscaling_state.unwrap_or_default().into()))
    }

    /// Reports to the cluster what its scaler is doing; `ray status` shows it.
    pub async fn report(&self, state: AutoscalingState) -> Result<(), CallError> {
        let message = ReportAutoscalingStateRequest {
            autoscaling_state: Some(state.into()),
        };
        let call = self.call(Call::Report, message, self.limits.answer);
        call.await
            .map(|_: rpc::autoscaler::ReportAutoscalingStateReply| ())
    }

    /// Asks a node to drain.
    ///
    /// With `stopped_at_ms` it drains when its work is done: it accepts even with work, and takes no more.
    /// At that time, in milliseconds since 1970, it will be stopped in any case. Ray shows it to the work
    /// on the node and does not enforce it; 0 stands for none. Without it, the node drains because it is
    /// idle, and its raylet refuses if it no longer is.
    pub async fn drain(
        &self,
        node: NodeId,
        why: &str,
        stopped_at_ms: Option<u64>,
    ) -> Result<DrainCall, CallError> {
        let reason = match stopped_at_ms {
            Some(_) => DrainNodeReason::Preemption,
            None => DrainNodeReason::IdleTermination,
        };
        let message = DrainNodeRequest {
            node_id: node.as_bytes().to_vec(),
            reason: reason.into(),
            reason_message: why.to_owned(),
            deadline_timestamp_ms: i64::try_from(stopped_at_ms.unwrap_or(0)).unwrap_or(i64::MAX),
        };
        let reply: rpc::autoscaler::DrainNodeReply =
            self.call(Call::Drain, message, self.limits.answer).await?;
        Ok(if reply.is_accepted {
            DrainCall::Accepted
        } else {
            DrainCall::Rejected(reply.rejection_reason_message)
        })
    }

    /// Stops a node at once: the work on it fails.
    pub async fn stop_node(&self, node: NodeId) -> Result<(), CallError> {
        let node_id = node.as_bytes().to_vec();
        let message = StopNodeRequest {
            drain_node_data: vec![DrainNodeData { node_id }],
        };
        let reply: rpc::DrainNodeReply = self.call(Call::Stop, message, self.limits.answer).await?;
        self.checked(Call::Stop, reply.status)
    }

    /// Gives a raylet another size, where `None` leaves an amount unchanged, and returns all its totals, by
    /// resource. The cluster's state shows them one or two seconds later.
    #[expect(
        clippy::cast_precision_loss,
        reason = "Ray counts in doubles; memory is exact to 8 PiB"
    )]
    pub async fn resize_raylet(
        &self,
        node: NodeId,
        cpu_milli: Option<u64>,
        memory_bytes: Option<u64>,
    ) -> Result<BTreeMap<String, f64>, CallError> {
        // Ray's units are whole CPUs and bytes.
        let cpu = cpu_milli.map(|milli| ("CPU".to_owned(), milli as f64 / 1000.0));
        let memory = memory_bytes.map(|bytes| ("memory".to_owned(), bytes as f64));
        let message = ResizeRayletResourceInstancesRequest {
            node_id: node.as_bytes().to_vec(),
            resources: cpu.into_iter().chain(memory).collect(),
        };
        let reply: rpc::autoscaler::ResizeRayletResourceInstancesReply =
            self.call(Call::Resize, message, self.limits.answer).await?;
        Ok(reply.total_resources)
    }

    /// The value of a key, if there is one. The default namespace is empty.
    pub async fn kv_get(&self, namespace: &str, key: &str) -> Result<Option<Vec<u8>>, CallError> {
        let message = InternalKvGetRequest {
            key: key.into(),
            namespace: namespace.into(),
        };
        let reply: rpc::InternalKvGetReply =
            self.call(Call::KvGet, message, self.limits.answer).await?;
        if let Some(GcsStatus { code, .. }) = reply.status
            && code == NO_SUCH_KEY
        {
            return Ok(None);
        }
        self.checked(Call::KvGet, reply.status)?;
        Ok(Some(reply.value))
    }

    /// Writes a key, replacing its value. The default namespace is empty.
    pub async fn kv_put(&self, namespace: &str, key: &str, value: &[u8]) -> Result<(), CallError> {
        let message = InternalKvPutRequest {
            key: key.into(),
            value: value.to_vec(),
            overwrite: true,
            namespace: namespace.into(),
        };
        let reply: rpc::InternalKvPutReply =
            self.call(Call::KvPut, message, self.limits.answer).await?;
        self.checked(Call::KvPut, reply.status)
    }

    /// Deletes a key, if it exists. The default namespace is empty.
    pub async fn kv_del(&self, namespace: &str, key: &str) -> Result<(), CallError> {
        let message = InternalKvDelRequest {
            key: key.into(),
            namespace: namespace.into(),
        };
        let reply: rpc::InternalKvDelReply =
            self.call(Call::KvDel, message, self.limits.answer).await?;
        self.checked(Call::KvDel, reply.status)
    }

    /// Attempts of tasks, ends of actors, and placement groups. A GCS keeps a hundred thousand
    /// attempts (`task_events_max_num_task_in_gcs`), and gives them whole.
    pub async fn history(&self) -> Result<RayHistory, CallError> {
        let limit = self.limits.answer;
        let call = Call::TaskEvents;
        // With a limit the GCS would give the oldest attempts.
        let all = GetTaskEventsRequest {};
        let tasks: rpc::GetTaskEventsReply = self.call(call, all, limit).await?;
        self.checked(call, tasks.status)?;
        let actors = self.actors(true, limit).await?;
        let call = Call::PlacementGroups;
        let all = GetAllPlacementGroupRequest {};
        let groups: rpc::GetAllPlacementGroupReply = self.call(call, all, limit).await?;
        self.checked(call, groups.status)?;
        let runs = tasks.events_by_task.into_iter();
        let groups = groups.placement_group_table_data.into_iter();
        Ok(RayHistory {
            runs: runs.filter_map(Option::<RayRun>::from).collect(),
            actor_ends: actors.into_iter().filter_map(Into::into).collect(),
            groups: groups.map(<(String, RayGroup)>::from).collect(),
            forgotten: u64::try_from(tasks.num_status_task_events_dropped).unwrap_or(0),
        })
    }

    /// The users of the cluster: its drivers, and detached actors. `permit` is the one that is kept for the
    /// cluster's state, if there is one.
    pub async fn users(&self, permit: Option<&FairPermit>) -> Result<RayUsers, CallError> {
        let (limit, largest) = (self.limit(permit), self.limits.answer);
        match self.users_within(limit).await {
            Err(CallError {
                fault: GcsFault::TooLarge(_),
                ..
            }) if limit < largest => {
                // The answers are counted and dropped here, so the permit is not needed for longer.
                let _permit = self.permit().await;
                self.users_within(largest).await
            }
            result => result,
        }
    }

    async fn users_within(&self, limit: usize) -> Result<RayUsers, CallError> {
        let call = Call::Jobs;
        let all = GetAllJobInfoRequest {
            // For these two fields the GCS would read its store and ask each driver.
            skip_submission_job_info_field: true,
            skip_is_running_tasks_field: true,
        };
        let jobs: rpc::GetAllJobInfoReply = self.call(call, all, limit).await?;
        self.checked(call, jobs.status)?;
        // Each answer is counted and dropped before the next one is asked for.
        let of_jobs = users::of_jobs(&jobs.job_info_list);
        drop(jobs.job_info_list);
        let actors = self.actors(false, limit).await?;
        Ok(RayUsers {
            detached_actors: users::detached(&actors),
            ..of_jobs
        })
    }

    /// The actors, with those of drivers that have ended or without.
    async fn actors(
        &self,
        show_dead_jobs: bool,
        limit: usize,
    ) -> Result<Vec<ActorTableData>, CallError> {
        let call = Call::Actors;
        let which = GetAllActorInfoRequest { show_dead_jobs };
        let actors: rpc::GetAllActorInfoReply = self.call(call, which, limit).await?;
        self.checked(call, actors.status)?;
        Ok(actors.actor_table_data)
    }

    /// The status inside an answer: absent or 0 means success.
    pub(super) fn checked(&self, call: Call, status: Option<GcsStatus>) -> Result<(), CallError> {
        let Some(GcsStatus { code, message }) = status.filter(|status| status.code != 0) else {
            return Ok(());
        };
        let fault = if message.contains("passive") {
            GcsFault::Passive
        } else {
            let message = ForeignText(message.chars().take(LONGEST_MESSAGE).collect::<String>());
            GcsFault::Other(format!("status {code}: {message}"))
        };
        Err(self.error(call, fault))
    }
}
