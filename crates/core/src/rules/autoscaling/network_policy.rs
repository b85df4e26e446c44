//! RF240: a RayCluster that closes its head to Rayfit's controller.

use crate::ray::cluster::{closing_policy, gcs_port};
use crate::ray::feature_gate::NETWORK_POLICY;
use crate::rules::prelude::*;

pub(crate) static RULE: Rule = Rule {
    id: RuleId(240),
    name: "network-policy",
    mode: OwnMode::Always(Mode::Warn),
    summary: "Mode central with a `networkPolicy` that closes the head's GCS port to Rayfit",
    page: include_str!("network_policy.md"),
    why: "In mode central Rayfit's controller asks the GCS for the state of the cluster, and \
          scales nothing while it gets no answer.",
    cel: Cel::NotCovered("It reads ports and peers of rules that may have several forms."),
    check,
};

fn check(subject: &Subject<'_>, findings: &mut Vec<Finding>) {
    let settings = subject.settings;
    // An older KubeRay has no such field, and without its gate KubeRay refuses the object (RF708).
    let is_off = settings.stated_gate(&NETWORK_POLICY) == Some(false);
    if is_off || settings.kuberay < NETWORK_POLICY.since {
        return;
    }
    let is_central = subject.object.reconcile_mode() == ReconcileMode::Central;
    let cluster = subject.autoscaled().filter(|_| is_central);
    let policy = cluster.and_then(|cluster| Some((cluster, closing_policy(cluster.spec)?)));
    let Some((cluster, policy)) = policy else {
        return;
    };
    let head = cluster.head.as_ref();
    let port = gcs_port(head.and_then(|head| head.start_param("port")));
    let mut rules = policy.below("head").list("ingressRules").objects();
    if rules.any(|rule| admits(rule, port)) {
        return;
    }
    findings.push(RULE.finding(
        cluster.path().key("networkPolicy"),
        format!("lets no other namespace reach the head's GCS, port {port}"),
        format!(
            "Add a rule to networkPolicy.head.ingressRules: from a namespaceSelector of Rayfit's \
             namespace to port {port}."
        ),
    ));
}

/// True if an ingress rule lets somebody outside of the namespace reach that port, as far as can be told without the
/// labels of namespaces.
fn admits(rule: Fields<'_>, port: u16) -> bool {
    let is_elsewhere = |peer: Fields<'_>| {
        let has = |key| peer.get(key).is_some_and(|value| !value.is_null());
        has("namespaceSelector") || has("ipBlock")
    };
    let (peers, ports) = (rule.list("from"), rule.list("ports"));
    // An empty list stands for all.
    (peers.is_empty() || peers.objects().any(is_elsewhere))
        && (ports.is_empty() || ports.objects().any(|entry| covers(entry, port)))
}

/// True if an entry of `ports` is about that port. A name is taken for that of the GCS.
fn covers(entry: Fields<'_>, port: u16) -> bool {
    let is_tcp = matches!(entry.text("protocol"), None | Some("TCP"));
    let number = |key: &str| entry.get(key)?.as_number()?.as_u64();
    let is_in = number("port").is_none_or(|first| {
        let last = number("endPort").unwrap_or(first);
        (first..=last).contains(&u64::from(port))
    });
    is_tcp && is_in
}
