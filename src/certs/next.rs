//! Decides the one step to take now. Pure: everything that is read and wanted is an argument.

use std::collections::{BTreeMap, BTreeSet};
use std::time::SystemTime;

use super::contents::{Anchor, Contents};
use super::options::CertificateOptions;

/// The authorities in the CA bundles of one webhook configuration.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CaBundle {
    /// The authorities that at least one of its webhooks trusts.
    pub anchors: Vec<Anchor>,
    /// The authorities that all of its webhooks trust.
    pub everywhere: BTreeSet<String>,
    /// All its webhooks have the same bundle, with nothing else in it.
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

/// A step. All but the last two change one object each, by compare-and-swap on the version that was read.
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
    /// Wait: another step comes due with time, so look again soon, even if no object seems to change.
    Wait,
    /// Rest, because everything is as it is wanted.
    Rest,
}

/// Decides the next step of a replica that serves the leaf `serving`, at `now`. After each step but the last two it
/// looks again at once.
pub fn next(
    view: &View,
    serving: Option<&str>,
    options: &CertificateOptions,
    now: SystemTime,
) -> CertificateStep {
    let contents = &view.contents;
    let is_within =
        |until: SystemTime, margin| until.duration_since(now).unwrap_or_default() > margin;
    let is_past = |since: SystemTime, time| now.duration_since(since).unwrap_or_default() >= time;
    let leaf = contents.leaf.as_ref();
    let leaf = leaf.filter(|leaf| leaf.issuer.is_some() && now < leaf.not_after);
    if let Some(leaf) = leaf
        && serving != Some(leaf.id.as_str())
    {
        return CertificateStep::Serve;
    }
    let signer = contents.authority.as_ref();
    let leaf = leaf.filter(|leaf| {
        signer.is_some_and(|authority| leaf.issuer.as_ref() == Some(&authority.anchor.id))
    });
    // The former authorities whose certificates a replica may still serve: replicas hear of a new leaf by a watch,
    // and look by themselves every few minutes.
    let taken_over = options.propagation * 10;
    let is_taken_over = leaf.is_some_and(|leaf| is_past(leaf.issued, taken_over));
    let lives = |anchor: &&Anchor| now < anchor.not_after;
    let former = contents.former.iter();
    let former: Vec<&Anchor> = former.filter(|_| !is_taken_over).filter(lives).collect();
    // The authorities in bundles of which the Secret does not know.
    let authority = signer.iter().map(|authority| &authority.anchor);
    let mut secret_ids = ids(authority.chain(&contents.former));
    let strangers = view.bundles.values().flat_map(|bundle| &bundle.anchors);
    let strangers: Vec<&Anchor> = (strangers.filter(lives))
        .filter(|anchor| secret_ids.insert(anchor.id.as_str()))
        .collect();
    // An authority has to outlive the leaves that it signs.
    let outlives = |anchor: &Anchor| is_within(anchor.not_after, options.leaf_lifetime * 2);
    let usable = signer.filter(|signer| signer.key.is_some() && outlives(&signer.anchor));
    let Some(authority) = usable.map(|authority| &authority.anchor) else {
        // A replica may serve what any of these has signed.
        let all = signer.iter().map(|authority| &authority.anchor);
        let all = all.chain(&contents.former).chain(strangers);
        return CertificateStep::Introduce(all.cloned().collect());
    };
    // Before a leaf is signed, so that API servers know who signs it.
    let anchors = std::iter::once(authority).chain(former.iter().copied());
    let anchors: Vec<&Anchor> = anchors.chain(strangers.iter().copied()).collect();
    let differs = |bundle: &CaBundle| {
        !bundle.uniform || ids(bundle.anchors.iter()) != ids(anchors.iter().copied())
    };
    if let Some((configuration, _)) = view.bundles.iter().find(|(_, bundle)| differs(bundle)) {
        return CertificateStep::Publish {
            configuration: configuration.clone(),
            anchors: anchors.into_iter().cloned().collect(),
        };
    }
    // A quarter of its lifetime is left for failures of the API server until a leaf has to be renewed.
    let fresh = leaf.is_some_and(|leaf| is_within(leaf.not_after, options.leaf_lifetime / 4));
    // With the leaf begins the time after which nobody serves what the strangers have signed.
    let must_sign = !fresh || !strangers.is_empty();
    // Every API server needs to have had the authority for long enough. The first authority signs at
    // once: no served certificate was trusted before, and waiting would only delay the start.
    let mut bundles = view.bundles.values();
    let everywhere = bundles.all(|bundle| bundle.everywhere.contains(&authority.id));
    let first = contents.leaf.is_none() && contents.former.is_empty();
    let may_sign = everywhere && (first || is_past(authority.issued, options.propagation));
    if must_sign && may_sign {
        let former = former.into_iter().chain(strangers).cloned();
        CertificateStep::Sign(former.collect())
    } else if must_sign || !former.is_empty() {
        CertificateStep::Wait
    } else {
        CertificateStep::Rest
    }
}

fn ids<'a>(anchors: impl IntoIterator<Item = &'a Anchor>) -> BTreeSet<&'a str> {
    (anchors.into_iter().map(|anchor| anchor.id.as_str())).collect()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::contents::{Authority, Leaf, PrivateKey};
    use super::*;

    const DAY: Duration = Duration::from_hours(24);
    const MINUTE: Duration = Duration::from_mins(1);

    fn options() -> CertificateOptions {
        CertificateOptions {
            propagation: MINUTE,
            ..CertificateOptions::new("rayfit-system/rayfit-certs").unwrap()
        }
    }

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

        fn id(&mut self) -> String {
            self.made += 1;
            self.made.to_string()
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
                        not_after: self.now + options().leaf_lifetime,
                        chain: String::new(),
                        key: PrivateKey(String::new()),
                    });
                    self.view.contents.former = former;
                }
                CertificateStep::Wait | CertificateStep::Rest => {}
            }
        }

        /// Takes all steps that can be taken now.
        fn settle(&mut self) -> CertificateStep {
            for _ in 0..20 {
                let serving = self.serving.as_ref().map(|leaf| leaf.id.clone());
                let step = next(&self.view, serving.as_deref(), &options(), self.now);
                self.take(step.clone());
                self.assert_trusted();
                if matches!(step, CertificateStep::Wait | CertificateStep::Rest) {
                    return step;
                }
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
                ids.map(String::as_str).collect::<Vec<_>>()
            });
            let first = trusted.next().unwrap();
            assert!(trusted.all(|other| other == first));
            first
        }

        fn serving(&self) -> &str {
            &self.serving.as_ref().unwrap().id
        }
    }

    #[test]
    fn the_first_start_does_not_wait() {
        let mut world = World::new();
        assert_eq!(world.settle(), CertificateStep::Rest);
        assert_eq!((world.trusted(), world.serving()), (vec!["1"], "2"));
    }

    #[test]
    fn one_authority_signs_for_ten_years_and_is_replaced_before_it_ends() {
        let mut world = World::new();
        world.settle();
        for _ in 0..365 * 9 {
            world.now += DAY;
            assert_eq!(world.settle(), CertificateStep::Rest);
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
        assert_eq!(world.settle(), CertificateStep::Wait);
        assert_eq!((world.trusted(), world.serving()), (vec!["1", "3"], "2"));
        world.now += MINUTE;
        assert_eq!(world.settle(), CertificateStep::Wait);
        assert_eq!((world.trusted(), world.serving()), (vec!["1", "3"], "4"));
        // Another replica may serve the former certificate for a while.
        world.now += 9 * MINUTE;
        assert_eq!(world.settle(), CertificateStep::Wait);
        world.now += MINUTE;
        assert_eq!(world.settle(), CertificateStep::Rest);
        assert_eq!((world.trusted(), world.serving()), (vec!["3"], "4"));
        // The rest of it in the Secret goes with the next leaf.
        world.now += 80 * DAY;
        assert_eq!(world.settle(), CertificateStep::Rest);
        assert_eq!(world.view.contents.former, []);
    }

    #[test]
    fn an_emptied_secret_is_no_outage() {
        let mut world = World::new();
        world.settle();
        world.view.contents = Contents::default();
        assert_eq!(world.settle(), CertificateStep::Wait);
        assert_eq!((world.trusted(), world.serving()), (vec!["1", "3"], "2"));
        world.now += MINUTE;
        world.settle();
        assert_eq!(world.serving(), "4");
        world.now += options().propagation * 10;
        assert_eq!(world.settle(), CertificateStep::Rest);
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
        world.now += options().propagation * 10;
        assert_eq!(world.settle(), CertificateStep::Rest);
        assert_eq!(world.trusted(), ["1"]);
    }

    #[test]
    fn a_bundle_that_somebody_resets_is_mended() {
        let mut world = World::new();
        world.settle();
        let leaf = world.serving().to_owned();
        world.publish("validating", &[]);
        assert_eq!(world.settle(), CertificateStep::Rest);
        assert_eq!((world.trusted(), world.serving()), (vec!["1"], &*leaf));
    }
}
