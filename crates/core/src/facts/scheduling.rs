//! Nodes on which the pods of a template could run, by those filters of Kubernetes' scheduler that
//! do not depend on other pods (`nodeName`, `nodeSelector`, required node affinity, taints,
//! cordons). Amounts are another matter.
//!
//! The semantics are those of Kubernetes' component helpers (`nodeaffinity`, `tolerations`).

use super::node::Node;
use crate::json::{Fields, Items, Json};

/// The demands of a pod template on its node.
#[derive(Debug)]
pub struct Demands<'a> {
    node_name: Option<&'a str>,
    selector: Option<Fields<'a>>,
    /// Required affinity: one of the terms must hold.
    affinity: Option<Items<'a>>,
    tolerations: Vec<Fields<'a>>,
}

/// The taint that a cordon stands for, whose effect is `NoSchedule`.
const CORDON: &str = "node.kubernetes.io/unschedulable";

impl<'a> Demands<'a> {
    /// Reads from a pod spec what it asks of a node.
    pub fn of(pod_spec: Fields<'a>) -> Self {
        let affinity = pod_spec.below("affinity").below("nodeAffinity");
        let required = affinity.object("requiredDuringSchedulingIgnoredDuringExecution");
        Self {
            node_name: pod_spec.filled("nodeName"),
            selector: pod_spec.object("nodeSelector"),
            affinity: required.map(|required| required.list("nodeSelectorTerms")),
            tolerations: pod_spec.list("tolerations").objects().collect(),
        }
    }

    /// The most comparisons that [`Self::admit`] makes for a node with one taint.
    pub fn comparisons(&self) -> usize {
        let terms = self.affinity.unwrap_or_default().iter().map(|term| {
            let term = term.as_object().unwrap_or_default();
            let lists = ["matchExpressions", "matchFields"].map(|list| term.list(list));
            let requirements = lists.into_iter().flat_map(Items::objects);
            1 + requirements
                .map(|requirement| 1 + requirement.list("values").len())
                .sum::<usize>()
        });
        let selector = self.selector.map_or(0, Fields::len);
        1 + selector + self.tolerations.len() + terms.sum::<usize>()
    }

    /// True if a pod with these demands could run on `node`.
    pub fn admit(&self, node: &Node) -> bool {
        let mut selector = self.selector.unwrap_or_default().iter();
        let term_holds = |term: Json<'_>| {
            let list = |name| term.as_object().unwrap_or_default().list(name);
            let (labels, fields) = (list("matchExpressions"), list("matchFields"));
            let label = |key: &str| node.label(key);
            let field = |key: &str| (key == "metadata.name").then_some(node.name.as_str());
            // For Kubernetes, a term that says nothing holds nowhere.
            (!labels.is_empty() || !fields.is_empty())
                && labels.iter().all(|need| requirement_holds(need, label))
                && fields.iter().all(|need| requirement_holds(need, field))
        };
        self.node_name.is_none_or(|name| name == node.name)
            && selector.all(|(key, value)| {
                let value = value.as_str();
                value.is_some() && node.label(key) == value
            })
            && self.affinity.is_none_or(|terms| terms.iter().any(term_holds))
            && node
                .taints
                .iter()
                .all(|taint| self.tolerates(&taint.key, &taint.value, &taint.effect))
            // As in Kubernetes, a pod that tolerates the taint of a cordon may run on a cordoned
            // node.
            && (!node.unschedulable || self.tolerates(CORDON, "", "NoSchedule"))
    }

    /// True if no node whose label has that value can be one for such a pod, by what is asked of that label alone.
    pub fn rule_out(&self, label: &str, value: &str) -> bool {
        let selected = self.selector.and_then(|selector| selector.get(label));
        let term_holds = |term: Json<'_>| {
            let needs = term.as_object();
            let mut needs = needs.unwrap_or_default().list("matchExpressions").iter();
            needs.all(|need| {
                need.get("key").is_none_or(|key| key != label)
                    || requirement_holds(need, |_| Some(value))
            })
        };
        selected.is_some_and(|asked| asked != value)
            || self
                .affinity
                .is_some_and(|terms| !terms.iter().any(term_holds))
    }

    /// True if pods with these tolerations may run beside a taint. An empty effect covers every effect, an empty key
    /// with `Exists` every taint.
    fn tolerates(&self, key: &str, value: &str, effect: &str) -> bool {
        self.tolerations.iter().any(|toleration| {
            let text = |name| toleration.text(name).unwrap_or_default();
            let of_key = text("key").is_empty() || text("key") == key;
            let of_effect = text("effect").is_empty() || text("effect") == effect;
            let of_value = match text("operator") {
                "Exists" => true,
                // Kubernetes takes an absent operator for `Equal`, which needs a key.
                "" | "Equal" => !text("key").is_empty() && text("value") == value,
                _ => false,
            };
            of_key && of_effect && of_value
        })
    }
}

fn requirement_holds<'n>(requirement: Json<'_>, actual: impl Fn(&str) -> Option<&'n str>) -> bool {
    let Some(requirement) = requirement.as_object() else {
        return false;
    };
    let Some(key) = requirement.text("key") else {
        return false;
    };
    let actual = actual(key);
    let values = requirement.list("values");
    let listed = || values.iter().any(|value| value.as_str() == actual);
    // The label and the value that it is compared with, as integers. Kubernetes requires exactly one value.
    let numbers = || -> Option<(i64, i64)> {
        let bound = values.get(0).filter(|_| values.len() == 1)?;
        Some((actual?.parse().ok()?, bound.as_str()?.parse().ok()?))
    };
    match requirement.text("operator").unwrap_or_default() {
        "In" => actual.is_some() && listed(),
        "NotIn" => actual.is_none() || !listed(),
        "Exists" => actual.is_some(),
        "DoesNotExist" => actual.is_none(),
        "Gt" => numbers().is_some_and(|(actual, bound)| actual > bound),
        "Lt" => numbers().is_some_and(|(actual, bound)| actual < bound),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::needless_pass_by_value)]

    use super::*;
    use serde_json::{Value, json};

    fn node(value: Value) -> Node {
        Node::read((&value).into())
    }

    fn admits(pod: Value, node: &Node) -> bool {
        Demands::of((&pod).into()).admit(node)
    }

    #[test]
    fn a_value_of_a_label_is_ruled_out_by_the_selector_or_by_every_term() {
        let rules_out = |pod: Value| Demands::of((&pod).into()).rule_out("arch", "a");
        let term = |operator: &str| {
            json!({"matchExpressions": [
                {"key": "zone", "operator": "In", "values": ["elsewhere"]},
                {"key": "arch", "operator": operator, "values": ["a"]}]})
        };
        assert!(rules_out(json!({"nodeSelector": {"arch": "b"}})));
        assert!(rules_out(affinity(json!([term("NotIn")]))));
        assert!(!rules_out(
            json!({"nodeSelector": {"arch": "a", "zone": "elsewhere"}})
        ));
        assert!(!rules_out(affinity(json!([term("NotIn"), term("In")]))));
        assert!(!rules_out(json!({})));
    }

    fn labelled() -> Node {
        node(json!({"metadata": {"name": "n1", "labels": {"zone": "a", "gpus": "4"}}}))
    }

    fn affinity(terms: Value) -> Value {
        json!({"affinity": {"nodeAffinity":
            {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}})
    }

    #[test]
    fn selectors_and_names() {
        assert!(admits(json!({}), &labelled()));
        assert!(admits(json!({"nodeSelector": {"zone": "a"}}), &labelled()));
        assert!(!admits(
            json!({"nodeSelector": {"zone": "a", "disk": "ssd"}}),
            &labelled()
        ));
        assert!(!admits(json!({"nodeSelector": {"zone": "b"}}), &labelled()));
        assert!(admits(json!({"nodeName": "n1"}), &labelled()));
        assert!(!admits(json!({"nodeName": "n2"}), &labelled()));
    }

    #[test]
    fn every_operator_of_required_affinity() {
        for (operator, values, key, holds) in [
            ("In", json!(["a", "b"]), "zone", true),
            ("In", json!(["b"]), "zone", false),
            ("In", json!(["b"]), "none", false),
            ("NotIn", json!(["b"]), "zone", true),
            ("NotIn", json!(["a"]), "zone", false),
            ("NotIn", json!(["a"]), "none", true),
            ("Exists", json!([]), "zone", true),
            ("Exists", json!([]), "none", false),
            ("DoesNotExist", json!([]), "none", true),
            ("DoesNotExist", json!([]), "zone", false),
            ("Gt", json!(["3"]), "gpus", true),
            ("Gt", json!(["4"]), "gpus", false),
            ("Gt", json!(["3"]), "zone", false),
            ("Gt", json!(["3"]), "none", false),
            ("Lt", json!(["5"]), "gpus", true),
            ("Lt", json!(["4"]), "gpus", false),
            ("Lt", json!(["5", "6"]), "gpus", false),
            ("Near", json!(["a"]), "zone", false),
        ] {
            let requirement = json!({"key": key, "operator": operator, "values": values});
            let pod = affinity(json!([{"matchExpressions": [requirement]}]));
            assert_eq!(admits(pod, &labelled()), holds, "{requirement}");
        }
    }

    #[test]
    fn terms_are_alternatives_and_their_parts_are_not() {
        let zone = |zone: &str| json!({"key": "zone", "operator": "In", "values": [zone]});
        let name = |name: &str| json!({"key": "metadata.name", "operator": "In", "values": [name]});
        let either = json!([{"matchExpressions": [zone("b")]}, {"matchFields": [name("n1")]}]);
        assert!(admits(affinity(either), &labelled()));
        let both = json!([{"matchExpressions": [zone("a")], "matchFields": [name("n2")]}]);
        assert!(!admits(affinity(both), &labelled()));
        assert!(!admits(affinity(json!([])), &labelled()));
        assert!(!admits(affinity(json!([{}])), &labelled()));
    }

    #[test]
    fn taints_want_tolerations() {
        let tainted = node(json!({"spec": {"taints": [
            {"key": "gpu", "value": "yes", "effect": "NoSchedule"},
            {"key": "soft", "effect": "PreferNoSchedule"}]}}));
        let tolerating = |toleration: Value| admits(json!({"tolerations": [toleration]}), &tainted);
        assert!(!admits(json!({}), &tainted));
        assert!(tolerating(json!({"key": "gpu", "value": "yes"})));
        assert!(tolerating(
            json!({"key": "gpu", "operator": "Exists", "effect": "NoSchedule"})
        ));
        assert!(tolerating(json!({"operator": "Exists"})));
        assert!(!tolerating(json!({"key": "gpu", "value": "no"})));
        assert!(!tolerating(
            json!({"key": "gpu", "operator": "Exists", "effect": "NoExecute"})
        ));
        assert!(!tolerating(json!({"key": "cpu", "operator": "Exists"})));
        assert!(!tolerating(json!({"value": "yes"})));
    }

    #[test]
    fn a_cordoned_node_takes_no_pods() {
        let cordoned = node(json!({"spec": {"unschedulable": true}}));
        assert!(!admits(json!({}), &cordoned));
        let tolerating = json!({"tolerations": [{"key": CORDON, "operator": "Exists"}]});
        assert!(admits(tolerating, &cordoned));
    }
}
