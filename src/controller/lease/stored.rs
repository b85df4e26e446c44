//! Leases as the API server stores them: reads them, and writes them as the steps say.

use std::time::Duration;

use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use kube::ResourceExt as _;
use kube::api::{
    Api, DeleteParams, DynamicObject, ListParams, ObjectMeta, PostParams, Preconditions,
};

use crate::controller::clock::Clock;
use crate::manifests::names::HEARTBEAT;
use crate::reconcile::ownership::lease::heartbeat::HeartbeatStep;
use crate::reconcile::ownership::lease::record::{LeaseName, LeaseRecord, LeaseStep, Terms};

/// The label of Rayfit's Leases; its value says which kind of Lease it is.
pub const LABEL: &str = "rayfit.dev/lease";
/// The annotation with the number of shards into which the Lease's writer divides clusters.
const SHARDS: &str = "rayfit.dev/shards";
const SHARD: &str = "rayfit-shard-";
const REPLICA: &str = "rayfit-replica-";

/// The options by which a replica takes part.
#[derive(Debug, Clone)]
pub struct LeaseOptions {
    /// The namespace of the Leases.
    pub namespace: String,
    /// The name of this replica, which no other replica has.
    pub replica: String,
    /// The number of shards; the same for all replicas.
    pub shards: u32,
    /// The durations by which Leases are held.
    pub terms: Terms,
}

/// All Leases as they are now.
pub(super) async fn list(
    api: &Api<DynamicObject>,
) -> Result<Vec<(LeaseName, LeaseRecord)>, kube::Error> {
    // A list without a resource version shows what was stored last, and not an older state of the
    // API server's cache.
    let listed = api.list(&ListParams::default().labels(LABEL)).await?;
    let leases = listed.into_iter().filter_map(|lease| {
        let lease: Lease = lease.try_parse().ok()?;
        Some((name_of(&lease)?, record_of(&lease)))
    });
    Ok(leases.collect())
}

/// Performs a step, and returns the Lease as it is then, if there is one.
pub(super) async fn perform(
    api: &Api<Lease>,
    options: &LeaseOptions,
    step: &LeaseStep,
) -> Result<Option<Lease>, kube::Error> {
    let post = PostParams::default();
    match step {
        LeaseStep::Create(name) => {
            let lease = object(name, options, None, Some(&options.replica));
            api.create(&post, &lease).await.map(Some)
        }
        LeaseStep::Hold(name, record) => {
            let lease = object(name, options, Some(record), Some(&options.replica));
            api.replace(&lease_name(name), &post, &lease)
                .await
                .map(Some)
        }
        LeaseStep::Release(name, record) | LeaseStep::ReleaseDead(name, Some(record)) => {
            let lease = object(name, options, Some(record), None);
            api.replace(&lease_name(name), &post, &lease)
                .await
                .map(Some)
        }
        LeaseStep::ReleaseDead(name, None) => {
            let lease = object(name, options, None, None);
            api.create(&post, &lease).await.map(Some)
        }
        LeaseStep::Remove(name, record) => {
            let preconditions = Preconditions {
                resource_version: Some(record.version.clone()),
                uid: None,
            };
            let delete = DeleteParams {
                preconditions: Some(preconditions),
                ..DeleteParams::default()
            };
            api.delete(&lease_name(name), &delete).await.map(|_| None)
        }
        LeaseStep::Look(_) => Ok(None),
    }
}

/// Creates or renews the heartbeat.
pub(super) async fn write_heartbeat(
    api: &Api<Lease>,
    options: &LeaseOptions,
    step: &HeartbeatStep,
) -> Result<Lease, kube::Error> {
    let (post, me) = (PostParams::default(), Some(&*options.replica));
    match step {
        HeartbeatStep::Create => {
            let lease = lease(HEARTBEAT.to_owned(), "heartbeat", options, None, me);
            api.create(&post, &lease).await
        }
        HeartbeatStep::Renew(record) => {
            let lease = lease(HEARTBEAT.to_owned(), "heartbeat", options, Some(record), me);
            api.replace(HEARTBEAT, &post, &lease).await
        }
    }
}

/// The heartbeat by its name. By its label it is not seen where somebody else made it.
pub(super) async fn find_heartbeat(api: &Api<Lease>) -> Result<Option<Lease>, kube::Error> {
    let named = ListParams::default().fields(&format!("metadata.name={HEARTBEAT}"));
    // A list does not need the right to `get` a Lease.
    let mut found = api.list(&named).await?.items.into_iter();
    Ok(found.find(|lease| lease.name_any() == HEARTBEAT))
}

fn object(
    name: &LeaseName,
    options: &LeaseOptions,
    record: Option<&LeaseRecord>,
    holder: Option<&str>,
) -> Lease {
    let kind = match name {
        LeaseName::Replica(_) => "replica",
        LeaseName::Shard(_) => "shard",
    };
    lease(lease_name(name), kind, options, record, holder)
}

fn lease(
    name: String,
    kind: &str,
    options: &LeaseOptions,
    record: Option<&LeaseRecord>,
    holder: Option<&str>,
) -> Lease {
    let seconds = options
        .terms
        .duration
        .as_secs()
        .try_into()
        .unwrap_or(i32::MAX);
    let now = MicroTime(Clock::timestamp());
    let renewed = record.filter(|record| record.holder.as_deref() == holder);
    // A Lease is written whole, so what is left out of a renewal is lost.
    let acquired = match renewed {
        Some(record) => record.acquired.map(MicroTime),
        None => Some(now.clone()),
    };
    Lease {
        metadata: ObjectMeta {
            name: Some(name),
            namespace: Some(options.namespace.clone()),
            labels: Some([(LABEL.to_owned(), kind.to_owned())].into()),
            annotations: Some([(SHARDS.to_owned(), options.shards.to_string())].into()),
            resource_version: record.map(|record| record.version.clone()),
            ..ObjectMeta::default()
        },
        spec: Some(LeaseSpec {
            holder_identity: holder.map(str::to_owned),
            lease_duration_seconds: Some(seconds),
            renew_time: Some(now),
            acquire_time: acquired,
            ..LeaseSpec::default()
        }),
    }
}

pub(super) fn lease_name(name: &LeaseName) -> String {
    match name {
        LeaseName::Replica(replica) => format!("{REPLICA}{replica}"),
        LeaseName::Shard(shard) => format!("{SHARD}{shard}"),
    }
}

pub(super) fn name_of(lease: &Lease) -> Option<LeaseName> {
    name_from(&lease.name_any())
}

pub(super) fn name_from(name: &str) -> Option<LeaseName> {
    if let Some(replica) = name.strip_prefix(REPLICA) {
        return Some(LeaseName::Replica(replica.to_owned()));
    }
    name.strip_prefix(SHARD)?.parse().ok().map(LeaseName::Shard)
}

pub(super) fn record_of(lease: &Lease) -> LeaseRecord {
    let spec = lease.spec.as_ref();
    let seconds = spec
        .and_then(|spec| spec.lease_duration_seconds)
        .unwrap_or(0);
    LeaseRecord {
        holder: spec
            .and_then(|spec| spec.holder_identity.clone())
            .filter(|holder| !holder.is_empty()),
        version: lease.metadata.resource_version.clone().unwrap_or_default(),
        duration: Duration::from_secs(u64::try_from(seconds).unwrap_or(0)),
        shards: lease
            .annotations()
            .get(SHARDS)
            .and_then(|shards| shards.parse().ok()),
        acquired: spec
            .and_then(|spec| spec.acquire_time.as_ref())
            .map(|MicroTime(at)| *at),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_renewed_lease_says_when_it_was_taken() {
        let options = LeaseOptions {
            namespace: "n".to_owned(),
            replica: "a".to_owned(),
            shards: 1,
            terms: Terms::default(),
        };
        let name = LeaseName::Shard(0);
        let acquired = |lease: &Lease| {
            lease
                .spec
                .as_ref()
                .and_then(|spec| spec.acquire_time.clone())
        };
        let mut stored = object(&name, &options, None, Some("a"));
        assert!(acquired(&stored).is_some());
        let at = Some(MicroTime("2026-01-01T00:00:00Z".parse().unwrap()));
        stored.spec.as_mut().unwrap().acquire_time.clone_from(&at);
        let record = record_of(&stored);
        let written =
            |holder: Option<&str>| acquired(&object(&name, &options, Some(&record), holder));
        assert_eq!(written(Some("a")), at, "it goes on");
        assert_ne!(written(Some("b")), at, "it changes hands");
        assert_ne!(written(None), at, "it is released");
    }
}
