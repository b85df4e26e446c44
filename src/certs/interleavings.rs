//! The state machine in a simulated cluster: replicas that look and act in any interleaving, with
//! crashes, pauses of any length, and a Secret that vanishes.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, SystemTime};

use proptest::prelude::*;

use super::contents::{Anchor, Authority, Contents, Id, Leaf, PrivateKey};
use super::next::{Bundle, Memory, Next, Policy, Step, View, next};

const PROPAGATION: Duration = Duration::from_mins(1);
const DAY: Duration = Duration::from_hours(24);

/// One version of a configuration, and until when it was the newest.
struct Version {
    anchors: Vec<Anchor>,
    superseded: Option<Duration>,
}

struct World {
    uptime: Duration,
    made: usize,
    secret: (u64, Contents),
    configurations: BTreeMap<String, Vec<Version>>,
    replicas: Vec<Replica>,
}

/// What a replica has done of its round.
enum Phase {
    Start,
    SawBundles(BTreeMap<String, Bundle>),
    SawPods(BTreeMap<String, Bundle>, BTreeSet<String>),
    Decided(Box<View>, u64, Step),
}

struct Replica {
    pod: String,
    memory: Memory,
    serving: Option<Leaf>,
    phase: Phase,
}

#[derive(Debug, Clone)]
enum Event {
    Act(usize),
    ActAlone(usize, usize),
    Pass(Duration),
    Crash(usize),
    ReplacePod(usize),
    WipeSecret,
    EditConfiguration(usize),
}

impl World {
    fn new(replicas: usize) -> Self {
        let empty = || {
            vec![Version {
                anchors: Vec::new(),
                superseded: None,
            }]
        };
        let mut world = Self {
            uptime: Duration::ZERO,
            made: 0,
            secret: (0, Contents::default()),
            configurations: ["mutating", "validating"]
                .map(|name| (name.to_owned(), empty()))
                .into(),
            replicas: Vec::new(),
        };
        for _ in 0..replicas {
            let replica = world.new_replica();
            world.replicas.push(replica);
        }
        world
    }

    fn new_replica(&mut self) -> Replica {
        Replica {
            pod: self.fresh("pod"),
            memory: Memory::default(),
            serving: None,
            phase: Phase::Start,
        }
    }

    fn fresh(&mut self, what: &str) -> String {
        self.made += 1;
        format!("{what}-{}", self.made)
    }

    fn now(&self) -> SystemTime {
        SystemTime::UNIX_EPOCH + self.uptime
    }

    fn policy(&self, replica: usize) -> Policy {
        Policy {
            replica: self.replicas[replica].pod.clone(),
            authority_lifetime: 3650 * DAY,
            leaf_lifetime: 365 * DAY,
            propagation: PROPAGATION,
        }
    }

    fn handle(&mut self, event: &Event) {
        match event {
            Event::Act(replica) => self.act(*replica),
            Event::ActAlone(replica, times) => self.act_alone(*replica, *times),
            Event::Pass(time) => self.uptime += *time,
            Event::Crash(replica) => {
                let pod = self.replicas[*replica].pod.clone();
                self.replicas[*replica] = Replica {
                    pod,
                    ..self.new_replica()
                };
            }
            Event::ReplacePod(replica) => self.replicas[*replica] = self.new_replica(),
            Event::WipeSecret => self.secret = (self.secret.0 + 1, Contents::default()),
            Event::EditConfiguration(which) => {
                let name = self.configurations.keys().nth(*which).unwrap().clone();
                let anchors = newest(&self.configurations[&name]).anchors.clone();
                self.publish(&name, anchors);
            }
        }
    }

    fn act_alone(&mut self, replica: usize, times: usize) {
        for _ in 0..times {
            self.act(replica);
            self.assert_no_gap();
            self.uptime += Duration::from_secs(3);
        }
    }

    /// One request of a replica: reading bundles, pods or the Secret, or the step it decided on.
    fn act(&mut self, index: usize) {
        let phase = std::mem::replace(&mut self.replicas[index].phase, Phase::Start);
        self.replicas[index].phase = match phase {
            Phase::Start => Phase::SawBundles(self.bundles()),
            Phase::SawBundles(bundles) => Phase::SawPods(bundles, self.pods()),
            Phase::SawPods(bundles, pods) => self.decide(index, bundles, pods),
            Phase::Decided(view, version, step) => {
                self.perform(index, &view, version, step);
                Phase::Start
            }
        };
    }

    fn bundles(&self) -> BTreeMap<String, Bundle> {
        let bundle = |versions: &Vec<Version>| Bundle {
            anchors: newest(versions).anchors.clone(),
            everywhere: newest(versions)
                .anchors
                .iter()
                .map(|anchor| anchor.id.clone())
                .collect(),
            uniform: true,
            revision: versions.len().to_string(),
        };
        let configurations = self.configurations.iter();
        configurations
            .map(|(name, versions)| (name.clone(), bundle(versions)))
            .collect()
    }

    fn pods(&self) -> BTreeSet<String> {
        self.replicas
            .iter()
            .map(|replica| replica.pod.clone())
            .collect()
    }

    fn decide(
        &mut self,
        index: usize,
        bundles: BTreeMap<String, Bundle>,
        pods: BTreeSet<String>,
    ) -> Phase {
        let (version, contents) = self.secret.clone();
        let view = View {
            bundles,
            pods: Some(pods),
            contents,
        };
        let (policy, now, uptime) = (self.policy(index), self.now(), self.uptime);
        let memory = &mut self.replicas[index].memory;
        memory.note(&view, uptime);
        match next(&view, memory, &policy, now, uptime) {
            Next::Take(step) => Phase::Decided(Box::new(view), version, step),
            Next::Wait | Next::Rest => Phase::Start,
        }
    }

    fn perform(&mut self, index: usize, view: &View, version: u64, step: Step) {
        let contents = view.contents.clone();
        match step {
            Step::Serve => {
                let leaf = contents.leaf.unwrap();
                self.replicas[index].memory.serving = Some(leaf.id.clone());
                self.replicas[index].serving = Some(leaf);
            }
            Step::Publish {
                configuration,
                anchors,
            } => {
                let seen = view.bundles[&configuration].revision.clone();
                if self.configurations[&configuration].len().to_string() == seen {
                    self.publish(&configuration, anchors);
                }
            }
            Step::Introduce => {
                let authority = self.authority();
                self.store(version, contents.introduce(authority, self.now()));
            }
            Step::Promote => {
                let leaf = self.leaf(contents.next.as_ref().unwrap());
                self.store(version, contents.promote(leaf));
            }
            Step::Renew => {
                let leaf = self.leaf(contents.current.as_ref().unwrap());
                self.store(version, contents.renew(leaf));
            }
            Step::Acknowledge(leaf) => {
                let pod = self.replicas[index].pod.clone();
                self.store(
                    version,
                    contents.acknowledge(&pod, leaf, view.pods.as_ref()),
                );
            }
            Step::Retire => self.store(version, contents.retire()),
        }
    }

    fn store(&mut self, seen: u64, contents: Contents) {
        if self.secret.0 == seen {
            self.secret = (seen + 1, contents);
        }
    }

    fn publish(&mut self, configuration: &str, anchors: Vec<Anchor>) {
        let versions = self.configurations.get_mut(configuration).unwrap();
        versions.last_mut().unwrap().superseded = Some(self.uptime);
        versions.push(Version {
            anchors,
            superseded: None,
        });
    }

    fn authority(&mut self) -> Authority {
        let id = Id(self.fresh("authority"));
        let not_after = self.now() + 3650 * DAY;
        let anchor = Anchor {
            id,
            not_after,
            pem: String::new(),
        };
        Authority {
            anchor,
            key: Some(PrivateKey(String::new())),
        }
    }

    fn leaf(&mut self, issuer: &Authority) -> Leaf {
        Leaf {
            id: Id(self.fresh("leaf")),
            issuer: Some(issuer.anchor.id.clone()),
            not_after: issuer.anchor.not_after.min(self.now() + 365 * DAY),
            chain: String::new(),
            key: PrivateKey(String::new()),
        }
    }

    /// Whatever version of a bundle an API server has, it verifies every leaf that is served.
    /// A bundle that is still empty verifies nothing; that is before the first start.
    fn assert_no_gap(&self) {
        for replica in &self.replicas {
            let Some(leaf) = replica
                .serving
                .as_ref()
                .filter(|leaf| self.now() < leaf.not_after)
            else {
                continue;
            };
            for (name, versions) in &self.configurations {
                for version in versions
                    .iter()
                    .filter(|version| self.may_be_in_use(version))
                {
                    let issuer = leaf.issuer.as_ref();
                    assert!(
                        version
                            .anchors
                            .iter()
                            .any(|anchor| Some(&anchor.id) == issuer),
                        "{} serves {:?}, {name} trusts {:?}",
                        replica.pod,
                        leaf.id,
                        version.anchors
                    );
                }
            }
        }
    }

    fn may_be_in_use(&self, version: &Version) -> bool {
        let recent = |since| self.uptime < since + PROPAGATION;
        !version.anchors.is_empty() && version.superseded.is_none_or(recent)
    }

    fn run_fairly(&mut self, rounds: usize) {
        for _ in 0..rounds {
            for replica in 0..self.replicas.len() {
                self.act(replica);
                self.assert_no_gap();
            }
            self.uptime += Duration::from_secs(5);
        }
    }

    fn assert_settled(&self) {
        let contents = &self.secret.1;
        let current = &contents.current.as_ref().expect("no authority").anchor;
        assert!(
            contents.next.is_none() && contents.old.is_empty(),
            "{contents:?}"
        );
        for versions in self.configurations.values() {
            assert_eq!(newest(versions).anchors, std::slice::from_ref(current));
        }
        for replica in &self.replicas {
            assert_eq!(replica.serving, contents.leaf);
        }
        assert_eq!(
            contents.leaf.as_ref().unwrap().issuer.as_ref(),
            Some(&current.id)
        );
    }
}

fn newest(versions: &[Version]) -> &Version {
    versions.last().unwrap()
}

fn event(replicas: usize) -> impl Strategy<Value = Event> {
    prop_oneof![
        60 => (0..replicas).prop_map(Event::Act),
        10 => (0..replicas, 1..150_usize).prop_map(|(who, times)| Event::ActAlone(who, times)),
        10 => (0..90_u64).prop_map(|seconds| Event::Pass(Duration::from_secs(seconds))),
        2 => (1..400_u32).prop_map(|days| Event::Pass(days * DAY)),
        1 => (0..replicas).prop_map(Event::Crash),
        1 => (0..replicas).prop_map(Event::ReplacePod),
        1 => Just(Event::WipeSecret),
        1 => (0..2_usize).prop_map(Event::EditConfiguration),
    ]
}

fn history() -> impl Strategy<Value = (usize, Vec<Event>)> {
    (1..4_usize).prop_flat_map(|replicas| {
        (
            Just(replicas),
            prop::collection::vec(event(replicas), 0..600),
        )
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn no_interleaving_opens_a_gap((replicas, events) in history()) {
        let mut world = World::new(replicas);
        for event in &events {
            world.handle(event);
            world.assert_no_gap();
        }
        world.run_fairly(250);
        world.assert_settled();
    }
}

#[test]
fn the_first_start_does_not_wait() {
    let mut world = World::new(2);
    for _ in 0..40 {
        (0..2).for_each(|replica| world.act(replica));
    }
    assert_eq!(world.uptime, Duration::ZERO);
    assert!(
        world
            .replicas
            .iter()
            .all(|replica| replica.serving.is_some())
    );
}

#[test]
fn an_authority_is_replaced_in_good_time_and_leaves() {
    let mut world = World::new(3);
    world.run_fairly(200);
    world.assert_settled();
    let first = world.secret.1.current.clone();
    for _ in 0..40 {
        world.uptime += 90 * DAY;
        world.run_fairly(200);
        world.assert_settled();
    }
    assert_ne!(world.secret.1.current, first);
}

#[test]
fn a_pod_that_does_not_answer_keeps_its_authority_trusted() {
    let mut world = World::new(2);
    world.run_fairly(200);
    let trusted = newest(&world.configurations["mutating"]).anchors[0]
        .id
        .clone();
    world.handle(&Event::WipeSecret);
    for _ in 0..2_000 {
        world.act(0);
        world.uptime += Duration::from_secs(5);
        world.assert_no_gap();
    }
    let anchors = &newest(&world.configurations["mutating"]).anchors;
    assert!(anchors.iter().any(|anchor| anchor.id == trusted));
    assert_eq!(anchors.len(), 2);
    world.run_fairly(200);
    world.assert_settled();
}
