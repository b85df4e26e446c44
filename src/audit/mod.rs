//! The background audit: every stored Ray object is checked by the function that admission uses, as
//! if it were created now. One replica does it, the one that holds the Lease. It writes its results
//! into the status of RayPolicies, into metrics and into OpenReports, and only where they have
//! changed. The same replica makes the webhooks fail closed where a policy asks for it.
//!
//! Objects are followed by watches. When policies change, an exemption ends, or ten minutes have
//! passed, all objects are listed and checked again, a page at a time; when namespaces change, too,
//! but not before the last results are written. Only the results are kept, not the objects.
//!
//! In: policies, facts and pages of stored objects. Out: statuses, reports and `failurePolicy`. Invariant: nobody else
//! writes these while this replica holds the Lease.

mod board;
pub mod closing;
mod fail_closed;
mod options;
mod reports;
mod status;
mod sweep;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use arc_swap::ArcSwap;
use kube_lease_manager::{LeaseCreateMode, LeaseManager, LeaseManagerBuilder, LeaseManagerError};
use tokio::task::JoinHandle;

pub use fail_closed::release;
pub use options::AuditOptions;
use rayfit_core::manifests::names::AUDIT_LEASE;
use rayfit_core::policy::EffectivePolicy;

use crate::apiserver::Informers;
use crate::telemetry::Metrics;

/// Seconds for which the Lease is valid, and seconds before its end at which it is renewed.
const VALID: u64 = 15;
const GRACE: u64 = 5;

/// The time from a failure to the next request for the Lease.
const RETRY: Duration = Duration::from_secs(10);

/// The time between two checks whether the policies are known.
const LOOK: Duration = Duration::from_millis(100);

/// Audits for ever, whenever this replica holds the Lease, once the policies are `known`.
pub async fn run(
    informers: Informers,
    options: AuditOptions,
    policy: Arc<ArcSwap<EffectivePolicy>>,
    known: Arc<AtomicBool>,
    metrics: Arc<Metrics>,
) {
    metrics.audit.replicas.set(1);
    // Without the policies, webhooks that one of them makes fail closed would count as closed for
    // nobody, and be opened.
    while !known.load(Ordering::Acquire) {
        tokio::time::sleep(LOOK).await;
    }
    loop {
        if let Err(error) = Box::pin(hold(&informers, &options, &policy, &metrics)).await {
            tracing::warn!(%error, "audit: the Lease cannot be requested, trying again");
        }
        tokio::time::sleep(RETRY).await;
    }
}

async fn hold(
    informers: &Informers,
    options: &AuditOptions,
    policy: &ArcSwap<EffectivePolicy>,
    metrics: &Metrics,
) -> Result<(), LeaseManagerError> {
    let manager = LeaseManagerBuilder::new(informers.client.clone(), AUDIT_LEASE)
        .with_namespace(&options.namespace)
        .with_identity(&options.identity)
        .with_duration(VALID)
        .with_grace(GRACE)
        .with_field_manager("rayfit")
        .with_create_mode(LeaseCreateMode::AutoCreate)
        .build()
        .await?;
    let (mut held, renewing) = manager.watch().await;
    loop {
        if *held.borrow_and_update() {
            tracing::info!("audit: this replica holds the Lease and audits");
            metrics.audit.leads(true);
            let changed = tokio::select! {
                () = sweep::audit(informers, options, policy, metrics) => Ok(()),
                changed = held.changed() => changed,
            };
            metrics.audit.leads(false);
            if changed.is_err() {
                return ended(renewing).await;
            }
        } else if held.changed().await.is_err() {
            return ended(renewing).await;
        }
    }
}

/// The reason why the Lease is no longer renewed. A panic in the renewal is passed on.
async fn ended(
    renewing: JoinHandle<Result<LeaseManager, LeaseManagerError>>,
) -> Result<(), LeaseManagerError> {
    match renewing.await {
        Ok(ended) => ended.map(drop),
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            Err(_cancelled) => Ok(()),
        },
    }
}
