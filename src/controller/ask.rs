//! Asking the GCS of a cluster for its state.

use super::reconciler::Reconciler;
use crate::controller::head::address::{Head, NoHead};
use crate::controller::head::blind;
use crate::controller::head::credentials::{CredentialsError, Refusals};
use crate::controller::head::extras::Extras;
use crate::controller::head::memory_watch::MemoryWatch;
use crate::gcs;
use crate::reconcile::observed::users::LastUsers;
use crate::reconcile::{Blind, HeadPod};
use crate::snapshot::gcs::{ClusterResourceState, RayUsers};

impl Reconciler {
    /// The state of the Ray cluster, with who uses it if an unused one ends, or the reason why it cannot
    /// be obtained.
    pub(super) async fn ask(
        &mut self,
        head: &Result<(Head, HeadPod), NoHead>,
        extras: &Extras,
    ) -> Result<(gcs::Client, ClusterResourceState, Option<gcs::ClientPlace>), Blind> {
        let (head, pod) = head.as_ref().map_err(|none| {
            self.metrics.gcs_is_well(&self.about.uid);
            blind::no_head(none)
        })?;
        let client = self.client(head).await;
        let client = client.map_err(|error| blind::no_credentials(pod, &error))?;
        match client.whole_state().await {
            Ok((mut state, place)) => {
                if let Some(another) = Blind::to_another(pod, &state) {
                    return Err(another);
                }
                if extras.ends_unused {
                    state.users = self.users(&client, place.as_ref()).await;
                }
                let watch = &mut self.state.memory_watch;
                watch.fill(&client, &extras.follows, &mut state, &self.clock);
                self.metrics.gcs_is_well(&self.about.uid);
                self.state.refusals = Refusals::default();
                Ok((client, state, place))
            }
            Err(error) => {
                self.metrics.gcs_error(&self.about.uid, &error.fault);
                let is_refused = matches!(
                    error.fault,
                    gcs::GcsFault::Unauthenticated(_)
                        | gcs::GcsFault::Credentials(_)
                        | gcs::GcsFault::Tls(_)
                );
                // The Secret may have been replaced.
                if is_refused && self.state.refusals.read_again() {
                    self.state.gcs = None;
                }
                Err(blind::no_answer(pod, &error))
            }
        }
    }

    async fn users(
        &mut self,
        client: &gcs::Client,
        place: Option<&gcs::ClientPlace>,
    ) -> Option<RayUsers> {
        let now = self.clock.steady();
        if let Some(users) = self.state.users.serving(now) {
            return Some(users);
        }
        let users = client.users(place).await.ok();
        self.state.users.note(users, now);
        users
    }

    async fn client(&mut self, head: &Head) -> Result<gcs::Client, CredentialsError> {
        let key = &self.judge.key;
        if let Some((known, client)) = &self.state.gcs
            && known == head
        {
            return Ok(client.clone());
        }
        let client = self.credentials.client(key, head).await?;
        // Its subscription is at the GCS of the head before.
        self.state.memory_watch = MemoryWatch::default();
        if (self.state.gcs.as_ref()).is_some_and(|(known, _)| known.uid != head.uid) {
            self.state.look.memory.forget_gcs();
            self.state.users = LastUsers::default();
        }
        self.state.gcs = Some((head.clone(), client.clone()));
        Ok(client)
    }
}
