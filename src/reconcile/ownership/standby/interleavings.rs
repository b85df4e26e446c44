//! Lets a central replica and a sidecar that stands by live through random faults: each is killed, frozen or
//! cut off from the API server, alone or together, at any moment and for any time. The two must never have
//! effects under way at the same time; while no fault begins or ends, a cluster that can be served is served
//! within 20 s, or later by as much as more silence is needed after stand-ins that ended soon; and once both are well, the central replica has it.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::*;
use crate::ray::reconcile::STANDBY;
use crate::ray::{Kind, RayObject, ReconcileMode};
use crate::reconcile::ownership::eligibility::{Eligibility, Ineligible};
use crate::reconcile::ownership::handover::{Handover, HandoverStep, PERMISSION_S, RECORD};

/// The seconds of one step.
const STEP_S: f64 = 0.25;
/// Within how many seconds a cluster is served.
const SERVED_S: f64 = 20.0;
/// How often a replica renews its Lease and the heartbeat, and for how long a renewal is trusted.
const RENEW_S: f64 = 3.0;
const TRUSTED_S: f64 = 9.0;
/// How old the API server's cache may be.
const CACHE_S: f64 = 1.0;
/// How often a sidecar reads its RayCluster to see who is at work, and when it tries again after an error.
const LOOK_S: std::ops::Range<f64> = 2.0..5.0;
const RETRY_S: f64 = 5.0;
/// The longest write, which ends before the Lease does.
const WRITE_S: f64 = 4.0;

/// What the API server has.
#[derive(Debug, Default)]
struct Api {
    version: u64,
    record: Option<String>,
    cluster_version: u64,
    /// The versions of the heartbeat, and when each was written.
    heartbeats: Vec<(f64, u64)>,
}

impl Api {
    fn cluster(&self) -> Value {
        let mut annotations = json!({
            "rayfit.dev/reconcile": ReconcileMode::Central.name(), STANDBY: "rayfit-system",
        });
        if let Some(record) = &self.record {
            annotations[RECORD] = json!(record);
        }
        json!({
            "metadata": {
                "name": "a", "annotations": annotations,
                "resourceVersion": self.cluster_version.to_string(),
            },
            "status": {"head": {"podIP": "10.0.0.7"}},
        })
    }

    fn patch(&mut self, patch: &json_patch::Patch) {
        let mut cluster = self.cluster();
        if json_patch::patch(&mut cluster, patch).is_ok() {
            self.version += 1;
            self.cluster_version = self.version;
            let record = cluster["metadata"]["annotations"][RECORD].as_str();
            self.record = record.map(str::to_owned);
        }
    }

    fn beat(&mut self, now: f64) {
        self.version += 1;
        self.heartbeats.push((now, self.version));
    }

    fn heartbeat(&self, at: f64) -> Option<String> {
        let written = self.heartbeats.iter().rev();
        let mut written = written.skip_while(|(then, _)| *then > at);
        written.next().map(|(_, version)| version.to_string())
    }
}

/// What is wrong with a process.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Fault {
    /// It is not there, and comes back with an empty memory.
    Killed,
    /// It does nothing, and goes on where it was.
    Frozen,
    /// It does not reach the API server.
    CutOff,
}

#[derive(Debug)]
struct Process {
    role: ScalerRole,
    handover: Handover,
    view: Option<Value>,
    fault: Option<Fault>,
    /// Since when the fault, or its absence, has lasted.
    since: f64,
    /// Until when effects may be under way.
    under_way: f64,
    standby: Standby,
    /// When the sidecar reads its RayCluster next to see who is at work.
    next_look: f64,
    /// Until when a central replica may write.
    trusted: f64,
    renewed: f64,
}

impl Process {
    fn new(role: ScalerRole) -> Self {
        Self {
            handover: Handover::default(),
            view: None,
            fault: None,
            since: 0.0,
            under_way: 0.0,
            standby: match &role {
                ScalerRole::Sidecar { head_uid } => Standby::of_head(head_uid),
                ScalerRole::Central => Standby::default(),
            },
            next_look: 0.0,
            role,
            trusted: 0.0,
            renewed: f64::NEG_INFINITY,
        }
    }

    /// A process that is killed leaves its effects under way, and nothing else.
    fn set(&mut self, fault: Option<Fault>, now: f64) {
        if self.fault == Some(Fault::Killed) || fault == Some(Fault::Killed) {
            let under_way = self.under_way;
            *self = Self::new(self.role.clone());
            self.under_way = under_way;
        }
        self.fault = fault;
        self.since = now;
    }

    /// Renews the Lease and the heartbeat, or reads the heartbeat.
    fn keep(&mut self, api: &mut Api, random: &mut fastrand::Rng, now: f64) {
        if self.role == ScalerRole::Central {
            if now >= self.renewed + RENEW_S {
                self.renewed = now;
                self.trusted = now + TRUSTED_S;
                api.beat(now);
            }
        } else if now >= self.standby.next_read() {
            let is_fresh = self.standby.ask(now);
            // The cache may not have the last renewal.
            let lag = if is_fresh {
                0.0
            } else {
                CACHE_S * random.f64()
            };
            let version = api.heartbeat(now - lag);
            let read = HeartbeatRead {
                version: version.as_deref(),
                asked: now,
                is_fresh,
            };
            let before = self.standby.duty();
            self.standby.heard(&read, now);
            if self.standby.duty() != before {
                self.next_look = now;
            }
        }
    }

    /// Reads the RayCluster to see who is at work, if that is due.
    fn look(&mut self, api: &Api, random: &mut fastrand::Rng, now: f64) {
        if now < self.next_look {
            return;
        }
        if self.fault.is_some() {
            self.next_look = now + RETRY_S;
            return;
        }
        self.next_look = now + LOOK_S.start + (LOOK_S.end - LOOK_S.start) * random.f64();
        let cluster = api.cluster();
        let root = cluster.as_object().unwrap();
        let record = HandoverRecord::of(&RayObject::of_kind(Kind::RayCluster, root));
        self.standby.saw(record);
    }

    fn eligibility(&self) -> Eligibility {
        if self.role == ScalerRole::Central || self.standby.duty() == Duty::StandIn {
            Eligibility::Ours
        } else {
            Eligibility::Leave(Ineligible::Mode(ReconcileMode::Central))
        }
    }

    /// Does what follows from its last read, and maybe reads before. Whether it has scaled the cluster.
    fn work(&mut self, api: &mut Api, random: &mut fastrand::Rng, now: f64) -> bool {
        let reaches = self.fault.is_none();
        let reads = reaches && random.u8(..4) > 0;
        if reaches {
            self.keep(api, random, now);
        }
        self.look(api, random, now);
        if reads {
            self.view = Some(api.cluster());
        }
        let may_write = self.role != ScalerRole::Central || now + WRITE_S <= self.trusted;
        let Some(view) = self.view.clone() else {
            return false;
        };
        let eligibility = self.eligibility();
        match self.handover.step(&view, &eligibility, &self.role, now) {
            HandoverStep::Act if reads && may_write => {
                self.under_way = now + PERMISSION_S * random.f64();
                true
            }
            HandoverStep::Claim(patch) if reaches && may_write => {
                api.patch(&patch);
                false
            }
            HandoverStep::Release(patch) if reaches && now >= self.under_way => {
                api.patch(&patch);
                false
            }
            _ => false,
        }
    }
}

/// How often each of the two has scaled the cluster, in the life of one seed.
fn live(seed: u64) -> [usize; 2] {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut api = Api::default();
    // The times that sidecars wait longer differ by the UID.
    let head_uid = format!("u{seed}");
    let roles = [ScalerRole::Central, ScalerRole::Sidecar { head_uid }];
    let mut processes = roles.map(Process::new);
    let (mut scaled, mut last, mut changed) = ([0, 0], 0.0, 0.0_f64);
    // Faults come fast in some lives, and slowly in others.
    let pace = [8.0, 30.0, 120.0][random.usize(..3)];
    let mut now = 0.0;
    while now < 600.0 {
        now += STEP_S;
        for process in &mut processes {
            if random.f64() < STEP_S / pace {
                let faults = [Fault::Killed, Fault::Frozen, Fault::CutOff];
                let fault = random.choice(faults).filter(|_| random.bool());
                process.set(fault, now);
                changed = now;
            }
        }
        if random.f64() < STEP_S / pace / 4.0 {
            // The API server is away for both, or is back.
            let fault = Some(Fault::CutOff).filter(|_| random.bool());
            for each in &mut processes {
                each.set(fault, now);
            }
            changed = now;
        }
        for (process, scaled) in processes.iter_mut().zip(&mut scaled) {
            let is_running = !matches!(process.fault, Some(Fault::Killed | Fault::Frozen));
            if is_running && process.work(&mut api, &mut random, now) {
                *scaled += 1;
                last = now;
            }
        }
        let under_way = processes.each_ref().map(|each| each.under_way > now);
        assert!(
            under_way != [true, true],
            "seed {seed}: two writers at {now}: {:?} {processes:#?}",
            api.record
        );
        let is_well = processes.iter().any(|each| each.fault.is_none());
        let waits = now - last.max(changed);
        let longer = processes[1].standby.needed_silence() - SILENCE_S - SPREAD_S;
        assert!(
            !is_well || waits <= SERVED_S + longer.max(0.0),
            "seed {seed}: not served for {waits} s at {now}: {:?} {processes:#?}",
            api.record
        );
        let are_well = processes.iter().all(|each| each.fault.is_none());
        if are_well && now - changed > 2.0 * SERVED_S {
            assert_eq!(
                api.record.as_deref(),
                Some("central"),
                "seed {seed} at {now}"
            );
        }
    }
    scaled
}

#[test]
fn two_never_write_and_the_cluster_is_served() {
    let mut ever = BTreeSet::new();
    for seed in 0..60 {
        let scaled = live(seed);
        ever.extend(
            scaled
                .iter()
                .enumerate()
                .filter(|(_, n)| **n > 0)
                .map(|(who, _)| who),
        );
    }
    assert_eq!(ever, BTreeSet::from([0, 1]), "both have scaled it");
}
