//! Performs effects. Each chain is performed on its own, so that a failure in one stops no other.

use std::time::{Duration, Instant};

use futures_util::stream::{self, StreamExt as _};

use crate::controller::act::permission::WritePermission;
use crate::controller::act::writer;
use crate::controller::act::writer::Writer;
use crate::controller::clock::Clock;
use crate::gcs::{self, CallError, GcsFault};
use crate::reconcile::effects::effect::{Drain, DrainKind, ERROR_KEY, RayletResize};
use crate::reconcile::effects::failure::{Failure, GcsKind};
use crate::reconcile::{Chain, Done, Effect, Reply};

/// The most chains of one cluster that are performed at the same time.
const AT_ONCE: usize = 16;

/// Performs the effects of one cluster.
pub struct Performer<'a> {
    /// Sends requests to the API server.
    pub writer: &'a Writer,
    /// The client of the cluster's GCS.
    pub gcs: &'a gcs::Client,
    /// The write permission for effects on pods and Ray nodes.
    pub permission: &'a WritePermission<'a>,
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
            self.log(&chain, &effect, &result);
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
                let asked = Instant::now();
                // The patch tests the version of the RayCluster itself, so it needs no write
                // permission.
                let cluster = turn.patch_cluster(&patch.operations).await?;
                self.permission.wrote(&cluster, asked).await;
                Ok(Reply::Ok)
            }
            Effect::DeleteCluster(deletion) => {
                let turn = self.writer.turn().await?;
                let longest = self.permission.ensure(&turn).await?;
                let deleted = turn.delete_cluster(deletion, longest).await;
                deleted.map(|()| Reply::Ok)
            }
            Effect::NotePod(patch) => {
                let turn = self.writer.turn().await?;
                let longest = self.permission.ensure(&turn).await?;
                turn.patch_pod(patch, longest).await.map(|()| Reply::Ok)
            }
            Effect::ResizePod(patch) => {
                let turn = self.writer.turn().await?;
                let longest = self.permission.ensure(&turn).await?;
                turn.resize_pod(patch, longest).await.map(|()| Reply::Ok)
            }
            Effect::ResizeRaylet(resize) => {
                let longest = self.permission().await?;
                // Kept until the call has ended: the Lease is not given back while there are such
                // writes.
                let _writing = self.writer.begin(longest)?;
                self.resize_raylet(resize, longest).await
            }
            Effect::Drain(drain) => {
                let longest = self.permission().await?;
                let _writing = self.writer.begin(longest)?;
                self.drain(drain, longest).await
            }
            // Reports change nothing in the cluster, so they need no write permission.
            Effect::Report(state) => {
                let _writing = self.writer.begin(writer::LONGEST)?;
                let gcs = self.gcs.with_deadline(writer::LONGEST);
                let told = gcs.report(state.clone()).await;
                told.map_err(|error| gcs_failure(&error))?;
                Ok(Reply::Ok)
            }
            Effect::PutError(text) => {
                let _writing = self.writer.begin(writer::LONGEST)?;
                let told = self.tell_drivers(text, writer::LONGEST).await;
                told.map_err(|error| gcs_failure(&error))?;
                Ok(Reply::Ok)
            }
        }
    }

    /// Stores or deletes the error text.
    async fn tell_drivers(&self, text: &str, longest: Duration) -> Result<(), CallError> {
        let gcs = self.gcs.with_deadline(longest);
        // Drivers print whatever is stored, even an empty text.
        if text.is_empty() {
            gcs.kv_del("", ERROR_KEY).await
        } else {
            gcs.kv_put("", ERROR_KEY, text.as_bytes()).await
        }
    }

    /// The longest time for a call of the GCS. It waits at the API server's gate only if the write
    /// permission has to be renewed.
    async fn permission(&self) -> Result<Duration, Failure> {
        let longest = if let Some(longest) = self.permission.known().await {
            longest
        } else {
            let turn = self.writer.turn().await?;
            // The turn ends with this block: a GCS, which a tenant controls, is not to hold a place
            // at the gate.
            self.permission.ensure(&turn).await?
        };
        Ok(longest.min(writer::LONGEST))
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
        let totals = gcs
            .resize_raylet(resize.node_id, cpu_milli, memory_bytes)
            .await
            .map_err(|error| gcs_failure(&error))?;
        let total = |name: &str| totals.get(name).copied();
        Ok(Reply::RayletTotals {
            cpu: total("CPU"),
            memory: total("memory"),
        })
    }

    async fn drain(&self, drain: &Drain, longest: Duration) -> Result<Reply, Failure> {
        let gcs = self.gcs.with_deadline(longest);
        let answer = match drain.kind {
            DrainKind::Idle => gcs.drain(drain.node_id, &drain.message, None).await,
            DrainKind::WhenDone => gcs.drain(drain.node_id, &drain.message, Some(0)).await,
            DrainKind::Until(by) => gcs.drain(drain.node_id, &drain.message, Some(by)).await,
            DrainKind::Stop => {
                let stopped = gcs.stop_node(drain.node_id).await;
                stopped.map(|()| gcs::DrainCall::Accepted)
            }
        };
        Ok(match answer.map_err(|error| gcs_failure(&error))? {
            gcs::DrainCall::Accepted => Reply::DrainAccepted,
            gcs::DrainCall::Rejected(_) => Reply::DrainRefused,
        })
    }

    /// Logs each effect with its reason.
    fn log(&self, chain: &Chain, effect: &Effect, result: &Result<Reply, Failure>) {
        let (action, about, why) = (effect.kind(), chain.about.to_string(), &chain.why);
        let cluster = self.writer.key().to_string();
        // Reports change nothing, so they are logged only in detail.
        let quiet = matches!(effect, Effect::Report(_) | Effect::PutError(_));
        match result {
            Ok(_) if quiet => tracing::debug!(cluster, action, about, "done"),
            Ok(Reply::DrainRefused) => {
                tracing::info!(cluster, action, about, why, "refused: it has work again");
            }
            Ok(_) => tracing::info!(cluster, action, about, why, "done"),
            Err(failure) => {
                let problem = failure.explain(effect);
                tracing::warn!(cluster, action, about, why, problem, "failed");
            }
        }
    }
}

/// The failure of a call of the GCS, as the reconciler understands it.
pub fn gcs_failure(error: &CallError) -> Failure {
    let kind = match &error.fault {
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
    };
    Failure::Gcs {
        kind,
        message: error.to_string(),
    }
}
