//! The users of a cluster, from its jobs and actors.

use rayfit_core::snapshot::gcs::RayUsers;

use super::ray::rpc::{ActorTableData, JobTableData};

/// The namespaces of Ray's own drivers. (Ray, `ray_constants.py`, `RAY_INTERNAL_NAMESPACE_PREFIX`.)
const INTERNAL: &str = "_ray_internal_";

/// The namespaces, besides those that begin with `_`, of detached actors that Ray's libraries leave
/// behind: they do not count as use of the cluster.
// (Ray Data's `autoscaling_requester.py` and `default_autoscaling_coordinator.py`, the job manager's `common.py`, and
// others.)
const HELPERS: [&str; 7] = [
    "AutoscalingRequester",
    "AutoscalingCoordinator",
    "SUPERVISOR_ACTOR_RAY_NAMESPACE",
    "llm_serve_telemetry",
    "llm_batch_telemetry",
    "ray.dataset",
    "ray_data_shuffle_disk",
];

/// Counts drivers, those of Ray itself excepted.
pub(crate) fn of_jobs(jobs: &[JobTableData]) -> RayUsers {
    let namespace = |job: &JobTableData| {
        let config = job.config.as_ref();
        config.map_or_else(String::new, |config| config.ray_namespace.clone())
    };
    let is_users = |job: &&JobTableData| !namespace(job).starts_with(INTERNAL);
    let (ended, drivers): (Vec<&JobTableData>, Vec<_>) =
        jobs.iter().filter(is_users).partition(|job| job.is_dead);
    RayUsers {
        drivers: drivers.len() as u64,
        detached_actors: 0,
        last_job_end_ms: ended.iter().map(|job| job.end_time).max().unwrap_or(0),
    }
}

/// Counts detached actors, those that Ray leaves behind excepted.
pub(crate) fn detached(actors: &[ActorTableData]) -> u64 {
    let is_use = |actor: &&ActorTableData| {
        let namespace = actor.ray_namespace.as_str();
        let is_helper = namespace.starts_with('_') || HELPERS.contains(&namespace);
        actor.is_detached && actor.end_time == 0 && !is_helper
    };
    actors.iter().filter(is_use).count() as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gcs::wire::ray::rpc::JobConfig;

    fn job(namespace: &str, is_dead: bool, end_time: u64) -> JobTableData {
        JobTableData {
            is_dead,
            end_time,
            config: Some(JobConfig {
                ray_namespace: namespace.to_owned(),
            }),
            ..JobTableData::default()
        }
    }

    #[test]
    fn what_ray_runs_for_itself_is_no_use() {
        let jobs = [
            job("_ray_internal_dashboard", false, 0),
            job("", false, 0),
            job("", true, 5),
            job("_ray_internal_x", true, 9),
        ];
        let actor = |namespace: &str, end_time, is_detached| ActorTableData {
            ray_namespace: namespace.to_owned(),
            end_time,
            is_detached,
            ..ActorTableData::default()
        };
        let actors = [
            actor("serve", 0, true),
            actor("serve", 7, true),
            actor("mine", 0, true),
            actor("mine", 0, false),
            actor("_dataset_stats_actor", 0, true),
            actor("AutoscalingRequester", 0, true),
        ];
        let users = RayUsers {
            drivers: 1,
            detached_actors: 2,
            last_job_end_ms: 5,
        };
        let found = RayUsers {
            detached_actors: detached(&actors),
            ..of_jobs(&jobs)
        };
        assert_eq!(found, users);
    }
}
