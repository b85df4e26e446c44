//! One look at a cluster: judge, own, ask, decide, perform, remember.
//!
//! `look` goes from what is seen of the objects to the effects of a round, and `remember` from their results
//! to the time of the next look; between the two the effects are performed, which takes its time. What a look
//! needs of the process around it is a `LookHost`. The controller is one for a live cluster, and the simulator
//! for its world, so what is simulated is the order that ships.
//!
//! Invariants:
//!
//! - Nothing is decided unless the objects that were seen last show that this process owns the
//!   cluster, and the GCS has answered in this very look.
//! - A round is only spared if the round before it found nothing to do, and no object has
//!   changed since.

use json_patch::Patch;

use crate::reconcile::decide::blind;
use crate::reconcile::effects::chain::Done;
use crate::reconcile::effects::failure::{Failure, Meaning};
use crate::reconcile::events::event::Announcements;
use crate::reconcile::memory::RoundMemory;
use crate::reconcile::observed::blind::Blind;
use crate::reconcile::observed::cadence;
use crate::reconcile::ownership::handover::HandoverStep;
use crate::reconcile::round::Round;
use crate::reconcile::settings::RoundSettings;
use crate::seconds::Retry;
use crate::snapshot::{OwnPods, Snapshot};

/// The wait, in seconds, while the first list of pods is incomplete, or policies are not known.
// A pod that is not known yet is not missing, and policies may say how the cluster is scaled.
const LISTING_S: f64 = 0.1;

/// The wait after a failed write of the hand-over record, in seconds.
const RECORD_RETRY_S: f64 = 1.0;

/// The waits after the hand-over record was refused.
// A webhook refuses it, or a permission is missing: that stays as it is until somebody changes it.
const RECORD_REFUSED: Retry = Retry {
    first_s: RECORD_RETRY_S,
    longest_s: 60.0,
};

/// The wait for a Ray cluster that has not started, in seconds.
const STARTING_S: f64 = 1.0;

/// Memory of a cluster from look to look. All of it may be lost at any time.
#[derive(Debug, Clone, Default)]
pub struct LookState {
    /// The rounds' memory.
    pub memory: RoundMemory,
    /// The settings by which the cluster is scaled.
    pub settings: RoundSettings,
    /// If the hand-over record was refused the last time: the number of refusals in a row, and the time until
    /// which it is not tried again, by a clock that only goes forward.
    refused: Option<(u32, f64)>,
    /// Ownership of the cluster by this process, by the objects that were seen last.
    is_owned: bool,
    /// The last look found nothing to do, and no object has changed since.
    pub is_idle: bool,
}

impl LookState {
    /// The seconds until the next look, if nothing happens before; `busy` is how many clusters of the
    /// process are busy, if this one is.
    pub fn interval_s(&self, busy: Option<usize>, now: f64) -> f64 {
        match busy {
            Some(clusters) => cadence::busy_s(clusters, &self.settings.pace),
            None => cadence::quiet_s(self.memory.changed_at, now, &self.settings.pace),
        }
    }
}

/// Freshness of the watched objects of a cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Freshness {
    /// Not all of them are known, or the policies are not.
    NotListed,
    /// There is no RayCluster.
    Gone,
    /// The objects of the last look, under the same policies.
    Same,
    /// Others.
    Changed,
}

/// The time of the next look.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum LookEnd {
    /// At once, because the hand-over record was written: the next look reads what it says now.
    AtOnce,
    /// After so many seconds, or when something changes.
    After(f64),
    /// At the next change.
    UntilChanged,
    /// As [`LookState::interval_s`] says for a cluster that is busy or not.
    Paced {
        /// Something is pending or on its way.
        busy: bool,
    },
}

/// The result of [`look`].
#[must_use]
#[derive(Debug)]
pub enum Looked {
    /// The look is over.
    Rest(LookEnd),
    /// The effects of this round are to be performed, and their results [remembered](remember). The pods are those
    /// that it was made from.
    // Effects may wait long at the gate, in all clusters at once: the rest of the snapshot would be most of the
    // process's memory meanwhile.
    Effects(Box<Round>, OwnPods),
}

/// The process in which a look is made: it reads, asks and writes.
#[expect(
    async_fn_in_trait,
    reason = "whoever awaits a look knows its host, and so whether its futures are sent between threads"
)]
pub trait LookHost {
    /// An answer of the GCS.
    type Answer;

    /// Seconds since 1970.
    fn wall(&self) -> f64;

    /// A random number from 0 to 1.
    fn jitter(&mut self) -> f64;

    /// Compares the watched objects with those of the last look.
    fn freshness(&mut self) -> Freshness;

    /// Reads the objects, and judges by them who may scale the cluster. Whoever is to act makes the settings of
    /// `state` anew, because policies, or the labels that they match, may have changed. Also returns the time of the
    /// judgement, in seconds of a clock that only goes forward.
    async fn judge(&mut self, state: &mut LookState) -> (HandoverStep, f64);

    /// Sends a patch of the hand-over record, which claims the cluster or releases it.
    async fn write_record(&mut self, patch: &Patch, is_claim: bool) -> Result<(), Failure>;

    /// Reads the RayCluster again, if it can: a watch may lag, and a sidecar has none for the RayCluster.
    async fn read_cluster(&mut self);

    /// Asks the GCS. There is no reason for its silence while Ray has not started at all.
    async fn ask(&mut self, state: &mut LookState) -> Result<Self::Answer, Option<Blind>>;

    /// Compares an answer with that of the last round, which found nothing to do. If a round would find nothing
    /// either, returns whether something is pending or on its way.
    async fn unchanged(&mut self, state: &LookState, answer: &Self::Answer) -> Option<bool>;

    /// Makes a snapshot of the answer and the objects, and its [`round`](crate::reconcile::round()). That may take
    /// long.
    async fn decide(&mut self, state: &LookState, answer: Self::Answer) -> (Round, Box<Snapshot>);

    /// Announces a round that has been remembered. One that found nothing to do comes with its snapshot, to find
    /// out whether later ones would find nothing either.
    async fn finish(
        &mut self,
        state: &LookState,
        round: Round,
        done: &[Done],
        announcements: Announcements,
        idle: Option<Box<Snapshot>>,
    );
}

/// Looks at a cluster up to the effects that are to be performed, if there are any.
pub async fn look<H: LookHost>(state: &mut LookState, host: &mut H) -> Looked {
    // Judge. As long as nothing has changed, the owner need not read its objects again.
    match host.freshness() {
        Freshness::NotListed => return Looked::Rest(LookEnd::After(LISTING_S)),
        Freshness::Gone => return Looked::Rest(LookEnd::UntilChanged),
        Freshness::Same if state.is_owned => {}
        Freshness::Same | Freshness::Changed => {
            state.is_owned = false;
            state.is_idle = false;
            if let Some(end) = own(state, host).await {
                return Looked::Rest(end);
            }
            state.is_owned = true;
        }
    }
    // Ask. Nothing is done on missing data, but an outage is remembered, so that it is told once it lasts.
    let answer = match host.ask(state).await {
        Ok(answer) => answer,
        Err(None) => return Looked::Rest(LookEnd::After(STARTING_S)),
        Err(Some(why)) => {
            let round = blind(&state.memory, &why, host.wall());
            return Looked::Rest(remember(state, host, round, &[], None).await);
        }
    };
    if state.memory.changed_at == 0.0 {
        // The quiet time of the cluster is not known after a start.
        state.memory.changed_at = host.wall();
    }
    // Decide, unless that would come to nothing as it did the last time. With a round at each look, a thousand
    // clusters of ten pods took 0.6 cores at rest, and 0.3 without: their objects need not be read, nor planned for.
    if state.is_idle
        && let Some(busy) = host.unchanged(state, &answer).await
    {
        state.memory.is_the_same(busy, host.wall());
        return Looked::Rest(LookEnd::Paced { busy });
    }
    state.is_idle = false;
    let (round, snapshot) = host.decide(state, answer).await;
    if round.chains.is_empty() {
        return Looked::Rest(remember(state, host, round, &[], Some(snapshot)).await);
    }
    Looked::Effects(Box::new(round), snapshot.pods)
}

/// Takes the next step of the hand-over. Returns how the look ends, unless this process owns the cluster.
async fn own<H: LookHost>(state: &mut LookState, host: &mut H) -> Option<LookEnd> {
    let (step, now) = host.judge(state).await;
    let is_claim = matches!(step, HandoverStep::Claim(_));
    let patch = match step {
        HandoverStep::Act => return None,
        // No effect is under way between two looks, so ownership can be released at once.
        HandoverStep::Claim(patch) | HandoverStep::Release(patch) => patch,
        HandoverStep::Wait { until, .. } => return Some(LookEnd::After(until - now)),
        HandoverStep::Rest => {
            // The memory of a cluster is wrong once another process may have scaled it.
            state.memory = RoundMemory::default();
            return Some(LookEnd::UntilChanged);
        }
    };
    if let Some((_, until)) = state.refused
        && now < until
    {
        return Some(LookEnd::After(until - now));
    }
    let refusals = state.refused.take().map_or(0, |(refusals, _)| refusals);
    let Err(failure) = host.write_record(&patch, is_claim).await else {
        return Some(LookEnd::AtOnce);
    };
    let mut wait_s = RECORD_RETRY_S;
    match failure.meaning() {
        // The RayCluster has changed since it was read, as it does all the time while KubeRay creates it.
        Meaning::Stale => host.read_cluster().await,
        Meaning::Refused | Meaning::Forbidden => {
            let refusals = refusals.saturating_add(1);
            wait_s = RECORD_REFUSED.wait_s(refusals);
            state.refused = Some((refusals, now + wait_s));
        }
        _ => {}
    }
    Some(LookEnd::After(wait_s))
}

/// Remembers a round with the results of its effects, whether all of them were tried or not. `idle` is its
/// snapshot if it found nothing to do.
pub async fn remember<H: LookHost>(
    state: &mut LookState,
    host: &mut H,
    round: Round,
    done: &[Done],
    idle: Option<Box<Snapshot>>,
) -> LookEnd {
    // Another write came first, or the observed objects were stale: the watch may show so much later.
    let is_stale = |failure: &Failure| failure.meaning() == Meaning::Stale;
    if (done.iter()).any(|done| done.result.as_ref().is_err_and(is_stale)) {
        host.read_cluster().await;
    }
    let (now, busy) = (host.wall(), round.busy);
    let announcements = (state.memory).fold(&round, done, &state.settings, now, || host.jitter());
    state.is_idle = idle.is_some();
    host.finish(state, round, done, announcements, idle).await;
    LookEnd::Paced { busy }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;
    use serde_json::{Value, json};

    use super::*;
    use crate::manifests::names::NAMESPACE;
    use crate::reconcile::effects::failure::ApiStatus;
    use crate::reconcile::ownership::handover::{GRACE_S, RECORD};
    use crate::reconcile::{Handover, Reply, ScalerRole, eligibility, round};
    use crate::snapshot::ClusterId;
    use crate::snapshot::pod_object::PodObject;

    /// 2026-01-14T12:00:00Z
    const NOW: f64 = 1_768_392_000.0;

    /// A process in which nothing happens but what a test says.
    struct PlayedHost {
        cluster: Value,
        freshness: Freshness,
        handover: Handover,
        steady: f64,
        /// The answer to a write of the hand-over record.
        written: Result<(), Failure>,
        /// The number of tasks that the GCS has waiting for a CPU each.
        answer: Result<u32, Option<Blind>>,
        unchanged: Option<bool>,
        /// Everything that was asked of it since the last look.
        calls: Vec<&'static str>,
    }

    impl PlayedHost {
        /// The hand-over record of the cluster is this one.
        fn new(record: &str) -> Self {
            Self {
                cluster: cluster(record),
                freshness: Freshness::Changed,
                handover: Handover::default(),
                steady: 0.0,
                written: Ok(()),
                answer: Ok(0),
                unchanged: None,
                calls: Vec::new(),
            }
        }

        fn look(&mut self, state: &mut LookState) -> Looked {
            self.calls.clear();
            look(state, self).now_or_never().unwrap()
        }

        /// Looks at objects that have changed; how a look ends that comes to no effects.
        fn rest(&mut self, state: &mut LookState) -> LookEnd {
            match self.look(state) {
                Looked::Rest(end) => end,
                Looked::Effects(round, _) => panic!("{:?}", round.chains),
            }
        }

        /// A host and a state after a round that found nothing to do.
        fn idle() -> (Self, LookState) {
            let (mut host, mut state) = (Self::new("central/rayfit-system"), LookState::default());
            // The first rounds report the state to Ray.
            for _ in 0..3 {
                let Looked::Effects(round, _) = host.look(&mut state) else {
                    assert_eq!(host.calls, ["ask", "decide", "idle"]);
                    return (host, state);
                };
                let sent = round.chains.iter().map(|chain| Done {
                    about: chain.about.clone(),
                    effect: chain.next().unwrap(),
                    result: Ok(Reply::Ok),
                });
                let done: Vec<Done> = sent.collect();
                let remembered = remember(&mut state, &mut host, *round, &done, None);
                let _ = remembered.now_or_never().unwrap();
                host.freshness = Freshness::Same;
            }
            panic!("there is always something to do");
        }
    }

    impl LookHost for PlayedHost {
        type Answer = u32;

        fn wall(&self) -> f64 {
            NOW
        }

        fn jitter(&mut self) -> f64 {
            0.5
        }

        fn freshness(&mut self) -> Freshness {
            self.freshness
        }

        async fn judge(&mut self, _: &mut LookState) -> (HandoverStep, f64) {
            self.calls.push("judge");
            let role = ScalerRole::central(NAMESPACE);
            let eligibility = eligibility(&self.cluster, &pods(&self.cluster), &role, |_| true);
            let step = (self.handover).step(&self.cluster, eligibility.is_ok(), &role, self.steady);
            (step, self.steady)
        }

        async fn write_record(&mut self, _: &Patch, is_claim: bool) -> Result<(), Failure> {
            self.calls.push(if is_claim { "claim" } else { "release" });
            self.written.clone()
        }

        async fn read_cluster(&mut self) {
            self.calls.push("read");
        }

        async fn ask(&mut self, _: &mut LookState) -> Result<u32, Option<Blind>> {
            self.calls.push("ask");
            self.answer.clone()
        }

        async fn unchanged(&mut self, _: &LookState, _: &u32) -> Option<bool> {
            self.calls.push("compare");
            self.unchanged
        }

        async fn decide(&mut self, state: &LookState, waiting: u32) -> (Round, Box<Snapshot>) {
            self.calls.push("decide");
            let snapshot = snapshot(&self.cluster, waiting);
            let round = round(&snapshot, &state.memory, &state.settings);
            (round, Box::new(snapshot))
        }

        async fn finish(
            &mut self,
            _: &LookState,
            _: Round,
            _: &[Done],
            _: Announcements,
            idle: Option<Box<Snapshot>>,
        ) {
            self.calls
                .push(if idle.is_some() { "idle" } else { "made" });
        }
    }

    /// A RayCluster with this hand-over record.
    fn cluster(record: &str) -> Value {
        let container =
            json!({ "name": "ray", "resources": { "limits": { "cpu": "1", "memory": "1Gi" } } });
        let template = json!({ "spec": { "containers": [container] } });
        json!({
            "apiVersion": "ray.io/v1", "kind": "RayCluster",
            "metadata": { "name": "demo", "namespace": "ray", "uid": "u", "resourceVersion": "7", "generation": 1,
                "annotations": { "rayfit.dev/reconcile": "central", RECORD: record } },
            "spec": {
                "enableInTreeAutoscaling": true, "autoscalerOptions": { "version": "v2" },
                "headGroupSpec": { "rayStartParams": {}, "template": template },
                "workerGroupSpecs": [{
                    "groupName": "cpu", "replicas": 0, "minReplicas": 0, "maxReplicas": 3,
                    "rayStartParams": {}, "template": template
                }]
            },
            "status": { "head": { "podIP": "10.0.0.1" } }
        })
    }

    fn pods(of: &Value) -> OwnPods {
        let head: PodObject = serde_json::from_value(json!({
            "metadata": {
                "name": "h", "namespace": "ray", "uid": "h",
                "labels": { "ray.io/cluster": "demo", "ray.io/node-type": "head", "ray.io/group": "headgroup" },
                "ownerReferences": [{ "kind": "RayCluster", "name": "demo", "uid": "u", "controller": true }]
            },
            "status": { "phase": "Running" }
        }))
        .unwrap();
        OwnPods::divide(ClusterId::of(of), [head]).0
    }

    /// The cluster with so many tasks that wait for a CPU each.
    fn snapshot(cluster: &Value, waiting: u32) -> Snapshot {
        let asked = json!([{ "request": { "resourcesBundle": { "CPU": 1 } }, "count": waiting }]);
        let mut snapshot: Snapshot = serde_json::from_value(json!({
            "apiVersion": "rayfit.dev/v1alpha1", "kind": "Snapshot", "time": "2026-01-14T12:00:00Z",
            "rayCluster": cluster, "pods": [],
            "gcs": {
                "nodeStates": [{
                    "nodeId": "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA==", "instanceId": "h",
                    "rayNodeTypeName": "headgroup", "status": "IDLE", "idleDurationMs": 0,
                    "totalResources": {}, "availableResources": {}
                }],
                "pendingResourceRequests": if waiting > 0 { asked } else { json!([]) }
            }
        }))
        .unwrap();
        snapshot.pods = pods(cluster);
        snapshot
    }

    fn refusal(code: u16, reason: &str) -> Failure {
        Failure::Api(ApiStatus {
            code,
            reason: reason.to_owned(),
            message: "admission webhook \"w\" denied the request".to_owned(),
            ..ApiStatus::default()
        })
    }

    #[test]
    fn what_is_not_known_is_waited_for_and_what_is_gone_is_not() {
        let (mut host, mut state) = (PlayedHost::new("nobody"), LookState::default());
        host.freshness = Freshness::NotListed;
        assert_eq!(host.rest(&mut state), LookEnd::After(0.1));
        host.freshness = Freshness::Gone;
        assert_eq!(host.rest(&mut state), LookEnd::UntilChanged);
        assert_eq!(host.calls, [""; 0]);
        let mut host = PlayedHost::new("central/rayfit-system");
        host.answer = Err(None);
        assert_eq!(host.rest(&mut state), LookEnd::After(1.0));
        assert_eq!(host.calls, ["judge", "ask"], "Ray has not started");
    }

    #[test]
    fn objects_are_judged_again_until_they_show_that_the_cluster_is_owned() {
        let mut state = LookState::default();
        let mut host = PlayedHost::new("central/rayfit-system");
        host.freshness = Freshness::Same;
        let _ = host.look(&mut state);
        assert_eq!(host.calls, ["judge", "ask", "decide"], "never judged");
        let _ = host.look(&mut state);
        assert_eq!(host.calls, ["ask", "decide"]);
        // Another one owns it now.
        host.cluster = cluster("sidecar/x");
        host.freshness = Freshness::Changed;
        assert_eq!(host.rest(&mut state), LookEnd::AtOnce);
        assert_eq!(host.calls, ["judge", "claim"]);
        host.freshness = Freshness::Same;
        host.rest(&mut state);
        assert_eq!(host.calls, ["judge", "claim"], "no longer owned");
    }

    #[test]
    fn a_record_is_claimed_waited_for_and_read_again_after_a_conflict() {
        let claim = |written| {
            let mut host = PlayedHost::new("nobody");
            host.written = written;
            let end = host.rest(&mut LookState::default());
            (end, host.calls)
        };
        assert_eq!(claim(Ok(())), (LookEnd::AtOnce, vec!["judge", "claim"]));
        let fenced = Failure::NotSent("the Lease is lost".to_owned());
        for outdated in [refusal(409, "Conflict"), fenced] {
            let read = vec!["judge", "claim", "read"];
            assert_eq!(claim(Err(outdated)), (LookEnd::After(1.0), read));
        }
        let cut_off = Failure::NoAnswer("cut off".to_owned());
        let written = vec!["judge", "claim"];
        assert_eq!(claim(Err(cut_off)), (LookEnd::After(1.0), written));

        let mut taking = PlayedHost::new("taking/7/central/rayfit-system");
        taking.steady = 10.0;
        let end = taking.rest(&mut LookState::default());
        assert_eq!(
            (end, taking.calls),
            (LookEnd::After(GRACE_S), vec!["judge"])
        );
    }

    /// A webhook refuses it until somebody corrects that, and something in the cluster changes all the time.
    #[test]
    fn a_record_that_is_refused_is_tried_ever_more_rarely() {
        let (mut host, mut state) = (PlayedHost::new("nobody"), LookState::default());
        host.written = Err(refusal(403, ""));
        let mut tries = 0;
        for half_second in 0..1_200 {
            host.steady = f64::from(half_second) / 2.0;
            assert!(matches!(host.rest(&mut state), LookEnd::After(_)));
            tries += usize::from(host.calls.contains(&"claim"));
        }
        assert!((10..=16).contains(&tries), "{tries} times in ten minutes");
        (host.written, host.steady) = (Ok(()), 700.0);
        assert_eq!(host.rest(&mut state), LookEnd::AtOnce, "it is tried again");
    }

    #[test]
    fn who_may_not_scale_forgets_and_waits_for_a_change() {
        let (mut host, mut state) = PlayedHost::idle();
        host.cluster["spec"]["suspend"] = json!(true);
        host.freshness = Freshness::Changed;
        assert!(state.memory.changed_at > 0.0);
        assert_eq!(host.rest(&mut state), LookEnd::UntilChanged);
        assert!(state.memory.changed_at == 0.0, "what was remembered is old");
        assert!(!state.is_idle);
    }

    #[test]
    fn who_lost_the_annotation_releases_the_cluster() {
        let mut state = LookState::default();
        let mut host = PlayedHost::new("central/rayfit-system");
        let annotations = host.cluster["metadata"]["annotations"].as_object_mut();
        annotations.unwrap().remove("rayfit.dev/reconcile");
        host.rest(&mut state);
        assert_eq!(
            host.calls,
            ["judge"],
            "effects of a predecessor may be under way"
        );
        host.steady = 10.0;
        assert_eq!(host.rest(&mut state), LookEnd::AtOnce);
        assert_eq!(host.calls, ["judge", "release"]);
        host.cluster["metadata"]["annotations"][RECORD] = json!("nobody");
        assert_eq!(host.rest(&mut state), LookEnd::UntilChanged);
        assert_eq!(host.calls, ["judge"]);
    }

    #[test]
    fn nothing_is_done_while_the_gcs_is_silent_and_rounds_are_made_after_it() {
        let (mut host, mut state) = PlayedHost::idle();
        host.answer = Err(Some(Blind::NoHead));
        assert_eq!(host.rest(&mut state), LookEnd::Paced { busy: false });
        assert_eq!(host.calls, ["ask", "made"]);
        host.answer = Ok(0);
        host.rest(&mut state);
        assert_eq!(host.calls, ["ask", "decide", "idle"], "nothing is compared");
    }

    #[test]
    fn a_round_is_spared_only_while_objects_and_answers_stay() {
        let (mut host, mut state) = PlayedHost::idle();
        host.unchanged = Some(true);
        state.memory.changed_at = 1.0;
        assert_eq!(host.rest(&mut state), LookEnd::Paced { busy: true });
        assert_eq!(host.calls, ["ask", "compare"]);
        assert!(state.memory.changed_at > 1.0 && state.is_idle);
        host.unchanged = None;
        host.rest(&mut state);
        assert_eq!(host.calls, ["ask", "compare", "decide", "idle"]);
        host.freshness = Freshness::Changed;
        host.rest(&mut state);
        assert_eq!(host.calls, ["judge", "ask", "decide", "idle"]);
    }

    #[test]
    fn effects_are_performed_and_after_a_stale_one_the_cluster_is_read() {
        let mut state = LookState::default();
        let mut host = PlayedHost::new("central/rayfit-system");
        host.answer = Ok(2);
        let Looked::Effects(round, pods) = host.look(&mut state) else {
            panic!("pods are launched");
        };
        assert_eq!(pods.len(), 1);
        let late = [Done {
            about: round.chains[0].about.clone(),
            effect: round.chains[0].next().unwrap(),
            result: Err(refusal(409, "Conflict")),
        }];
        let remembered = remember(&mut state, &mut host, *round, &late, None);
        let _ = remembered.now_or_never().unwrap();
        assert_eq!(host.calls, ["judge", "ask", "decide", "read", "made"]);
        assert!(!state.is_idle);
    }
}
