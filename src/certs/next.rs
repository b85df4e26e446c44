//! The one step to take now. Pure: all of what is seen, remembered and wanted is an argument.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, SystemTime};

use super::contents::{Anchor, Authority, Contents, Id, Leaf};

/// The authorities in one webhook configuration.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Bundle {
    /// Those that at least one of its webhooks trusts.
    pub anchors: Vec<Anchor>,
    /// Those that all of its webhooks trust.
    pub everywhere: BTreeSet<Id>,
    /// All its webhooks have the same bundle, and there is nothing else in it.
    pub uniform: bool,
    /// The version of the object that was seen.
    pub revision: String,
}

/// What one look at the cluster shows. The bundles are read before the Secret: an authority that
/// a bundle has and the Secret does not was retired, or is a stranger's, but is never a new one.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct View {
    /// The webhook configurations that exist, by name.
    pub bundles: BTreeMap<String, Bundle>,
    /// The pods of ours that may be serving; `None` if that is not known.
    pub pods: Option<BTreeSet<String>>,
    /// The Secret.
    pub contents: Contents,
}

/// What a replica remembers from look to look. Losing it costs time, nothing else.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Memory {
    /// The leaf that this replica serves.
    pub serving: Option<Id>,
    revisions: BTreeMap<String, String>,
    bundles_since: Duration,
    leaf: Option<Id>,
    leaf_since: Duration,
}

impl Memory {
    /// Notes what a look has shown at `uptime`.
    pub fn note(&mut self, view: &View, uptime: Duration) {
        let revision = |(name, bundle): (&String, &Bundle)| (name.clone(), bundle.revision.clone());
        let revisions = view.bundles.iter().map(revision).collect();
        if self.revisions != revisions {
            self.revisions = revisions;
            self.bundles_since = uptime;
        }
        let leaf = view.contents.leaf.as_ref().map(|leaf| leaf.id.clone());
        if self.leaf != leaf {
            self.leaf = leaf;
            self.leaf_since = uptime;
        }
    }
}

/// What is wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Policy {
    /// The name under which this replica acknowledges: that of its pod.
    pub replica: String,
    /// How long an authority lives.
    pub authority_lifetime: Duration,
    /// How long a leaf lives.
    pub leaf_lifetime: Duration,
    /// How long a change of a webhook configuration may take to reach every API server.
    pub propagation: Duration,
}

impl Policy {
    /// A leaf is renewed when less than this is left of it.
    pub fn leaf_margin(&self) -> Duration {
        self.leaf_lifetime / 4
    }

    /// An authority is replaced when less than this is left of it: it must outlive its leaves.
    pub fn authority_margin(&self) -> Duration {
        self.leaf_lifetime * 2
    }
}

/// A step. Each changes one object, by compare-and-swap on the version that was seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CertificateStep {
    /// Serve the Secret's leaf (changes this process only).
    Serve,
    /// Give these authorities to every webhook of a configuration.
    Publish {
        /// The configuration's name.
        configuration: String,
        /// The whole bundle.
        anchors: Vec<Anchor>,
    },
    /// Put a new authority into the Secret; it signs nothing yet.
    Introduce,
    /// Let the next authority sign: a new leaf, and the old authority becomes a former one.
    Promote,
    /// A new leaf from the current authority.
    Renew,
    /// Say in the Secret which leaf this replica serves.
    Acknowledge(Id),
    /// Drop former authorities from the Secret.
    Retire,
}

/// What to do after a look.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Next {
    /// Do this, then look again at once.
    Take(CertificateStep),
    /// A rotation is under way: look again soon, even if nothing seems to change.
    Wait,
    /// All is as it should be.
    Rest,
}

/// Decides. `now` is the wall clock; `uptime` counts from any fixed point and never jumps back.
pub fn next(
    view: &View,
    memory: &Memory,
    policy: &Policy,
    now: SystemTime,
    uptime: Duration,
) -> Next {
    let look = Look {
        view,
        memory,
        policy,
        now,
        uptime,
    };
    let step = look
        .serve()
        .or_else(|| look.publish())
        .or_else(|| look.introduce())
        .or_else(|| look.promote())
        .or_else(|| look.renew())
        .or_else(|| look.acknowledge())
        .or_else(|| look.retire());
    match step {
        Some(step) => Next::Take(step),
        // A renewal that is due comes as soon as its authority has been trusted for long enough:
        // nobody tells of that moment.
        None if look.is_settled() && !look.is_renewal_due() => Next::Rest,
        None => Next::Wait,
    }
}

struct Look<'a> {
    view: &'a View,
    memory: &'a Memory,
    policy: &'a Policy,
    now: SystemTime,
    uptime: Duration,
}

impl<'a> Look<'a> {
    fn serve(&self) -> Option<CertificateStep> {
        let leaf = self.usable_leaf()?;
        (self.memory.serving.as_ref() != Some(&leaf.id)).then_some(CertificateStep::Serve)
    }

    /// Until all is settled, strangers stay: a replica may still serve what one of them signed.
    fn publish(&self) -> Option<CertificateStep> {
        let wanted = self.view.contents.anchors(self.now);
        if wanted.is_empty() {
            return None;
        }
        let settled = self.is_settled();
        self.view.bundles.iter().find_map(|(name, bundle)| {
            let stranger = |anchor: &&Anchor| {
                !settled
                    && self.now < anchor.not_after
                    && wanted.iter().all(|known| known.id != anchor.id)
            };
            let strangers = bundle.anchors.iter().filter(stranger);
            let anchors: Vec<Anchor> = wanted.iter().copied().chain(strangers).cloned().collect();
            (!bundle.uniform || ids(&anchors) != ids(&bundle.anchors)).then(|| {
                CertificateStep::Publish {
                    configuration: name.clone(),
                    anchors,
                }
            })
        })
    }

    fn introduce(&self) -> Option<CertificateStep> {
        let signer = |authority: &&Authority| {
            authority.key.is_some()
                && self.left(authority.anchor.not_after) > self.policy.authority_margin()
        };
        let contents = &self.view.contents;
        let signers = [&contents.current, &contents.next];
        let found = signers.into_iter().flatten().find(signer);
        found.is_none().then_some(CertificateStep::Introduce)
    }

    fn promote(&self) -> Option<CertificateStep> {
        let next = self.view.contents.next.as_ref()?;
        self.is_trusted(&next.anchor)
            .then_some(CertificateStep::Promote)
    }

    fn renew(&self) -> Option<CertificateStep> {
        let current = self.view.contents.current.as_ref()?;
        (self.is_renewal_due() && self.is_trusted(&current.anchor))
            .then_some(CertificateStep::Renew)
    }

    /// The current authority has to sign a new leaf, and can.
    fn is_renewal_due(&self) -> bool {
        let contents = &self.view.contents;
        let Some(current) = &contents.current else {
            return false;
        };
        let fresh = self.usable_leaf().is_some_and(|leaf| {
            leaf.issuer.as_ref() == Some(&current.anchor.id)
                && self.left(leaf.not_after) > self.policy.leaf_margin()
        });
        !fresh && contents.next.is_none() && current.key.is_some()
    }

    fn acknowledge(&self) -> Option<CertificateStep> {
        let leaf = self.usable_leaf()?;
        let said = self.view.contents.served.get(&self.policy.replica);
        (said != Some(&leaf.id)).then(|| CertificateStep::Acknowledge(leaf.id.clone()))
    }

    fn retire(&self) -> Option<CertificateStep> {
        let old = !self.view.contents.old.is_empty();
        (old && self.is_served_by_all()).then_some(CertificateStep::Retire)
    }

    /// Every API server has had the authority for long enough, or none has ever had any: then
    /// nothing that is served could be trusted before, and waiting would only delay the start.
    fn is_trusted(&self, anchor: &Anchor) -> bool {
        let mut bundles = self.view.bundles.values();
        let stood = self.uptime.saturating_sub(self.memory.bundles_since);
        let everywhere = bundles.all(|bundle| bundle.everywhere.contains(&anchor.id));
        everywhere && (stood >= self.policy.propagation || self.is_first(anchor))
    }

    fn is_first(&self, anchor: &Anchor) -> bool {
        let alone = |bundle: &Bundle| bundle.anchors.iter().all(|other| other.id == anchor.id);
        self.view.contents.leaf.is_none() && self.view.bundles.values().all(alone)
    }

    /// Every pod that may be serving has taken the current authority's leaf. A pod that starts
    /// now reads the Secret as it is now; one that started as the leaf changed is in the list by
    /// the time that the leaf has stood for a while.
    fn is_served_by_all(&self) -> bool {
        let contents = &self.view.contents;
        let (Some(current), Some(leaf)) = (&contents.current, self.usable_leaf()) else {
            return false;
        };
        let stood = self.uptime.saturating_sub(self.memory.leaf_since);
        let takes_it = |pod: &String| contents.served.get(pod) == Some(&leaf.id);
        contents.next.is_none()
            && leaf.issuer.as_ref() == Some(&current.anchor.id)
            && stood >= self.policy.propagation
            && self
                .view
                .pods
                .as_ref()
                .is_some_and(|pods| pods.iter().all(takes_it))
    }

    fn is_settled(&self) -> bool {
        self.view.contents.old.is_empty() && self.is_served_by_all()
    }

    fn usable_leaf(&self) -> Option<&'a Leaf> {
        let leaf = self.view.contents.leaf.as_ref()?;
        (leaf.issuer.is_some() && self.now < leaf.not_after).then_some(leaf)
    }

    fn left(&self, until: SystemTime) -> Duration {
        until.duration_since(self.now).unwrap_or_default()
    }
}

fn ids(anchors: &[Anchor]) -> BTreeSet<&Id> {
    anchors.iter().map(|anchor| &anchor.id).collect()
}
