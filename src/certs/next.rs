//! Decides the one step to take now. Pure: everything that is read and wanted is an argument.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, SystemTime};

use super::contents::{Anchor, Contents, Id, Leaf};

/// The authorities in the CA bundles of one webhook configuration.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CaBundle {
    /// The authorities that at least one of its webhooks trusts.
    pub anchors: Vec<Anchor>,
    /// The authorities that all of its webhooks trust.
    pub everywhere: BTreeSet<Id>,
    /// Whether all its webhooks have the same bundle, with nothing else in it.
    pub uniform: bool,
}

/// The objects that one look at the cluster has read. The bundles are read before the Secret: so an
/// authority that is in a bundle and not in the Secret belongs to an earlier Secret or to another
/// issuer, but is never a new one.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct View {
    /// The webhook configurations that exist, by name.
    pub bundles: BTreeMap<String, CaBundle>,
    /// The contents of the Secret.
    pub contents: Contents,
}

/// The wanted state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CertificatePolicy {
    /// The lifetime of a leaf.
    pub leaf_lifetime: Duration,
    /// The time in which a change of a webhook configuration reaches every API server.
    pub propagation: Duration,
}

impl CertificatePolicy {
    /// A leaf is renewed when less than this is left of its lifetime.
    pub fn leaf_margin(self) -> Duration {
        self.leaf_lifetime / 4
    }

    /// An authority is replaced when less than this is left of its lifetime, because it has to
    /// outlive its leaves.
    pub fn authority_margin(self) -> Duration {
        self.leaf_lifetime * 2
    }

    /// The time from the issue of a leaf until no replica serves an earlier one. Replicas are told
    /// of it by a watch, and look by themselves every few minutes.
    pub fn take_over(self) -> Duration {
        self.propagation * 10
    }
}

/// A step. Each step changes one object, by compare-and-swap on the version that was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CertificateStep {
    /// Serve the Secret's leaf. This changes only this process.
    Serve,
    /// Put a new authority into the Secret; it signs nothing yet. These are the former ones.
    Introduce(Vec<Anchor>),
    /// Write these authorities into every webhook of a configuration.
    Publish {
        /// The configuration's name.
        configuration: String,
        /// The whole bundle.
        anchors: Vec<Anchor>,
    },
    /// Let the authority sign a new leaf. These are the former authorities from then on.
    Sign(Vec<Anchor>),
}

/// The action after a look.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Next {
    /// Take this step, then look again at once.
    Take(CertificateStep),
    /// Another step comes due with time: look again soon, even if no object seems to change.
    Wait,
    /// Everything is as it is wanted.
    Rest,
}

/// Decides the next step of a replica that serves the leaf `serving`, at `now`.
pub fn next(view: &View, serving: Option<&Id>, policy: CertificatePolicy, now: SystemTime) -> Next {
    let look = Look { view, policy, now };
    let contents = &view.contents;
    if let Some(leaf) = look.usable_leaf()
        && serving != Some(&leaf.id)
    {
        return Next::Take(CertificateStep::Serve);
    }
    let usable = contents.authority.as_ref().filter(|authority| {
        authority.key.is_some() && look.left(authority.anchor.not_after) > policy.authority_margin()
    });
    let (former, strangers) = (look.former(), look.strangers());
    let Some(authority) = usable.map(|authority| &authority.anchor) else {
        // A replica may serve what any of these has signed.
        let before = contents.authority.iter().map(|authority| &authority.anchor);
        let before = before.chain(&contents.former).chain(strangers);
        return Next::Take(CertificateStep::Introduce(before.cloned().collect()));
    };
    // Before a leaf is signed, so that API servers know who signs it.
    let wanted = std::iter::once(authority).chain(former.iter().copied());
    let wanted: Vec<&Anchor> = wanted.chain(strangers.iter().copied()).collect();
    let differs = |bundle: &CaBundle| {
        !bundle.uniform || ids(bundle.anchors.iter()) != ids(wanted.iter().copied())
    };
    if let Some((configuration, _)) = view.bundles.iter().find(|(_, bundle)| differs(bundle)) {
        return Next::Take(CertificateStep::Publish {
            configuration: configuration.clone(),
            anchors: wanted.into_iter().cloned().collect(),
        });
    }
    let fresh = look.leaf_of_authority();
    let fresh = fresh.is_some_and(|leaf| look.left(leaf.not_after) > policy.leaf_margin());
    // With the leaf begins the time after which nobody serves what the strangers have signed.
    let must_sign = !fresh || !strangers.is_empty();
    // Every API server needs to have had the authority for long enough. The first authority signs at
    // once: no served certificate was trusted before, and waiting would only delay the start.
    let mut bundles = view.bundles.values();
    let everywhere = bundles.all(|bundle| bundle.everywhere.contains(&authority.id));
    let first = contents.leaf.is_none() && contents.former.is_empty();
    let may_sign = everywhere && (first || look.since(authority.issued) >= policy.propagation);
    if must_sign && may_sign {
        let former = former.into_iter().chain(strangers).cloned();
        Next::Take(CertificateStep::Sign(former.collect()))
    } else if must_sign || !former.is_empty() {
        Next::Wait
    } else {
        Next::Rest
    }
}

struct Look<'a> {
    view: &'a View,
    policy: CertificatePolicy,
    now: SystemTime,
}

impl<'a> Look<'a> {
    /// The former authorities whose certificates a replica may still serve.
    fn former(&self) -> Vec<&'a Anchor> {
        let former = self.view.contents.former.iter();
        match self.leaf_of_authority() {
            Some(leaf) if self.since(leaf.issued) >= self.policy.take_over() => Vec::new(),
            _ => former
                .filter(|anchor| self.now < anchor.not_after)
                .collect(),
        }
    }

    /// The authorities in bundles of which the Secret does not know.
    fn strangers(&self) -> Vec<&'a Anchor> {
        let contents = &self.view.contents;
        let authority = contents.authority.iter().map(|authority| &authority.anchor);
        let mut seen = ids(authority.chain(&contents.former));
        let bundles = self.view.bundles.values();
        bundles
            .flat_map(|bundle| &bundle.anchors)
            .filter(|anchor| self.now < anchor.not_after && seen.insert(&anchor.id))
            .collect()
    }

    fn leaf_of_authority(&self) -> Option<&'a Leaf> {
        let authority = self.view.contents.authority.as_ref()?;
        self.usable_leaf()
            .filter(|leaf| leaf.issuer.as_ref() == Some(&authority.anchor.id))
    }

    fn usable_leaf(&self) -> Option<&'a Leaf> {
        let leaf = self.view.contents.leaf.as_ref()?;
        (leaf.issuer.is_some() && self.now < leaf.not_after).then_some(leaf)
    }

    fn left(&self, until: SystemTime) -> Duration {
        until.duration_since(self.now).unwrap_or_default()
    }

    fn since(&self, then: SystemTime) -> Duration {
        self.now.duration_since(then).unwrap_or_default()
    }
}

fn ids<'a>(anchors: impl IntoIterator<Item = &'a Anchor>) -> BTreeSet<&'a Id> {
    anchors.into_iter().map(|anchor| &anchor.id).collect()
}

#[cfg(test)]
mod tests {
    use super::super::contents::{Authority, PrivateKey};
    use super::*;

    const DAY: Duration = Duration::from_hours(24);
    const MINUTE: Duration = Duration::from_mins(1);
    const POLICY: CertificatePolicy = CertificatePolicy {
        leaf_lifetime: Duration::from_hours(90 * 24),
        propagation: MINUTE,
    };

    /// A cluster with one replica, which takes the steps as the shell does.
    struct World {
        view: View,
        now: SystemTime,
        made: u32,
        serving: Option<Leaf>,
    }

    impl World {
        fn new() -> Self {
            let uniform = CaBundle {
                uniform: true,
                ..CaBundle::default()
            };
            let bundles = ["mutating", "validating"].map(|name| (name.to_owned(), uniform.clone()));
            let view = View {
                bundles: bundles.into(),
                ..View::default()
            };
            let now = SystemTime::UNIX_EPOCH + 20_000 * DAY;
            Self {
                view,
                now,
                made: 0,
                serving: None,
            }
        }

        fn id(&mut self) -> Id {
            self.made += 1;
            Id(self.made.to_string())
        }

        fn anchor(&mut self) -> Anchor {
            Anchor {
                id: self.id(),
                issued: self.now,
                not_after: self.now + 3_650 * DAY,
                pem: String::new(),
            }
        }

        fn publish(&mut self, configuration: &str, anchors: &[Anchor]) {
            let bundle = CaBundle {
                anchors: anchors.to_vec(),
                everywhere: anchors.iter().map(|anchor| anchor.id.clone()).collect(),
                uniform: true,
            };
            self.view.bundles.insert(configuration.to_owned(), bundle);
        }

        fn take(&mut self, step: CertificateStep) {
            match step {
                CertificateStep::Serve => self.serving.clone_from(&self.view.contents.leaf),
                CertificateStep::Introduce(former) => {
                    let anchor = self.anchor();
                    let key = Some(PrivateKey(String::new()));
                    self.view.contents.authority = Some(Authority { anchor, key });
                    self.view.contents.former = former;
                }
                CertificateStep::Publish {
                    configuration,
                    anchors,
                } => self.publish(&configuration, &anchors),
                CertificateStep::Sign(former) => {
                    let authority = self.view.contents.authority.clone().unwrap();
                    self.view.contents.leaf = Some(Leaf {
                        id: self.id(),
                        issuer: Some(authority.anchor.id),
                        issued: self.now,
                        not_after: self.now + POLICY.leaf_lifetime,
                        chain: String::new(),
                        key: PrivateKey(String::new()),
                    });
                    self.view.contents.former = former;
                }
            }
        }

        /// Takes all steps that can be taken now.
        fn settle(&mut self) -> Next {
            for _ in 0..20 {
                let serving = self.serving.as_ref().map(|leaf| leaf.id.clone());
                match next(&self.view, serving.as_ref(), POLICY, self.now) {
                    Next::Take(step) => self.take(step),
                    other => {
                        self.assert_trusted();
                        return other;
                    }
                }
                self.assert_trusted();
            }
            panic!("it takes steps without end: {:?}", self.view);
        }

        fn assert_trusted(&self) {
            let Some(leaf) = &self.serving else { return };
            assert!(self.now < leaf.not_after, "an expired leaf is served");
            let issuer = leaf.issuer.as_ref().unwrap();
            for bundle in self.view.bundles.values() {
                assert!(bundle.everywhere.contains(issuer), "{:?}", self.view);
            }
        }

        fn trusted(&self) -> Vec<&str> {
            let bundles = self.view.bundles.values();
            let mut trusted = bundles.map(|bundle| {
                let ids = bundle.everywhere.iter();
                ids.map(|id| id.0.as_str()).collect::<Vec<_>>()
            });
            let first = trusted.next().unwrap();
            assert!(trusted.all(|other| other == first));
            first
        }

        fn serving(&self) -> &str {
            &self.serving.as_ref().unwrap().id.0
        }
    }

    #[test]
    fn the_first_start_does_not_wait() {
        let mut world = World::new();
        assert_eq!(world.settle(), Next::Rest);
        assert_eq!((world.trusted(), world.serving()), (vec!["1"], "2"));
    }

    #[test]
    fn one_authority_signs_for_ten_years_and_is_replaced_before_it_ends() {
        let mut world = World::new();
        world.settle();
        for _ in 0..365 * 9 {
            world.now += DAY;
            assert_eq!(world.settle(), Next::Rest);
            assert_eq!(world.trusted(), ["1"]);
        }
        for _ in 0..3_650 {
            world.now += DAY;
            world.settle();
        }
        assert_ne!(world.trusted(), ["1"]);
    }

    #[test]
    fn a_key_that_is_taken_away_replaces_the_authority_without_a_gap() {
        let mut world = World::new();
        world.settle();
        world.view.contents.authority.as_mut().unwrap().key = None;
        // The new one is trusted at once, but signs nothing before all API servers know it.
        assert_eq!(world.settle(), Next::Wait);
        assert_eq!((world.trusted(), world.serving()), (vec!["1", "3"], "2"));
        world.now += MINUTE;
        assert_eq!(world.settle(), Next::Wait);
        assert_eq!((world.trusted(), world.serving()), (vec!["1", "3"], "4"));
        // Another replica may serve the former certificate for a while.
        world.now += 9 * MINUTE;
        assert_eq!(world.settle(), Next::Wait);
        world.now += MINUTE;
        assert_eq!(world.settle(), Next::Rest);
        assert_eq!((world.trusted(), world.serving()), (vec!["3"], "4"));
        // The rest of it in the Secret goes with the next leaf.
        world.now += 80 * DAY;
        assert_eq!(world.settle(), Next::Rest);
        assert_eq!(world.view.contents.former, []);
    }

    #[test]
    fn an_emptied_secret_is_no_outage() {
        let mut world = World::new();
        world.settle();
        world.view.contents = Contents::default();
        assert_eq!(world.settle(), Next::Wait);
        assert_eq!((world.trusted(), world.serving()), (vec!["1", "3"], "2"));
        world.now += MINUTE;
        world.settle();
        assert_eq!(world.serving(), "4");
        world.now += POLICY.take_over();
        assert_eq!(world.settle(), Next::Rest);
        assert_eq!(world.trusted(), ["3"]);
    }

    #[test]
    fn an_authority_of_another_issuer_is_trusted_until_nobody_serves_its_certificates() {
        let mut world = World::new();
        world.settle();
        world.now += DAY;
        let other = world.anchor();
        world.publish("mutating", std::slice::from_ref(&other));
        // Pods of an earlier rollout serve what the other issuer has signed.
        let before = world.serving().to_owned();
        world.settle();
        assert_eq!(world.trusted(), ["1", "3"]);
        assert_ne!(world.serving(), before);
        world.now += POLICY.take_over();
        assert_eq!(world.settle(), Next::Rest);
        assert_eq!(world.trusted(), ["1"]);
    }

    #[test]
    fn a_bundle_that_somebody_resets_is_mended() {
        let mut world = World::new();
        world.settle();
        let leaf = world.serving().to_owned();
        world.publish("validating", &[]);
        assert_eq!(world.settle(), Next::Rest);
        assert_eq!((world.trusted(), world.serving()), (vec!["1"], &*leaf));
    }
}
