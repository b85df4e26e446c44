//! Decides one round: from a snapshot to the effects that are to be performed.

use std::collections::{BTreeMap, BTreeSet};

use super::memory::RoundMemory;
use super::round::{Round, Skipped};
use super::settings::RoundSettings;
use crate::plan::check::{self, Violation};
use crate::plan::{self, Plan, PlanWait};
use crate::reconcile::effects::chain::Chain;
use crate::reconcile::effects::effect::{DrainKind, Effect, EffectClass, EffectTarget};
use crate::reconcile::effects::replicas::ReplicaChange;
use crate::reconcile::effects::resize::Planned;
use crate::reconcile::effects::size::PodSize;
use crate::reconcile::effects::{drain, end, hold, replicas};
use crate::reconcile::observed::activity;
use crate::reconcile::observed::blind::Blind;
use crate::reconcile::observed::outage::Outage;
use crate::reconcile::observed::stabilisation::Stabilisation;
use crate::reconcile::ray_state::status;
use crate::reconcile::recorder::conditions;
use crate::snapshot::Snapshot;
use crate::snapshot::autoscaling_state::AutoscalingState;
use crate::snapshot::pod::Pod;

/// Makes a plan and turns it into effects. The snapshot holds the history from the memory and the
/// time.
pub fn round(snapshot: &Snapshot, memory: &RoundMemory, settings: &RoundSettings) -> Round {
    let now = snapshot.seconds().unwrap_or_default();
    let delayed = memory.after_leap(snapshot, now);
    let snapshot = delayed.as_ref().unwrap_or(snapshot);
    let (plan, report) = plan::decide(snapshot, &settings.plan);
    let mut made = Making {
        snapshot,
        plan: &plan,
        memory,
        max_workers: settings.plan.max_workers,
        now,
        chains: Vec::new(),
        skipped: Vec::new(),
    };
    let barred = made.barred();
    let stabilisation = memory.stabilisation.next(snapshot, now);
    // Beside the end of the cluster, what else there is to do would be undone, and could fail the patch.
    if !made.end() {
        made.replicas(&barred, stabilisation);
        made.pods(&barred);
        made.holds();
        made.drains();
    }
    made.say();
    let (chains, skipped) = (made.chains, made.skipped);
    let outage = Outage::recovery(memory.outage.as_ref(), now);
    let over = memory.outage.as_ref().filter(|_| outage.is_none());
    let mut conditions = conditions::conditions(snapshot, &plan);
    conditions.extend(over.and_then(Outage::over));
    Round {
        at: now,
        busy: activity::is_busy(snapshot, &plan),
        conditions,
        outage,
        pods: snapshot
            .pods
            .iter()
            .map(|pod| pod.name.to_owned())
            .collect(),
        stabilisation: Some(stabilisation),
        totals: Some(activity::totals(snapshot)),
        chains,
        skipped,
        plan,
        report,
    }
}

/// The round of a cluster that cannot be observed: no effect is performed on missing data. Users
/// are told once the outage has lasted, and nothing that is remembered is lost because of it.
pub fn blind(memory: &RoundMemory, why: &Blind, now: f64) -> Round {
    let outage = Outage::blind(memory.outage.as_ref(), why, now);
    let why = outage.why.to_string();
    Round {
        at: now,
        skipped: vec![Skipped {
            about: EffectTarget::Cluster,
            why: format!("nothing is done: {why}"),
            until: None,
            lasting: true,
        }],
        conditions: outage.warning().into_iter().collect(),
        outage: Some(outage),
        plan: Plan {
            waiting: Some(PlanWait::Blind(why)),
            remember: memory.history.clone(),
            ..Plan::default()
        },
        ..Round::default()
    }
}

struct Making<'a> {
    snapshot: &'a Snapshot,
    plan: &'a Plan,
    memory: &'a RoundMemory,
    max_workers: u64,
    now: f64,
    chains: Vec<Chain>,
    skipped: Vec<Skipped>,
}

impl Making<'_> {
    /// The targets for which the plan breaks a rule that every plan must keep; nothing is done to
    /// them.
    fn barred(&mut self) -> BTreeSet<EffectTarget> {
        let (snapshot, plan) = (self.snapshot, self.plan);
        let mut violations = check::check(snapshot, plan);
        violations.extend(check::above_workers(snapshot, plan, self.max_workers));
        let concerns = |violation: &Violation| match violation {
            Violation::AboveMax { group, .. }
            | Violation::AboveWorkers { group, .. }
            | Violation::InitialSize { group, .. }
            | Violation::DeletesForeign { group, .. }
            | Violation::DeletesRunning { group, .. } => EffectTarget::Group(group.clone()),
            Violation::AboveResizeLimit { pod, .. }
            | Violation::Shrinks { pod, .. }
            | Violation::ResizesForeign { pod }
            | Violation::ResizedTwice { pod }
            | Violation::LosesRequest { pod, .. } => EffectTarget::Pod(pod.clone()),
        };
        let mut barred = BTreeSet::new();
        for violation in &violations {
            let about = concerns(violation);
            self.skip(about.clone(), format!("not done: {violation}"), None, true);
            barred.insert(about);
        }
        barred
    }

    /// Says that something was not done, and until when. A `lasting` reason is reported to users.
    fn skip(&mut self, about: EffectTarget, why: String, until: Option<f64>, lasting: bool) {
        self.skipped.push(Skipped {
            about,
            why,
            until,
            lasting,
        });
    }

    /// Checks whether a class of work on a target is backed off; if so, the round says that it was
    /// skipped.
    fn waits(&mut self, about: &EffectTarget, task: EffectClass) -> bool {
        let Some(wait) = self.memory.waits.of(about, task, self.now) else {
            return false;
        };
        // A failure or two in a row are as a rule a race that ends by itself.
        let (why, until, lasting) = (wait.why.clone(), wait.until, wait.failures > 2);
        self.skip(about.clone(), why, Some(until), lasting);
        true
    }

    /// The end of the cluster, if it ends by itself now. Returns whether that is tried in this round:
    /// a cluster that may not be ended is scaled like any other in between.
    fn end(&mut self) -> bool {
        let Some(end) = &self.plan.end else {
            return false;
        };
        if self.waits(&EffectTarget::Cluster, EffectClass::End) {
            return false;
        }
        let Some(effect) = end::effect(self.snapshot, end.policy) else {
            return false;
        };
        let chain = Chain::one(EffectTarget::Cluster, end.to_string(), effect);
        self.chains.push(chain);
        true
    }

    /// One patch for all worker groups.
    fn replicas(&mut self, barred: &BTreeSet<EffectTarget>, stabilisation: Stabilisation) {
        let changes = replicas::changes(self.snapshot, &self.plan.groups);
        if changes.is_empty() || self.waits(&EffectTarget::Cluster, EffectClass::Replicas) {
            return;
        }
        let mut allowed: Vec<ReplicaChange<'_>> = Vec::new();
        for change in changes {
            let about = EffectTarget::Group(change.group.name.clone());
            // The demand may be counted twice for a moment. The race ends by itself, so users are
            // not told.
            if change.launches() && stabilisation.is_unsettled(self.now) {
                let why = "a node has just taken work; whether more is needed shows in a moment";
                self.skip(about, why.to_owned(), None, false);
                continue;
            }
            if !barred.contains(&about) && !self.waits(&about, EffectClass::Replicas) {
                allowed.push(change);
            }
        }
        // After the API server has refused a patch of several groups, each patch changes one group
        // only, so that it becomes clear which group is refused.
        let split = self.memory.split_until > self.now;
        let (most, snapshot, plan) = (self.max_workers, self.snapshot, self.plan);
        let (allowed, delayed) = replicas::within(most, snapshot, plan, allowed, split);
        for change in delayed {
            let about = EffectTarget::Group(change.group.name.clone());
            let why = "pods of another group are to be deleted before";
            self.skip(about, why.to_owned(), None, false);
        }
        if let Some(patch) = replicas::patch(self.snapshot, &allowed) {
            let lines = patch.changes.iter().map(|change| change.line.as_str());
            let why = lines.collect::<Vec<_>>().join("; ");
            let effect = Effect::PatchCluster(patch);
            self.chains
                .push(Chain::one(EffectTarget::Cluster, why, effect));
        }
    }

    /// The chains for pods: resizes, sizes that raylets are told, and the notes on both.
    fn pods(&mut self, barred: &BTreeSet<EffectTarget>) {
        let mut planned: BTreeMap<&str, Planned<'_>> = BTreeMap::new();
        for resize in &self.plan.resizes {
            planned.entry(&resize.pod).or_default().resize = Some(resize);
        }
        for sync in &self.plan.raylet_syncs {
            planned.entry(&sync.pod).or_default().sync = Some(sync);
        }
        for (pod, note) in &self.plan.notes {
            planned.entry(pod).or_default().note = Some(note);
        }
        let pods: BTreeMap<&str, Pod<'_>> = (self.snapshot.pods.iter())
            .map(|pod| (pod.name, pod))
            .collect();
        let live = self.snapshot.gcs.live();
        // The resources that the template of a group gives its pods as a whole. Of several groups of one name the last
        // one counts, as for Ray.
        let spec = self.snapshot.ray_cluster.spec.as_ref();
        let template = |group: &str| {
            let mut groups = spec.iter().flat_map(|spec| &spec.groups);
            let group = groups.rfind(|of| of.name == group);
            group.map(|group| group.pod_level).unwrap_or_default()
        };
        for (name, mut planned) in planned {
            let about = EffectTarget::Pod(name.to_owned());
            if barred.contains(&about) || self.waits(&about, EffectClass::Resize) {
                continue;
            }
            let pod = pods.get(name).copied();
            if let Some(until) = pod.and_then(|pod| self.memory.unobserved.until(&pod, self.now)) {
                let why = "it has been patched, and the watch does not show that yet";
                self.skip(about, why.to_owned(), Some(until), false);
                continue;
            }
            let node = live.get(name).filter(|node| node.is_running());
            planned.node_id = node.and_then(|node| node.node_id.parse().ok());
            let size = planned.raylet_size();
            if size.is_some_and(|size| self.memory.unobserved.has_size(&size, self.now)) {
                // The GCS shows a new size only after its next round through the raylets.
                planned.sync = None;
            }
            let pod = pod.and_then(|pod| PodSize::of(pod, template(pod.group)));
            let mut parts = Vec::new();
            if let Some(sync) = planned.sync {
                let size = sync.size();
                parts.push(format!("tell the raylet of {name}: {size}"));
            }
            if let Some(resize) = planned.resize {
                parts.push(format!("resize {name}: {}", resize.sizes()));
            }
            if parts.is_empty() {
                parts.push("note what was learnt about resizing it".to_owned());
            }
            let why = parts.join("; ");
            let steps = pod.map(|pod| planned.steps(pod)).unwrap_or_default();
            if !steps.is_empty() {
                self.chains.push(Chain { about, why, steps });
            }
        }
    }

    /// The marks for node autoscalers.
    fn holds(&mut self) {
        for planned in &self.plan.holds {
            let about = EffectTarget::Pod(planned.pod.clone());
            let Some(pod) = self.snapshot.pods.find(&planned.pod) else {
                continue;
            };
            // The mark is written already where the watch does not show a patch of the pod yet.
            if self.memory.unobserved.until(&pod, self.now).is_some()
                || self.waits(&about, EffectClass::Resize)
            {
                continue;
            }
            let why = if planned.holds {
                "it has work, so node autoscalers are to leave its Kubernetes node"
            } else {
                "node autoscalers may take its Kubernetes node again"
            };
            let effect = Effect::NotePod(hold::patch(&pod, planned));
            self.chains.push(Chain::one(about, why.to_owned(), effect));
        }
    }

    fn drains(&mut self) {
        for planned in &self.plan.drains {
            let about = EffectTarget::Pod(planned.pod.clone());
            if self.waits(&about, EffectClass::Drain) {
                continue;
            }
            match drain::of(planned, self.now) {
                Ok(drain) => {
                    let verb = match drain.kind {
                        DrainKind::Stop => "stop",
                        _ => "drain",
                    };
                    let why = format!("{verb} {}: {}", planned.pod, drain.message);
                    let effect = Effect::Drain(drain);
                    self.chains.push(Chain::one(about, why, effect));
                }
                Err(error) => self.skip(about, format!("not drained: {error}"), None, true),
            }
        }
    }

    /// The report and the error text for Ray, where they are new.
    fn say(&mut self) {
        let memory = self.memory;
        let state = status::state(self.snapshot, self.plan, &memory.waits);
        let error = status::error_text(self.plan, &self.skipped);
        let mut say = |why: &str, effect| {
            let chain = Chain::one(EffectTarget::Cluster, why.to_owned(), effect);
            self.chains.push(chain);
        };
        let free = |task| {
            memory
                .waits
                .of(&EffectTarget::Cluster, task, self.now)
                .is_none()
        };
        if free(EffectClass::Report) && memory.reported_state.wants(&state, self.now) {
            // A time grows across restarts of the autoscaler too. The GCS drops a state whose version
            // is lower.
            #[expect(clippy::cast_possible_truncation, reason = "milliseconds since 1970")]
            let version = (self.now * 1000.0) as i64;
            let state = AutoscalingState { version, ..state };
            say("tell Ray how its scaling stands", Effect::Report(state));
        }
        if free(EffectClass::Error) && memory.reported_error.wants(&error, self.now) {
            say("tell Ray what is wrong", Effect::PutError(error));
        }
    }
}
