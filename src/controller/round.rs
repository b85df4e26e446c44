//! A round of one cluster: its GCS is asked, and the steps that follow are performed.

use std::time::Instant;

use super::reconciler::{Observation, Reconciler};
use crate::controller::act::perform::Performer;
use crate::controller::act::permission::WritePermission;
use crate::controller::observe::ClusterView;
use crate::controller::offload::{is_slow_to_compare, is_slow_to_plan, offload_if};
use crate::controller::requeue::Requeue;
use crate::gcs;
use crate::reconcile::look::{RoundStep, step};
use crate::reconcile::{ScalerRole, UnchangedCheck};
use crate::snapshot::gcs::ClusterResourceState;
use crate::snapshot::pod::PodRole;
use crate::snapshot::{API_VERSION, Snapshot};

impl Reconciler {
    /// Asks the GCS, and goes on with what it says.
    pub(super) async fn act(&mut self, asking: step::AskingGcs) -> Requeue {
        let Some(mut observation) = self.state.observation.take() else {
            return Requeue::UntilChanged;
        };
        let began = Instant::now();
        let mut is_passive = false;
        let requeue = match self.ask(&observation.head, &observation.extras).await {
            Ok((client, gcs, place)) => {
                self.log_reason(String::new());
                let now = self.clock.wall();
                let step = asking.answered(&mut self.state.look, gcs, now);
                self.round(&mut observation, &client, place, step).await
            }
            Err(why) => {
                observation.unchanged = None;
                is_passive =
                    why.is_passive() && matches!(self.judge.role, ScalerRole::Central { .. });
                let finishing = asking.blind(&self.state.look, &why, self.clock.wall());
                let why = finishing.round().plan.waiting.as_ref();
                let why = why.map(ToString::to_string);
                self.log_reason(why.unwrap_or_default());
                self.finish(finishing).0
            }
        };
        if is_passive {
            // Without the observation, the next look finds another head pod to ask.
            self.state.passive = observation.sight;
        } else {
            self.state.observation = Some(observation);
        }
        self.metrics.round(began.elapsed());
        requeue
    }

    async fn round(
        &mut self,
        observation: &mut Observation,
        gcs: &gcs::Client,
        mut place: Option<gcs::ClientPlace>,
        mut step: RoundStep<ClusterResourceState>,
    ) -> Requeue {
        let mut is_slow = false;
        let namespace = &self.judge.key.namespace.clone();
        loop {
            step = match step {
                RoundStep::Compare(mut comparing) => {
                    let now = self.clock.wall();
                    let check = observation.unchanged.take();
                    let answer = &*comparing.answer();
                    let is_long = check.is_some() && is_slow_to_compare(answer);
                    let holds = |check: &UnchangedCheck| check.holds(answer, now);
                    let worked = &mut self.state.worked;
                    let same = offload_if(namespace, is_long, worked, || check.filter(holds)).await;
                    match same {
                        Some(check) => {
                            observation.unchanged = Some(check);
                            comparing.same(&mut self.state.look, check.is_busy(), now)
                        }
                        None => comparing.differs(&mut self.state.look),
                    }
                }
                RoundStep::Observe(observing) => {
                    let (state, observing) = observing.answer();
                    is_slow = is_slow_to_plan(&observation.texts, &state);
                    let mut worked = self.state.worked;
                    let snapshot = || self.snapshot(observation.texts.read(), state);
                    let snapshot = offload_if(namespace, is_slow, &mut worked, snapshot).await;
                    self.state.worked = worked;
                    observing.observed(snapshot)
                }
                RoundStep::Decide(deciding) => {
                    let (look, worked) = (&self.state.look, &mut self.state.worked);
                    let round =
                        offload_if(namespace, is_slow, worked, || deciding.round(look)).await;
                    deciding.decided(round)
                }
                RoundStep::Perform(performing, snapshot) => {
                    // The answer has been used up, and effects may wait long at the gate: the
                    // permit for a large answer goes to the next cluster.
                    drop(place.take());
                    let mut pods = snapshot.pods;
                    // The judgement on who may scale the cluster needs its heads alone, so ten
                    // thousand workers need not be kept until the last effect is done.
                    pods.retain(|pod| pod.role == PodRole::Head);
                    let permission = WritePermission {
                        state: &self.state.permission,
                        judge: &self.judge,
                        pods: &pods,
                        clock: &self.clock,
                    };
                    let performer = Performer {
                        writer: &self.writer,
                        gcs,
                        permission: &permission,
                        clock: &self.clock,
                    };
                    let done = performer.all(performing.chains().to_vec()).await;
                    performing.performed(done)
                }
                RoundStep::ReadCluster(rereading) => {
                    self.look_up().await;
                    rereading.read()
                }
                RoundStep::Finish(finishing) => {
                    let (requeue, idle) = self.finish(finishing);
                    observation.unchanged = match idle {
                        Some((round, snapshot)) => {
                            let (look, worked) = (&self.state.look, &mut self.state.worked);
                            offload_if(namespace, is_slow, worked, || {
                                UnchangedCheck::of(&round, *snapshot, &look.memory, &look.settings)
                            })
                            .await
                        }
                        None => None,
                    };
                    return requeue;
                }
                RoundStep::Rest(rest) => return self.rest(rest),
            }
        }
    }

    fn snapshot(&self, scene: ClusterView, gcs: ClusterResourceState) -> Snapshot {
        Snapshot {
            api_version: API_VERSION.to_owned(),
            kind: "Snapshot".to_owned(),
            time: self.clock.rfc3339(),
            ray_cluster: scene.cluster,
            pods: scene.pods,
            nodes: scene.nodes,
            loads: scene.loads,
            gcs,
            history: self.state.look.memory.history.clone(),
        }
    }
}
