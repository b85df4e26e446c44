//! Tasks, actors and placement groups as a trace is made of them.

use rayfit_core::simulate::trace::{PlacementStrategy, RayGroup, RayKind, RayRun};
use rayfit_core::text::hex;

use super::ray::rpc;

/// Seconds of a nanosecond, and of a millisecond.
const NANO: f64 = 1e-9;
const MILLI: f64 = 1e-3;

impl From<rpc::TaskEvents> for Option<RayRun> {
    /// Nothing for the program that submits all others, and for what the GCS knows nothing of but
    /// that it ran.
    fn from(attempt: rpc::TaskEvents) -> Self {
        let kind = match attempt.task_info.as_ref()?.r#type() {
            rpc::TaskType::NormalTask => RayKind::Task,
            rpc::TaskType::ActorCreationTask => RayKind::Creation,
            rpc::TaskType::ActorTask => RayKind::Call,
            rpc::TaskType::DriverTask => return None,
        };
        let info = attempt.task_info?;
        let times = attempt.state_updates.unwrap_or_default().state_ts_ns;
        let at = |status: rpc::TaskStatus| {
            let nanoseconds = times.get(&i32::from(status)).copied()?;
            #[expect(clippy::cast_precision_loss, reason = "microseconds are exact enough")]
            let seconds = nanoseconds as f64 * NANO;
            Some(seconds)
        };
        let end = at(rpc::TaskStatus::Finished).or_else(|| at(rpc::TaskStatus::Failed));
        let full = |id: Option<Vec<u8>>| id.filter(|id| !id.is_empty()).map(|id| hex(&id));
        Some(RayRun {
            task: hex(&attempt.task_id),
            name: Some(info.name)
                .filter(|name| !name.is_empty())
                .unwrap_or(info.func_or_class_name),
            kind,
            actor: full(info.actor_id),
            group: full(info.placement_group_id),
            parent: full(Some(info.parent_task_id)),
            // A task waits for a node once its arguments are there. Events can be missing, because
            // workers drop some under load.
            ready: at(rpc::TaskStatus::PendingNodeAssignment)
                .or_else(|| at(rpc::TaskStatus::PendingArgsAvail))
                .or_else(|| at(rpc::TaskStatus::Running))?,
            ran: at(rpc::TaskStatus::Running).zip(end),
            shape: info.required_resources,
        })
    }
}

impl From<rpc::ActorTableData> for Option<(String, f64)> {
    /// The actor, and when it ended; nothing as long as it lives.
    fn from(actor: rpc::ActorTableData) -> Self {
        #[expect(clippy::cast_precision_loss, reason = "milliseconds since 1970")]
        let end = actor.end_time as f64 * MILLI;
        (actor.end_time > 0).then(|| (hex(&actor.actor_id), end))
    }
}

impl From<rpc::PlacementGroupTableData> for (String, RayGroup) {
    fn from(group: rpc::PlacementGroupTableData) -> Self {
        let strategy = match group.strategy() {
            rpc::PlacementStrategy::Pack => PlacementStrategy::Pack,
            rpc::PlacementStrategy::Spread => PlacementStrategy::Spread,
            rpc::PlacementStrategy::StrictPack => PlacementStrategy::StrictPack,
            rpc::PlacementStrategy::StrictSpread => PlacementStrategy::StrictSpread,
        };
        let bundles = group.bundles.into_iter();
        let group_of = RayGroup {
            bundles: bundles.map(|bundle| bundle.unit_resources).collect(),
            strategy: Some(strategy),
        };
        (hex(&group.placement_group_id), group_of)
    }
}
