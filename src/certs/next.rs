//! Decides the one step to take now. Pure: everything that is read, remembered and wanted is an
//! argument.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, SystemTime};

use super::contents::{Anchor, Authority, Contents, Id, Leaf};

/// The authorities in the CA bundles of one webhook configuration.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CaBundle {
    /// The authorities that at least one of its webhooks trusts.
    pub anchors: Vec<Anchor>,
    /// The authorities that all of its webhooks trust.
    pub everywhere: BTreeSet<Id>,
    /// Whether all its webhooks have the same bundle, with nothing else in it.
    pub uniform: bool,
    /// A text that identifies the version of the object.
    pub revision: String,
}

/// What one look at the cluster has read. The bundles are read before the Secret: so an authority
/// that is in a bundle and not in the Secret was retired, or belongs to another issuer, but is
/// never a new one.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct View {
    /// The webhook configurations that exist, by name.
    pub bundles: BTreeMap<String, CaBundle>,
    /// Rayfit's pods that may be serving; `None` if they are not known.
    pub pods: Option<BTreeSet<String>>,
    /// The contents of the Secret.
    pub contents: Contents,
}

/// What a replica remembers from look to look. Losing it costs only time.
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
    /// Records what a look at `uptime` has shown.
    pub fn note(&mut self, view: &View, uptime: Duration) {
        let revision =
            |(name, bundle): (&String, &CaBundle)| (name.clone(), bundle.revision.clone());
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

/// The wanted state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CertificatePolicy {
    /// The name under which this replica acknowledges: that of its pod.
    pub replica: String,
    /// The lifetime of an authority.
    pub authority_lifetime: Duration,
    /// The lifetime of a leaf.
    pub leaf_lifetime: Duration,
    /// How long a change of a webhook configuration may take to reach every API server.
    pub propagation: Duration,
}

impl CertificatePolicy {
    /// A leaf is renewed when less than this is left of its lifetime.
    pub fn leaf_margin(&self) -> Duration {
        self.leaf_lifetime / 4
    }

    /// An authority is replaced when less than this is left of its lifetime, because it has to
    /// outlive its leaves.
    pub fn authority_margin(&self) -> Duration {
        self.leaf_lifetime * 2
    }
}

/// A step. Each step changes one object, by compare-and-swap on the version that was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CertificateStep {
    /// Serve the Secret's leaf. This changes only this process.
    Serve,
    /// Write these authorities into every webhook of a configuration.
    Publish {
        /// The configuration's name.
        configuration: String,
        /// The whole bundle.
        anchors: Vec<Anchor>,
    },
    /// Put a new authority into the Secret; it signs nothing yet.
    Introduce,
    /// Make the next authority the current one, which signs a new leaf; the old one becomes a
    /// former one.
    Promote,
    /// Let the current authority sign a new leaf.
    Renew,
    /// Acknowledge in the Secret which leaf this replica serves.
    Acknowledge(Id),
    /// Remove the former authorities from the Secret.
    Retire,
}

/// What to do after a look.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Next {
    /// Take this step, then look again at once.
    Take(CertificateStep),
    /// A rotation is under way: look again soon, even if no object seems to change.
    Wait,
    /// Everything is as it is wanted.
    Rest,
}

/// Decides the next step. `now` is the wall clock; `uptime` counts from any fixed point and never
/// jumps.
pub fn next(
    view: &View,
    memory: &Memory,
    policy: &CertificatePolicy,
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
        // After `serve`, so that nothing is acknowledged that is not served.
        .or_else(|| look.acknowledge())
        .or_else(|| look.retire());
    match step {
        Some(step) => Next::Take(step),
        // A renewal that is due comes as soon as its authority has been trusted for long enough. No
        // watch reports that moment, so the replica must not rest.
        None if look.is_settled() && !look.is_renewal_due() => Next::Rest,
        None => Next::Wait,
    }
}

struct Look<'a> {
    view: &'a View,
    memory: &'a Memory,
    policy: &'a CertificatePolicy,
    now: SystemTime,
    uptime: Duration,
}

impl<'a> Look<'a> {
    fn serve(&self) -> Option<CertificateStep> {
        let leaf = self.usable_leaf()?;
        (self.memory.serving.as_ref() != Some(&leaf.id)).then_some(CertificateStep::Serve)
    }

    /// Unknown authorities stay in the bundles until the rotation has ended.
    fn publish(&self) -> Option<CertificateStep> {
        let wanted = self.view.contents.anchors(self.now);
        if wanted.is_empty() {
            return None;
        }
        let settled = self.is_settled();
        self.view.bundles.iter().find_map(|(name, bundle)| {
            // A replica may still serve a certificate that an authority signed which is not in the
            // Secret.
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

    /// Whether the current authority has to sign a new leaf, and can do so.
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

    /// Whether every API server has had the authority for long enough.
    fn is_trusted(&self, anchor: &Anchor) -> bool {
        let mut bundles = self.view.bundles.values();
        let stood = self.uptime.saturating_sub(self.memory.bundles_since);
        let everywhere = bundles.all(|bundle| bundle.everywhere.contains(&anchor.id));
        // If no API server has ever had one, no served certificate could be trusted before either,
        // and waiting would only delay the start.
        everywhere && (stood >= self.policy.propagation || self.is_first(anchor))
    }

    fn is_first(&self, anchor: &Anchor) -> bool {
        let alone = |bundle: &CaBundle| bundle.anchors.iter().all(|other| other.id == anchor.id);
        self.view.contents.leaf.is_none() && self.view.bundles.values().all(alone)
    }

    /// Whether every pod that may be serving has taken the current authority's leaf.
    fn is_served_by_all(&self) -> bool {
        let contents = &self.view.contents;
        let (Some(current), Some(leaf)) = (&contents.current, self.usable_leaf()) else {
            return false;
        };
        let stood = self.uptime.saturating_sub(self.memory.leaf_since);
        let takes_it = |pod: &String| contents.served.get(pod) == Some(&leaf.id);
        contents.next.is_none()
            && leaf.issuer.as_ref() == Some(&current.anchor.id)
            // A pod that starts now reads the present Secret, and one that started as the leaf
            // changed is in the list by then.
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
