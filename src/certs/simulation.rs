//! The model of a cluster in which every request of every replica is an event of its own.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, SystemTime};

use super::contents::{Anchor, Authority, Contents, Id, Leaf, PrivateKey};
use super::next::{CaBundle, CertificatePolicy, CertificateStep, Memory, Next, View, next};

const PROPAGATION: Duration = Duration::from_mins(1);
pub(super) const DAY: Duration = Duration::from_hours(24);

/// One version of a webhook configuration, and when it was superseded.
pub(super) struct Version {
    pub(super) anchors: Vec<Anchor>,
    superseded: Option<Duration>,
}

pub(super) struct SimulatedCerts {
    pub(super) uptime: Duration,
    pub(super) made: usize,
    pub(super) secret: (u64, Contents),
    pub(super) configurations: BTreeMap<String, Vec<Version>>,
    pub(super) replicas: Vec<CertReplica>,
}

/// How far a replica is in its round.
enum Phase {
    Start,
    SawBundles(BTreeMap<String, CaBundle>),
    SawPods(BTreeMap<String, CaBundle>, BTreeSet<String>),
    Decided(Box<View>, u64, CertificateStep),
}

pub(super) struct CertReplica {
    pod: String,
    memory: Memory,
    pub(super) serving: Option<Leaf>,
    phase: Phase,
}

impl SimulatedCerts {
    pub(super) fn new(replicas: usize) -> Self {
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

    fn new_replica(&mut self) -> CertReplica {
        CertReplica {
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

    fn policy(&self, replica: usize) -> CertificatePolicy {
        CertificatePolicy {
            replica: self.replicas[replica].pod.clone(),
            authority_lifetime: 3650 * DAY,
            leaf_lifetime: 365 * DAY,
            propagation: PROPAGATION,
        }
    }

    pub(super) fn crash(&mut self, replica: usize) {
        let pod = self.replicas[replica].pod.clone();
        self.replicas[replica] = CertReplica {
            pod,
            ..self.new_replica()
        };
    }

    pub(super) fn replace_pod(&mut self, replica: usize) {
        self.replicas[replica] = self.new_replica();
    }

    pub(super) fn wipe_secret(&mut self) {
        self.secret = (self.secret.0 + 1, Contents::default());
    }

    /// Changes another part of the object, so that only its version differs.
    pub(super) fn edit_configuration(&mut self, which: usize) {
        let name = self.configurations.keys().nth(which).unwrap().clone();
        let anchors = newest(&self.configurations[&name]).anchors.clone();
        self.publish(&name, anchors);
    }

    pub(super) fn act_alone(&mut self, replica: usize, times: usize) {
        for _ in 0..times {
            self.act(replica);
            self.assert_no_gap();
            self.uptime += Duration::from_secs(3);
        }
    }

    /// Lets every replica complete its present round.
    pub(super) fn end_rounds(&mut self) {
        for replica in 0..self.replicas.len() {
            while !matches!(self.replicas[replica].phase, Phase::Start) {
                self.act(replica);
            }
        }
    }

    /// Makes one request of a replica: it reads the bundles, the pods or the Secret, or takes its
    /// step.
    pub(super) fn act(&mut self, index: usize) {
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

    fn bundles(&self) -> BTreeMap<String, CaBundle> {
        let bundle = |versions: &Vec<Version>| CaBundle {
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
        bundles: BTreeMap<String, CaBundle>,
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
            Next::Wait => Phase::Start,
            Next::Rest => {
                // A replica that rests looks again when an object changes, or after minutes. A step
                // that waits only for the propagation of a bundle would be that late.
                let later = uptime + PROPAGATION;
                assert_eq!(next(&view, memory, &policy, now, later), Next::Rest);
                Phase::Start
            }
        }
    }

    fn perform(&mut self, index: usize, view: &View, version: u64, step: CertificateStep) {
        let contents = view.contents.clone();
        match step {
            CertificateStep::Serve => {
                let leaf = contents.leaf.unwrap();
                self.replicas[index].memory.serving = Some(leaf.id.clone());
                self.replicas[index].serving = Some(leaf);
            }
            CertificateStep::Publish {
                configuration,
                anchors,
            } => {
                let seen = view.bundles[&configuration].revision.clone();
                if self.configurations[&configuration].len().to_string() == seen {
                    self.publish(&configuration, anchors);
                }
            }
            CertificateStep::Introduce => {
                let authority = self.authority();
                self.store(version, contents.introduce(authority, self.now()));
            }
            CertificateStep::Promote => {
                let leaf = self.leaf(contents.next.as_ref().unwrap());
                self.store(version, contents.promote(leaf));
            }
            CertificateStep::Renew => {
                let leaf = self.leaf(contents.current.as_ref().unwrap());
                self.store(version, contents.renew(leaf));
            }
            CertificateStep::Acknowledge(leaf) => {
                let pod = self.replicas[index].pod.clone();
                self.store(
                    version,
                    contents.acknowledge(&pod, leaf, view.pods.as_ref()),
                );
            }
            CertificateStep::Retire => self.store(version, contents.retire()),
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

    /// Checks that an API server verifies every served leaf, whichever version of a bundle it has.
    /// An empty bundle verifies nothing, but only exists before the first start.
    pub(super) fn assert_no_gap(&self) {
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

    pub(super) fn run_fairly(&mut self, rounds: usize) {
        for _ in 0..rounds {
            for replica in 0..self.replicas.len() {
                self.act(replica);
                self.assert_no_gap();
            }
            self.uptime += Duration::from_secs(5);
        }
    }

    pub(super) fn assert_settled(&self) {
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

pub(super) fn newest(versions: &[Version]) -> &Version {
    versions.last().unwrap()
}
