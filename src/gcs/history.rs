//! What ran on a cluster, as far as its GCS still knows.

use super::wire::ray::rpc::actor_info_gcs_service_client::ActorInfoGcsServiceClient;
use super::wire::ray::rpc::placement_group_info_gcs_service_client::PlacementGroupInfoGcsServiceClient;
use super::wire::ray::rpc::task_info_gcs_service_client::TaskInfoGcsServiceClient;
use super::wire::ray::rpc::{
    GetAllActorInfoRequest, GetAllPlacementGroupRequest, GetTaskEventsRequest,
};
use super::{Call, CallError, Client};
use crate::simulate::trace::{RayGroup, RayHistory, RayRun};

impl Client {
    /// Attempts of tasks, ends of actors, and placement groups. A GCS keeps a hundred thousand
    /// attempts (`task_events_max_num_task_in_gcs`), and gives them whole: with a limit it would give
    /// the oldest ones.
    pub async fn history(&self) -> Result<RayHistory, CallError> {
        let limit = self.largest_answer();
        let call = Call::TaskEvents;
        let tasks = self
            .call(
                call,
                GetTaskEventsRequest {},
                |channel, request| async move {
                    TaskInfoGcsServiceClient::new(channel)
                        .max_decoding_message_size(limit)
                        .get_task_events(request)
                        .await
                },
            )
            .await?;
        self.checked(call, tasks.status)?;
        let call = Call::Actors;
        let all = GetAllActorInfoRequest {
            show_dead_jobs: true,
        };
        let actors = self
            .call(call, all, |channel, request| async move {
                ActorInfoGcsServiceClient::new(channel)
                    .max_decoding_message_size(limit)
                    .get_all_actor_info(request)
                    .await
            })
            .await?;
        self.checked(call, actors.status)?;
        let call = Call::PlacementGroups;
        let groups = self
            .call(
                call,
                GetAllPlacementGroupRequest {},
                |channel, request| async move {
                    PlacementGroupInfoGcsServiceClient::new(channel)
                        .max_decoding_message_size(limit)
                        .get_all_placement_group(request)
                        .await
                },
            )
            .await?;
        self.checked(call, groups.status)?;
        let runs = tasks.events_by_task.into_iter();
        let groups = groups.placement_group_table_data.into_iter();
        Ok(RayHistory {
            runs: runs.filter_map(Option::<RayRun>::from).collect(),
            actor_ends: (actors.actor_table_data.into_iter())
                .filter_map(Into::into)
                .collect(),
            groups: groups.map(<(String, RayGroup)>::from).collect(),
            forgotten: u64::try_from(tasks.num_status_task_events_dropped).unwrap_or(0),
        })
    }
}
