//! Growth that was asked for and may not be observed yet, as budgets have to count it.
//!
//! What a budget leaves for a cluster follows from the pods as they were observed. A watch may lag, and the
//! answer to a resize may be lost; then a pod is larger than it looks. So the size that a pod may have
//! been given counts until the pod has been observed so for a while, or has been read anew.

use std::collections::BTreeMap;

use crate::budget::amounts::BudgetAmounts;
use crate::plan;
use crate::plan::Plan;
use crate::reconcile::effects::done::Done;
use crate::reconcile::effects::effect::Effect;
use crate::reconcile::effects::failure::{Failure, Meaning};
use crate::snapshot::OwnPods;

/// For how many seconds a size is remembered: many times longer than a watch of a healthy API server
/// lags. What is not observed by then is read anew.
const LONGEST_S: f64 = 30.0;

/// Growth that may not be observed yet.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct UnseenGrowth {
    /// The sizes that pods may have been given, and when, in seconds since 1970.
    given: BTreeMap<String, (BudgetAmounts, f64)>,
    /// Whether the cluster's objects were read since this process scales it, and since a call after
    /// which it is not known how they are.
    is_known: bool,
}

impl UnseenGrowth {
    /// Whether the cluster's objects have to be read anew before it may grow.
    pub(crate) fn needs_read(&self, pods: &OwnPods, now: f64) -> bool {
        let is_lost = |(pod, (given, at)): (&String, &(BudgetAmounts, f64))| {
            now - at >= LONGEST_S
                && pods
                    .find(pod)
                    .is_some_and(|pod| !given.is_within(plan::charged_size(&pod)))
        };
        !self.is_known || self.given.iter().any(is_lost)
    }

    /// Takes in the pods as they are stored.
    pub(crate) fn read(&mut self, pods: &OwnPods, now: f64) {
        self.is_known = true;
        let sizes = pods
            .iter()
            .map(|pod| (pod.name.to_owned(), (plan::charged_size(&pod), now)));
        self.given = sizes.collect();
    }

    /// By how much pods may be larger than they look.
    pub(crate) fn hidden(&self, pods: &OwnPods) -> BudgetAmounts {
        let hidden = pods.iter().filter_map(|pod| {
            let (given, _) = self.given.get(pod.name)?;
            Some(given.minus(plan::charged_size(&pod)))
        });
        hidden.fold(BudgetAmounts::default(), BudgetAmounts::plus)
    }

    /// Takes in what came of a round.
    pub(crate) fn note(&mut self, plan: &Plan, done: &[Done], now: f64) {
        // Old sizes have been observed, or `needs_read` has had all pods read.
        self.given
            .retain(|_, (_, at)| (now - *at).abs() < 2.0 * LONGEST_S);
        for done in done {
            let refused = done.result.as_ref().err().is_some_and(is_refused);
            match &done.effect {
                Effect::ResizePod(patch) if !refused => {
                    let mut resizes = plan.resizes.iter();
                    let Some(resize) = resizes.find(|resize| resize.pod == patch.pod) else {
                        continue;
                    };
                    let mut size = BudgetAmounts {
                        cpu_milli: u64::try_from(resize.cpu_milli).unwrap_or(0),
                        memory_bytes: u64::try_from(resize.memory_bytes).unwrap_or(0),
                        // Kubernetes resizes CPU and memory only.
                        gpus: 0,
                    };
                    let before = self.given.get(&patch.pod).map(|(before, _)| *before);
                    if let Some(before) = before.filter(|_| done.result.is_err()) {
                        // Whether the call was carried out is not known, so the pod has one of the
                        // two sizes.
                        size = size.max(before);
                    }
                    self.given.insert(patch.pod.clone(), (size, now));
                }
                // Without an answer it is not known how many replicas are asked for, until the
                // objects are read.
                Effect::PatchCluster(_) if done.result.is_err() && !refused => {
                    self.is_known = false;
                }
                _ => {}
            }
        }
    }
}

/// Whether a call has certainly changed nothing.
fn is_refused(failure: &Failure) -> bool {
    match failure {
        Failure::NotSent(_) | Failure::NotAdmitted(_) => true,
        Failure::Api(status) => {
            (400..500).contains(&status.code) && failure.meaning() != Meaning::Transient
        }
        Failure::Gcs { .. } | Failure::NoAnswer(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::plan::PodResize;
    use crate::reconcile::effects::effect::{ClusterPatch, PodPatch};
    use crate::reconcile::{EffectTarget, Reply};
    use crate::snapshot::ClusterId;

    fn pods(cpu: u32) -> OwnPods {
        let size = json!({"cpu": cpu.to_string(), "memory": "1Gi"});
        let pod = json!({
            "metadata": {"name": "w", "labels": {"ray.io/cluster": "demo", "ray.io/group": "cpu",
                "ray.io/node-type": "worker"}},
            "spec": {"containers": [{"name": "ray",
                "resources": {"requests": size, "limits": size}}]},
        });
        let id = ClusterId::of(&json!({"metadata": {"name": "demo"}}));
        OwnPods::divide(id, [serde_json::from_value(pod).unwrap()]).0
    }

    fn asked(cpu: i64, result: Result<Reply, Failure>) -> (Plan, Done) {
        let resize = PodResize {
            pod: "w".to_owned(),
            cpu_milli: cpu * 1000,
            memory_bytes: 1 << 30,
            cpu_milli_now: 0,
            memory_bytes_now: 0,
            raylet_first: false,
            spare_seconds: None,
            memory_reason: None,
            demand: None,
        };
        let plan = Plan {
            resizes: vec![resize],
            ..Plan::default()
        };
        let patch = PodPatch {
            pod: "w".to_owned(),
            body: json!({}),
        };
        let done = Done {
            about: EffectTarget::Pod("w".to_owned()),
            effect: Effect::ResizePod(patch),
            result,
        };
        (plan, done)
    }

    fn unanswered() -> Result<Reply, Failure> {
        Err(Failure::NoAnswer(String::new()))
    }

    /// Two cores, and then what came of a resize at 100.
    fn after(cpu: i64, result: Result<Reply, Failure>) -> UnseenGrowth {
        let mut unseen = UnseenGrowth::default();
        assert!(unseen.needs_read(&pods(2), 100.0));
        unseen.read(&pods(2), 100.0);
        assert!(!unseen.needs_read(&pods(2), 100.0));
        let (plan, done) = asked(cpu, result);
        unseen.note(&plan, &[done], 100.0);
        unseen
    }

    #[test]
    fn a_pod_counts_as_it_may_be_until_it_is_seen_so() {
        for result in [Ok(Reply::Ok), unanswered()] {
            let unseen = after(8, result);
            assert_eq!(unseen.hidden(&pods(2)).cpu_milli, 6000);
            assert_eq!(unseen.hidden(&pods(8)).cpu_milli, 0);
            // What a watch shows may be older than what it showed before.
            assert_eq!(unseen.hidden(&pods(2)).cpu_milli, 6000);
        }
        let refused = Err(Failure::NotSent(String::new()));
        assert_eq!(after(8, refused).hidden(&pods(2)).cpu_milli, 0);
    }

    #[test]
    fn a_pod_that_may_have_shrunk_counts_as_large() {
        let mut unseen = after(8, Ok(Reply::Ok));
        let (plan, done) = asked(2, unanswered());
        unseen.note(&plan, &[done], 105.0);
        assert_eq!(unseen.hidden(&pods(2)).cpu_milli, 6000);
        let (plan, done) = asked(2, Ok(Reply::Ok));
        unseen.note(&plan, &[done], 110.0);
        assert_eq!(unseen.hidden(&pods(2)).cpu_milli, 0);
    }

    #[test]
    fn what_is_not_seen_for_long_is_read() {
        let mut unseen = after(8, Ok(Reply::Ok));
        assert!(!unseen.needs_read(&pods(2), 129.0));
        assert!(unseen.needs_read(&pods(2), 130.0));
        assert!(!unseen.needs_read(&pods(8), 130.0));
        unseen.read(&pods(2), 131.0);
        assert!(!unseen.needs_read(&pods(2), 131.0));
        assert_eq!(unseen.hidden(&pods(2)).cpu_milli, 0);
    }

    /// Then it is not known how many replicas there are.
    #[test]
    fn a_launch_without_an_answer_is_looked_up() {
        let mut unseen = after(2, Ok(Reply::Ok));
        let launch = |result| Done {
            about: EffectTarget::Cluster,
            effect: Effect::PatchCluster(ClusterPatch {
                operations: json_patch::Patch(Vec::new()),
                changes: Vec::new(),
            }),
            result,
        };
        unseen.note(&Plan::default(), &[launch(Ok(Reply::Ok))], 101.0);
        assert!(!unseen.needs_read(&pods(2), 101.0));
        unseen.note(&Plan::default(), &[launch(unanswered())], 102.0);
        assert!(unseen.needs_read(&pods(2), 102.0));
    }
}
