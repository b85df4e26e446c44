//! Standing by: reads the heartbeat of the central replicas, to find out whether this sidecar has to stand in.
//!
//! The service account of a head pod may read one Lease of Rayfit's, if the install grants that. It is read every
//! few seconds, from the API server's cache; only the read that would show that nobody has renewed it asks
//! for what was stored last.

use std::time::Duration;

use k8s_openapi::api::coordination::v1::Lease;
use kube::Client;
use kube::api::{Api, GetParams};
use tokio::time::timeout;

use crate::apiserver::error_chain;
use crate::controller::act::writer::LONGEST;
use crate::controller::clock::Clock;
use crate::controller::eligibility::StandIn;
use crate::manifests::names::HEARTBEAT;
use crate::ray::reconcile::{STANDBY, is_namespace};
use crate::ray::{RayObject, ReconcileMode};
use crate::reconcile::HandoverRecord;
use crate::reconcile::ownership::eligibility::Duty;
use crate::reconcile::ownership::standby::{HeartbeatRead, Standby};
use crate::text::shown_text;

/// By how many seconds reads vary, so that the sidecars of many clusters do not read together.
const SPREAD_S: f64 = 0.25;

/// A sidecar that stands by, where its RayCluster asks for that.
pub(super) struct StandingBy {
    client: Client,
    clock: Clock,
    stand_in: StandIn,
    /// The UID of the head pod, by which this sidecar waits a little longer than others.
    head_uid: String,
    /// The namespace of the heartbeat, while the RayCluster asks for a standby.
    namespace: Option<String>,
    standby: Standby,
    /// Why the heartbeat cannot be read, as last logged.
    logged: String,
}

/// Why a sidecar no longer stands in.
#[derive(Debug, Clone, Copy)]
enum OwnAgain {
    /// The heartbeat was renewed.
    Renewed,
    /// A central replica has taken the cluster back.
    AtWork,
    /// The RayCluster names no namespace, or another one, or has another mode.
    NotAsked,
}

impl StandingBy {
    /// Tells `stand_in` what it finds out.
    pub(super) fn new(client: Client, clock: Clock, stand_in: StandIn, head_uid: &str) -> Self {
        Self {
            client,
            clock,
            stand_in,
            head_uid: head_uid.to_owned(),
            namespace: None,
            standby: Standby::of_head(head_uid),
            logged: String::new(),
        }
    }

    /// Takes in the RayCluster as it was read; returns whether that changes who should scale the cluster.
    pub(super) fn learn(&mut self, cluster: Option<&RayObject<'_>>) -> bool {
        let asked = cluster.and_then(asked_namespace);
        let unusable = asked.filter(|asked| !is_namespace(asked));
        if let Some(unusable) = unusable {
            self.log(&format!(
                "{} is not the name of a namespace: correct the annotation {STANDBY}",
                shown_text(unusable)
            ));
        }
        let asked = asked.filter(|asked| is_namespace(asked));
        let mut why = OwnAgain::AtWork;
        if self.namespace.as_deref() != asked {
            why = OwnAgain::NotAsked;
            self.standby = Standby::of_head(&self.head_uid);
            self.namespace = asked.map(str::to_owned);
            if let Some(namespace) = asked {
                tracing::info!(namespace, "standing by for the central replicas");
            }
        }
        if let Some(cluster) = cluster {
            self.standby.saw(HandoverRecord::of(cluster));
        }
        self.decide(why)
    }

    /// How long to wait until the heartbeat has to be read; nothing if it has not.
    pub(super) fn wait(&self) -> Option<Duration> {
        self.namespace.as_ref()?;
        let wait = self.standby.next_read() - self.clock.steady();
        let spread = fastrand::f64() * SPREAD_S;
        Some(Duration::from_secs_f64((wait + spread).max(0.0)))
    }

    /// Reads the heartbeat if that is due; returns whether that changes who should scale the cluster.
    pub(super) async fn look(&mut self) -> bool {
        let asked = self.clock.steady();
        let Some(namespace) = self.namespace.clone() else {
            return false;
        };
        if asked < self.standby.next_read() {
            return false;
        }
        let is_fresh = self.standby.ask(asked);
        let from = if is_fresh {
            GetParams::default()
        } else {
            GetParams::any()
        };
        let leases: Api<Lease> = Api::namespaced(self.client.clone(), &namespace);
        let answer = timeout(LONGEST, leases.get_metadata_with(HEARTBEAT, &from)).await;
        let version = match answer {
            Ok(Ok(lease)) => {
                self.logged.clear();
                lease.metadata.resource_version
            }
            Ok(Err(kube::Error::Api(status))) if status.code == 404 => {
                self.log("there is no heartbeat: is the controller of that namespace older?");
                None
            }
            Ok(Err(kube::Error::Api(status))) if status.code == 403 => {
                // The API server says the same where there is no such namespace.
                self.log(&format!(
                    "it may not be read in namespace {namespace}: if Rayfit is there, install it with rayfit manifests --standby; else correct the annotation {STANDBY}"
                ));
                return false;
            }
            Ok(Err(error)) => {
                self.log(&error_chain::text(&error));
                return false;
            }
            Err(_) => {
                self.log(&format!("no answer within {LONGEST:?}"));
                return false;
            }
        };
        let read = HeartbeatRead {
            version: version.as_deref(),
            asked,
            is_fresh,
        };
        self.standby.heard(&read, self.clock.steady());
        self.decide(OwnAgain::Renewed)
    }

    /// Tells what follows; `why` says why this sidecar no longer stands in, if it has until now.
    fn decide(&self, why: OwnAgain) -> bool {
        let duty = self.standby.duty();
        let changed = self.stand_in.set(duty);
        if changed && duty == Duty::StandIn {
            let silent = self.standby.silent_for(self.clock.steady());
            let seconds = silent.unwrap_or_default().round();
            tracing::warn!(
                seconds,
                "no central replica has renewed its heartbeat: standing in"
            );
        } else if changed {
            match why {
                OwnAgain::Renewed => tracing::info!(
                    "a central replica has renewed its heartbeat: giving the cluster back"
                ),
                OwnAgain::AtWork => tracing::warn!(
                    "a central replica is at work and does not renew the heartbeat: standing by until it does"
                ),
                OwnAgain::NotAsked => tracing::info!(
                    "the RayCluster asks for no standby here any more: standing in no more"
                ),
            }
        }
        changed
    }

    /// Logs why the heartbeat cannot be read: once, not at every attempt.
    fn log(&mut self, why: &str) {
        if self.logged != why {
            let namespace = self.namespace.as_deref();
            tracing::warn!(namespace, why, "the heartbeat {HEARTBEAT} cannot be read");
            why.clone_into(&mut self.logged);
        }
    }
}

/// The namespace whose central replicas the sidecar of a cluster is to stand by for, as it is written there.
fn asked_namespace<'a>(cluster: &RayObject<'a>) -> Option<&'a str> {
    let is_central = cluster.reconcile_mode() == ReconcileMode::Central;
    cluster.annotation(STANDBY).filter(|_| is_central)
}
