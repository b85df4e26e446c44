//! Explores every order in which the steps of two autoscalers, their crashes and changes of the mode by
//! users can follow each other: the two must never have effects under way at the same time.

use std::collections::{HashSet, VecDeque};

use serde_json::{Value, json};

use super::{GRACE_S, Handover, HandoverStep, PERMISSION_S, RECORD};
use crate::ray::ReconcileMode;
use crate::ray::{Kind, RayObject};
use crate::reconcile::ownership::eligibility::{Ineligible, other_installation};
use crate::reconcile::ownership::record::ScalerRole;

/// The seconds that pass in one tick.
const TICK_S: f64 = 2.5;

/// The RayCluster in the model.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Object {
    mode: ReconcileMode,
    record: Option<String>,
    version: u32,
}

/// An autoscaler in the model. Times are ticks relative to now, so that states that only differ in
/// their absolute time are the same.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
struct Scaler {
    /// The RayCluster as it last read it.
    view: Option<Object>,
    /// Its hand-over memory: the entry, and how many ticks ago it was first seen.
    taking: Option<(String, u8)>,
    /// Ticks for which it has been in the record.
    held: Option<u8>,
    /// Ticks for which its effects may still be under way.
    permission: u8,
    /// Ticks for which effects of its killed predecessors may still be under way.
    ghosts: u8,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct World {
    rivals: Rivals,
    object: Object,
    scalers: [Scaler; 2],
}

/// The scalers that compete for the cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Rivals {
    /// The controller and the sidecar.
    Modes,
    /// The controllers of two installations.
    Installations,
}

impl Rivals {
    fn roles(self) -> [ScalerRole; 2] {
        let other = match self {
            Self::Modes => ScalerRole::Sidecar {
                head_uid: "u".to_owned(),
            },
            Self::Installations => ScalerRole::central("b"),
        };
        [ScalerRole::central("a"), other]
    }
}

impl Object {
    fn json(&self) -> Value {
        let mut annotations = json!({"rayfit.dev/reconcile": self.mode.name()});
        if let Some(record) = &self.record {
            annotations[RECORD] = json!(record);
        }
        let version = self.version.to_string();
        let head = json!({"head": {"podIP": "10.0.0.7"}});
        json!({
            "metadata": {"name": "a", "resourceVersion": version, "annotations": annotations},
            "status": head,
        })
    }

    fn changed(&self) -> Self {
        Self {
            version: self.version + 1,
            ..self.clone()
        }
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "few ticks"
)]
fn ticks(seconds: f64) -> u8 {
    (seconds / TICK_S).ceil() as u8
}

impl World {
    fn step(&mut self, who: usize) -> HandoverStep {
        let role = &self.rivals.roles()[who];
        let scaler = &mut self.scalers[who];
        let Some(view) = &scaler.view else {
            return HandoverStep::Rest;
        };
        let now = 1000.0;
        let mut handover = Handover {
            taking: scaler
                .taking
                .clone()
                .map(|(entry, age)| (entry, now - f64::from(age) * TICK_S)),
            held_since: scaler.held.map(|age| now - f64::from(age) * TICK_S),
        };
        let cluster = view.json();
        let object = RayObject::of_kind(Kind::RayCluster, cluster.as_object().unwrap());
        let left = (!role.is_of_mode(view.mode))
            .then_some(Ineligible::Mode(view.mode))
            .or_else(|| other_installation(&object, role));
        let eligibility = left.map_or(Ok(()), Err);
        let step = handover.step(&cluster, eligibility.is_ok(), role, now);
        scaler.taking = handover
            .taking
            .map(|(entry, since)| (entry, ticks(now - since)));
        scaler.held = handover.held_since.map(|since| ticks(now - since));
        step
    }

    /// Reads the object; if it owns the cluster, its effects may be under way for a while.
    fn read(&self, who: usize) -> Self {
        let mut next = self.clone();
        next.scalers[who].view = Some(self.object.clone());
        if next.step(who) == HandoverStep::Act {
            next.scalers[who].permission = ticks(PERMISSION_S);
        }
        next
    }

    /// Takes the step that follows from its last read, which may be long ago.
    fn write(&self, who: usize) -> Option<Self> {
        let mut next = self.clone();
        let (patch, releases) = match next.step(who) {
            HandoverStep::Claim(patch) => (patch, false),
            HandoverStep::Release(patch) => (patch, true),
            _ => return None,
        };
        if releases {
            // Its effects have ended.
            next.scalers[who].permission = 0;
        }
        let mut object = self.object.json();
        if json_patch::patch(&mut object, &patch).is_ok() {
            next.object = self.object.changed();
            let record = object["metadata"]["annotations"][RECORD].as_str();
            next.object.record = record.map(str::to_owned);
            next = next.read(who);
        }
        Some(next)
    }

    /// The process is killed and starts again. The requests that it sent may still be under way.
    fn crash(&self, who: usize) -> Self {
        let mut next = self.clone();
        let Scaler {
            permission, ghosts, ..
        } = next.scalers[who];
        next.scalers[who] = Scaler {
            ghosts: permission.max(ghosts),
            ..Scaler::default()
        };
        next
    }

    fn tick(&self) -> Self {
        let mut next = self.clone();
        for scaler in &mut next.scalers {
            scaler.permission = scaler.permission.saturating_sub(1);
            scaler.ghosts = scaler.ghosts.saturating_sub(1);
            let ages = scaler.taking.iter_mut().map(|(_, age)| age);
            for age in ages.chain(&mut scaler.held) {
                *age = (*age + 1).min(ticks(GRACE_S));
            }
        }
        next
    }

    fn next(&self) -> Vec<Self> {
        let mut all = vec![self.tick()];
        for who in 0..2 {
            all.push(self.read(who));
            all.extend(self.write(who));
            all.push(self.crash(who));
        }
        for mode in ReconcileMode::ALL {
            let object = Object {
                mode,
                ..self.object.changed()
            };
            all.push(Self {
                object,
                ..self.clone()
            });
        }
        // Another client, such as an update of a RayService, removes the annotation.
        let object = Object {
            record: None,
            ..self.object.changed()
        };
        all.push(Self {
            object,
            ..self.clone()
        });
        all
    }

    /// Renumbers the versions, since only their equality matters.
    fn numbered_anew(mut self) -> Self {
        let entry = |text: &Option<String>| -> Option<u32> {
            text.as_ref()?
                .strip_prefix("taking/")?
                .split('/')
                .next()?
                .parse()
                .ok()
        };
        let mut versions = vec![self.object.version];
        versions.extend(entry(&self.object.record));
        for scaler in &self.scalers {
            if let Some(view) = &scaler.view {
                versions.push(view.version);
                versions.extend(entry(&view.record));
            }
            versions.extend(
                scaler
                    .taking
                    .as_ref()
                    .and_then(|(entry, _)| entry.parse::<u32>().ok()),
            );
        }
        versions.sort_unstable();
        versions.dedup();
        let number =
            |version: u32| u32::try_from(versions.binary_search(&version).unwrap()).unwrap();
        let rename = |object: &mut Object| {
            object.version = number(object.version);
            if let Some(old) = entry(&object.record) {
                let (old, new) = (format!("taking/{old}/"), format!("taking/{}/", number(old)));
                object.record = object.record.take().map(|text| text.replace(&old, &new));
            }
        };
        rename(&mut self.object);
        for scaler in &mut self.scalers {
            scaler.view.iter_mut().for_each(rename);
            if let Some((entry, _)) = &mut scaler.taking {
                *entry = number(entry.parse().unwrap()).to_string();
            }
        }
        self
    }
}

/// Explores all states. Returns their number, and whether both autoscalers acted at all.
fn explore(rivals: Rivals) -> (usize, [bool; 2]) {
    let object = Object {
        mode: ReconcileMode::Central,
        record: None,
        version: 0,
    };
    let start = World {
        rivals,
        object,
        scalers: Default::default(),
    };
    let mut seen = HashSet::from([start.clone()]);
    let mut queue = VecDeque::from([start]);
    let mut acted = [false; 2];
    while let Some(world) = queue.pop_front() {
        let under_way = world
            .scalers
            .each_ref()
            .map(|scaler| scaler.permission.max(scaler.ghosts) > 0);
        assert!(under_way != [true, true], "two writers: {world:#?}");
        acted = [acted[0] || under_way[0], acted[1] || under_way[1]];
        for next in world.next() {
            let next = next.numbered_anew();
            if seen.insert(next.clone()) {
                queue.push_back(next);
            }
        }
    }
    (seen.len(), acted)
}

#[test]
fn two_scalers_never_write_at_the_same_time() {
    for rivals in [Rivals::Modes, Rivals::Installations] {
        let (states, acted) = explore(rivals);
        assert!(states > 1_000, "{rivals:?}: {states}");
        assert_eq!(acted, [true, true], "{rivals:?}");
    }
}

/// Without crashes, and with an autoscaler that answers, the cluster is handed over at once.
#[test]
fn a_living_scaler_hands_over_without_a_wait() {
    let object = Object {
        mode: ReconcileMode::Sidecar,
        record: Some("central/a".to_owned()),
        version: 7,
    };
    let mut world = World {
        rivals: Rivals::Modes,
        object,
        scalers: Default::default(),
    };
    world = world.read(0);
    assert_eq!(
        world.write(0),
        None,
        "effects of its predecessor may be under way"
    );
    world = (0..ticks(PERMISSION_S)).fold(world, |world, _| world.tick());
    let released = world.write(0).unwrap();
    assert_eq!(released.object.record.as_deref(), Some("nobody"));
    let taken = released.read(1).write(1).unwrap();
    assert_eq!(taken.object.record.as_deref(), Some("sidecar/u"));
    assert!(taken.scalers[1].permission > 0);
}
