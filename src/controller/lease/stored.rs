//! The Lease as the API server stores it.

use std::time::Duration;

use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use kube::api::{Api, ObjectMeta, PostParams};
use rayfit_core::manifests::names::LEADER_LEASE;
use rayfit_core::reconcile::ownership::lease::leader::LeaseRequest;
use rayfit_core::reconcile::ownership::lease::record::{LeaseRecord, Terms};

use crate::apiserver::server_time::own_timestamp;

/// The options by which a replica takes part.
#[derive(Debug, Clone)]
pub struct LeaseOptions {
    /// The namespace of the Lease.
    pub namespace: String,
    /// The name of this replica, which no other replica has.
    pub replica: String,
    /// The durations by which the Lease is held.
    pub terms: Terms,
}

/// Sends a request; returns the Lease as it is then, if there is one.
pub(super) async fn send(
    api: &Api<Lease>,
    options: &LeaseOptions,
    request: &LeaseRequest,
) -> Result<Option<LeaseRecord>, kube::Error> {
    let post = PostParams::default();
    let Some((current, holder)) = request.write(&options.replica) else {
        let answer = api.get_opt(LEADER_LEASE).await?;
        return Ok(answer.as_ref().map(record_of));
    };
    let lease = lease(options, current, holder);
    let written = match current {
        None => api.create(&post, &lease).await,
        Some(_) => api.replace(LEADER_LEASE, &post, &lease).await,
    };
    written.map(|lease| Some(record_of(&lease)))
}

fn lease(options: &LeaseOptions, current: Option<&LeaseRecord>, holder: Option<&str>) -> Lease {
    let seconds = options.terms.duration.as_secs();
    let now = MicroTime(own_timestamp());
    let renewed = current.filter(|current| current.holder.as_deref() == holder);
    // A Lease is written whole, so what is left out of a renewal is lost.
    let acquired = match renewed {
        Some(current) => current.acquired.map(MicroTime),
        None => Some(now.clone()),
    };
    Lease {
        metadata: ObjectMeta {
            name: Some(LEADER_LEASE.to_owned()),
            namespace: Some(options.namespace.clone()),
            resource_version: current.map(|current| current.version.clone()),
            ..ObjectMeta::default()
        },
        spec: Some(LeaseSpec {
            holder_identity: holder.map(str::to_owned),
            lease_duration_seconds: Some(seconds.try_into().unwrap_or(i32::MAX)),
            renew_time: Some(now),
            acquire_time: acquired,
            ..LeaseSpec::default()
        }),
    }
}

pub(super) fn record_of(lease: &Lease) -> LeaseRecord {
    let spec = lease.spec.clone().unwrap_or_default();
    let seconds = spec.lease_duration_seconds.unwrap_or(0);
    LeaseRecord {
        holder: spec.holder_identity.filter(|holder| !holder.is_empty()),
        version: lease.metadata.resource_version.clone().unwrap_or_default(),
        duration: Duration::from_secs(u64::try_from(seconds).unwrap_or(0)),
        acquired: spec.acquire_time.map(|MicroTime(at)| at),
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
            terms: Terms::default(),
        };
        let acquired = |lease: &Lease| lease.spec.as_ref().unwrap().acquire_time.clone();
        let mut stored = lease(&options, None, Some("a"));
        assert!(acquired(&stored).is_some());
        let at = Some(MicroTime("2026-01-01T00:00:00Z".parse().unwrap()));
        stored.spec.as_mut().unwrap().acquire_time.clone_from(&at);
        let record = record_of(&stored);
        let written = |holder: Option<&str>| acquired(&lease(&options, Some(&record), holder));
        assert_eq!(written(Some("a")), at, "it goes on");
        assert_ne!(written(Some("b")), at, "it changes hands");
        assert_ne!(written(None), at, "it is released");
    }
}
