//! The controller as a part of a process: from its options to its end.

use std::sync::Arc;

use kube::Client;
use tokio::sync::{mpsc, watch};

use super::announce::Announcer;
use super::credentials::Credentials;
use super::crowd::Crowd;
use super::fleet::Fleet;
use super::judge;
use super::lease::{Fence, Terms, keeper};
use super::measure::Measures;
use super::observe::{Observed, Reach};
use super::tuning::{InForce, Tuning};
use super::writer::Requests;
use crate::telemetry::controller::ScalingMetrics;

/// One part in so many of the rate of requests is for Events at the most.
const EVENTS_SHARE: u32 = 10;

/// What the controller is started with.
#[derive(Debug, Clone)]
pub struct Options {
    /// What is watched.
    pub reach: Reach,
    /// The namespace of the Leases.
    pub lease_namespace: String,
    /// The name of this replica, unlike that of any other.
    pub replica: String,
    /// The number of shards; the same for all replicas.
    pub shards: u32,
    /// The times of Leases.
    pub terms: Terms,
    /// Requests a second, at most.
    pub rate: u32,
    /// Requests at once after a quiet time.
    pub burst: u32,
    /// Rayfit's image.
    pub image: String,
}

/// Scales clusters as the policies `in_force` say until `stop` is true, then lets writes end and
/// gives the Leases back.
pub async fn run(
    options: Options,
    client: Client,
    in_force: InForce,
    metrics: Arc<ScalingMetrics>,
    stop: watch::Receiver<bool>,
) {
    let (tell, changes) = mpsc::unbounded_channel();
    let observed = Observed::new(tell);
    let fence = Fence::default();
    let measures = Measures::new(metrics);
    measures.shards(options.shards.max(1));
    let requests = Requests::new(client.clone(), options.rate, options.burst);
    let (announcer, publishing) = Announcer::publishing(
        requests.clone(),
        options.rate / EVENTS_SHARE,
        options.replica.clone(),
        measures.clone(),
    );
    let fleet = Fleet {
        observed: observed.clone(),
        requests,
        fence: fence.clone(),
        shards: options.shards.max(1),
        credentials: Credentials::Secrets(client.clone()),
        is_ours: judge::images(&options.image),
        tuning: Tuning::Policies(in_force),
        announcer,
        measures: measures.clone(),
        crowd: Crowd::default(),
    };
    tracing::info!(replica = options.replica, shards = options.shards, reach = ?options.reach, "scaling clusters in mode central");
    let leases = keeper::Options {
        namespace: options.lease_namespace,
        replica: options.replica,
        shards: options.shards.max(1),
        terms: options.terms,
    };
    let publishing = tokio::spawn(publishing);
    let watching = tokio::spawn(observed.watch(client.clone(), options.reach));
    let (release, released) = watch::channel(false);
    let keeping = tokio::spawn(keeper::keep(leases, client, fence, measures, released));
    fleet.run(changes, stop).await;
    // Only now: what was being written was written under the Leases.
    release.send_replace(true);
    let _ = keeping.await;
    watching.abort();
    publishing.abort();
    tracing::info!("scaling stopped, Leases given back");
}
