//! Performs effects. Each chain is performed on its own, so that a failure in one stops no other.
//!
//! Effects on pods and Ray nodes need the write permission: they are sent only shortly after a read of the RayCluster
//! that shows that this process owns it.

use std::time::{Duration, Instant};

use futures_util::stream::{self, StreamExt as _};
use kube::api::Preconditions;
use rayfit_core::reconcile::effects::effect::{Drain, DrainKind, ERROR_KEY, RayletResize};
use rayfit_core::reconcile::effects::failure::{Failure, GcsKind};
use rayfit_core::reconcile::ownership::handover::PERMISSION_S;
use rayfit_core::reconcile::{Chain, Done, Effect, Handover, HandoverStep, Reply};
use rayfit_core::snapshot::OwnPods;
use serde_json::Value;
use tokio::sync::Mutex;

use crate::controller::act::writer;
use crate::controller::act::writer::Writer;
use crate::controller::clock::Clock;
use crate::controller::eligibility::EligibilityCheck;
use crate::gcs::{self, CallError, GcsFault};

/// The most chains of one cluster that are performed at the same time.
const AT_ONCE: usize = 16;

/// A write permission with less time left than this is renewed before it is used.
// A request that is sent with hardly any time left is cut off, and loads the API server for nothing.
const WORTHWHILE: Duration = Duration::from_secs(2);

/// The write permission that is remembered, and the ownership behind it.
#[derive(Debug, Default)]
pub struct PermissionState {
    /// The memory of the ownership hand-over.
    pub handover: Handover,
    /// The time until which effects may be under way.
    until: Option<Instant>,
}

impl PermissionState {
    /// The longest time for an effect that is sent now, if the last read permits any.
    fn remaining(&self) -> Option<Duration> {
        self.until?.checked_duration_since(Instant::now())
    }
}

/// Performs the effects of one cluster.
pub struct Performer<'a> {
    /// Sends requests to the API server.
    pub writer: &'a Writer,
    /// The client of the cluster's GCS.
    pub gcs: &'a gcs::Client,
    /// The write permission for effects on pods and Ray nodes, kept from round to round.
    pub permission: &'a Mutex<PermissionState>,
    /// Judges whether this process may scale the cluster.
    pub judge: &'a EligibilityCheck,
    /// The cluster's pods, as observed at the beginning of the round.
    pub pods: &'a OwnPods,
    /// The clock.
    pub clock: &'a Clock,
}

impl Performer<'_> {
    /// Performs all chains, and returns the result of each effect that was tried.
    pub async fn all(&self, chains: Vec<Chain>) -> Vec<Done> {
        let performed = stream::iter(chains)
            .map(|chain| self.chain(chain))
            .buffer_unordered(AT_ONCE);
        performed.concat().await
    }

    async fn chain(&self, mut chain: Chain) -> Vec<Done> {
        let mut done = Vec::new();
        while let Some(effect) = chain.next() {
            let result = self.effect(&effect).await;
            let (action, about, why) = (effect.kind(), chain.about.to_string(), &chain.why);
            let cluster = self.writer.key.to_string();
            match &result {
                // Reports change nothing, so they are logged only in detail.
                Ok(_) if matches!(effect, Effect::Report(_) | Effect::PutError(_)) => {
                    tracing::debug!(cluster, action, about, "done");
                }
                Ok(Reply::DrainRefused) => {
                    tracing::info!(cluster, action, about, why, "refused: it has work again");
                }
                Ok(_) => tracing::info!(cluster, action, about, why, "done"),
                Err(failure) => {
                    let problem = failure.explain(&effect);
                    tracing::warn!(cluster, action, about, why, problem, "failed");
                }
            }
            chain.answered(result.as_ref(), self.clock.wall());
            done.push(Done {
                about: chain.about.clone(),
                effect,
                result,
            });
        }
        done
    }

    /// Performs one effect. Effects on pods and Ray nodes need the write permission. Every effect
    /// begins only if our Lease outlasts it, whether it goes to the GCS or to the API server.
    async fn effect(&self, effect: &Effect) -> Result<Reply, Failure> {
        match effect {
            Effect::PatchCluster(patch) => {
                let turn = self.writer.turn().await?;
                let sent_at = Instant::now();
                // The patch tests the version of the RayCluster itself, so it needs no write
                // permission.
                let cluster = turn.patch_cluster(&patch.operations).await?;
                self.learn(&mut *self.permission.lock().await, &cluster, sent_at);
                Ok(Reply::Ok)
            }
            Effect::DeleteCluster {
                uid,
                resource_version,
            } => {
                let only_this = Preconditions {
                    uid: Some(uid.clone()),
                    resource_version: Some(resource_version.clone()),
                };
                let turn = self.writer.turn().await?;
                let longest = self.ensure(&turn).await?;
                let deleted = turn.delete_cluster(only_this, longest).await;
                deleted.map(|()| Reply::Ok)
            }
            Effect::NotePod(patch) | Effect::ResizePod(patch) => {
                let subresource = matches!(effect, Effect::ResizePod(_)).then_some("resize");
                let turn = self.writer.turn().await?;
                let longest = self.ensure(&turn).await?;
                let patched = turn.patch_pod(patch, subresource, longest).await;
                patched.map(|()| Reply::Ok)
            }
            Effect::ResizeRaylet(resize) => {
                let longest = self.gcs_permission().await?;
                // Kept until the call has ended: the Lease is not given back while there are such
                // writes.
                let _writing = self.writer.begin(longest)?;
                self.resize_raylet(resize, longest).await
            }
            Effect::Drain(drain) => {
                let longest = self.gcs_permission().await?;
                let _writing = self.writer.begin(longest)?;
                self.drain(drain, longest).await
            }
            // Reports change nothing in the cluster, so they need no write permission.
            Effect::Report(state) => {
                let _writing = self.writer.begin(writer::LONGEST)?;
                let gcs = self.gcs.with_deadline(writer::LONGEST);
                gcs.report(state.clone()).await?;
                Ok(Reply::Ok)
            }
            Effect::PutError(text) => self.put_error(text).await,
        }
    }

    /// Stores the text that drivers print, or removes it.
    async fn put_error(&self, text: &str) -> Result<Reply, Failure> {
        let _writing = self.writer.begin(writer::LONGEST)?;
        let gcs = self.gcs.with_deadline(writer::LONGEST);
        // Drivers print whatever is stored, even an empty text.
        if text.is_empty() {
            gcs.kv_del("", ERROR_KEY).await?;
        } else {
            gcs.kv_put("", ERROR_KEY, text.as_bytes()).await?;
        }
        Ok(Reply::Ok)
    }

    /// The longest time for a call of the GCS. It waits at the API server's gate only if the write
    /// permission has to be renewed.
    async fn gcs_permission(&self) -> Result<Duration, Failure> {
        let remaining = self.permission.lock().await.remaining();
        let longest = if let Some(longest) = remaining.filter(|remaining| *remaining >= WORTHWHILE)
        {
            longest
        } else {
            let turn = self.writer.turn().await?;
            // The turn ends with this block: a GCS, which a tenant controls, is not to hold a place
            // at the gate.
            self.ensure(&turn).await?
        };
        Ok(longest.min(writer::LONGEST))
    }

    /// The longest time for an effect that is sent now, after another read if that is needed. The
    /// caller has passed the gate already, so that the permission does not run out in the queue.
    async fn ensure(&self, turn: &writer::WriteTurn<'_>) -> Result<Duration, Failure> {
        // Held while the read is under way: of a round's effects, which begin together, one reads
        // for all.
        let mut state = self.permission.lock().await;
        if let Some(remaining) = state
            .remaining()
            .filter(|remaining| *remaining >= WORTHWHILE)
        {
            return Ok(remaining);
        }
        let sent_at = Instant::now();
        let cluster = turn.get_cluster().await?;
        self.learn(&mut state, &cluster, sent_at);
        let lost = || Failure::NotSent("this process no longer owns the cluster".to_owned());
        state.remaining().ok_or_else(lost)
    }

    /// Takes in the RayCluster as it was read, or left by our own patch, at the request of `asked`.
    fn learn(&self, state: &mut PermissionState, cluster: &Value, sent_at: Instant) {
        let eligibility = self.judge.eligibility(cluster, self.pods);
        let (role, now) = (&self.judge.role, self.clock.steady());
        let step = state.handover.step(cluster, eligibility.is_ok(), role, now);
        // Counted from when the read was sent, because it may have been answered long after it was
        // true.
        state.until = matches!(step, HandoverStep::Act)
            .then(|| sent_at + Duration::from_secs_f64(PERMISSION_S));
        self.judge.observed.learn(cluster);
    }

    async fn resize_raylet(
        &self,
        resize: &RayletResize,
        longest: Duration,
    ) -> Result<Reply, Failure> {
        let amount = |amount: Option<i64>| amount.map(u64::try_from).transpose();
        let (Ok(cpu_milli), Ok(memory_bytes)) =
            (amount(resize.cpu_milli), amount(resize.memory_bytes))
        else {
            return Err(Failure::NotSent(
                "a raylet cannot have less than nothing".to_owned(),
            ));
        };
        let gcs = self.gcs.with_deadline(longest);
        let resized = gcs.resize_raylet(resize.node_id, cpu_milli, memory_bytes);
        let totals = resized.await?;
        let total = |name: &str| totals.get(name).copied();
        Ok(Reply::RayletTotals {
            cpu: total("CPU"),
            memory: total("memory"),
        })
    }

    async fn drain(&self, drain: &Drain, longest: Duration) -> Result<Reply, Failure> {
        let gcs = self.gcs.with_deadline(longest);
        let by = match drain.kind {
            DrainKind::Idle => None,
            DrainKind::WhenDone => Some(0),
            DrainKind::Until(by) => Some(by),
            DrainKind::Stop => {
                gcs.stop_node(drain.node_id).await?;
                return Ok(Reply::DrainAccepted);
            }
        };
        Ok(match gcs.drain(drain.node_id, &drain.message, by).await? {
            gcs::DrainCall::Accepted => Reply::DrainAccepted,
            gcs::DrainCall::Rejected(_) => Reply::DrainRefused,
        })
    }
}

/// The failure of a call of the GCS, as the reconciler understands it.
impl From<CallError> for Failure {
    fn from(error: CallError) -> Self {
        Self::Gcs {
            kind: gcs_kind(&error.fault),
            message: error.to_string(),
        }
    }
}

/// The kind of an error of the GCS, as the reconciler understands it.
pub fn gcs_kind(fault: &GcsFault) -> GcsKind {
    match fault {
        GcsFault::NotFound(_) => GcsKind::NotFound,
        GcsFault::InvalidArgument(_) => GcsKind::InvalidArgument,
        GcsFault::Unauthenticated(_) | GcsFault::Credentials(_) | GcsFault::Tls(_) => {
            GcsKind::Unauthenticated
        }
        GcsFault::Passive => GcsKind::Passive,
        GcsFault::Unreachable(_) | GcsFault::BackingOff(_) | GcsFault::Deadline(_) => {
            GcsKind::Unreachable
        }
        GcsFault::TooLarge(_) | GcsFault::Unusable(_) => GcsKind::Unusable,
        GcsFault::Unsupported(_) | GcsFault::Other(_) => GcsKind::Other,
    }
}
