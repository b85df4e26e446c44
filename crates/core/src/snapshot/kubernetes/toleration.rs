//! A pod's tolerations of taints which say that a Kubernetes node is about to leave, or does not
//! answer.

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};

use super::taint::{Taint, TaintMeaning};
use crate::snapshot::canonical::{is_default, nullable};

/// The most tolerations that are kept of a pod.
const TOLERATIONS: usize = 32;

/// Seconds for which a pod tolerates that its kubelet does not answer, where nobody has written
/// anything else: admission adds a toleration that says so. (Kubernetes,
/// `plugin/pkg/admission/defaulttolerationseconds`.)
pub const UNANSWERED_S: i64 = 300;

/// A toleration of a pod.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct PodToleration {
    /// The key of the taints that it is about; empty for all keys.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "is_default")]
    pub key: String,
    /// `Exists` for all values; `Equal`, or nothing, for one.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "is_default")]
    pub operator: String,
    /// The value of the taints that it is about.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "is_default")]
    pub value: String,
    /// The effect of the taints that it is about; empty for all effects.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "is_default")]
    pub effect: String,
    /// Seconds for which the pod stays beside a taint with the effect `NoExecute`; absent where it
    /// stays for ever.
    #[serde(skip_serializing_if = "is_default")]
    pub toleration_seconds: Option<i64>,
}

impl PodToleration {
    /// True if it is about a taint. (Kubernetes, `core/v1/toleration.go`, `ToleratesTaint`.)
    pub fn covers(&self, taint: &Taint) -> bool {
        let key = self.key.is_empty() || self.key == taint.key;
        let effect = self.effect.is_empty() || self.effect == taint.effect;
        let value = match self.operator.as_str() {
            "Exists" => true,
            "" | "Equal" => self.value == taint.value,
            _ => false,
        };
        key && effect && value
    }

    /// True for a toleration that may change a decision: it is about taints that mean something here, and says
    /// something else than admission writes into every pod.
    fn counts(&self) -> bool {
        let meaning = TaintMeaning::of(&self.key);
        let is_usual = meaning == Some(TaintMeaning::Unreachable)
            && self.operator == "Exists"
            && self.effect == "NoExecute"
            && self.toleration_seconds == Some(UNANSWERED_S);
        (self.key.is_empty() || meaning.is_some()) && !is_usual
    }
}

/// Reads the tolerations that are kept.
pub(super) fn read<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Vec<PodToleration>, D::Error> {
    let mut all: Vec<PodToleration> = nullable(deserializer)?;
    all.retain(PodToleration::counts);
    // Whoever makes a pod chooses the number of its tolerations.
    all.truncate(TOLERATIONS);
    Ok(all)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::snapshot::pod::Pod;
    use crate::snapshot::pod_object::PodObject;

    fn pod(tolerations: &Value) -> PodObject {
        let spec = json!({"tolerations": tolerations});
        serde_json::from_value(json!({"metadata": {"name": "w"}, "spec": spec})).unwrap()
    }

    #[test]
    fn a_toleration_covers_what_it_covers_for_kubernetes() {
        let taint = Taint {
            key: "karpenter.sh/disrupted".to_owned(),
            value: "v".to_owned(),
            effect: "NoSchedule".to_owned(),
            ..Taint::default()
        };
        let key = &taint.key;
        for (toleration, covers) in [
            (json!({"operator": "Exists"}), true),
            (
                json!({"operator": "Exists", "key": null, "effect": null}),
                true,
            ),
            (json!({"operator": "Exists", "effect": "NoExecute"}), false),
            (json!({"operator": "Exists", "effect": "NoSchedule"}), true),
            (json!({"operator": "Exists", "key": key}), true),
            (json!({"key": key, "value": "v"}), true),
            (json!({"key": key, "operator": "Equal", "value": "v"}), true),
            (json!({"key": key}), false),
            (json!({"key": key, "value": "w"}), false),
            (json!({"key": key, "operator": "Gt", "value": "v"}), false),
            (
                json!({"operator": "Exists", "key": "node.kubernetes.io/unschedulable"}),
                false,
            ),
        ] {
            let object = pod(&json!([toleration]));
            assert_eq!(object.spec.tolerations.len(), 1, "{toleration}");
            assert_eq!(
                Pod::of(&object).toleration(&taint).is_some(),
                covers,
                "{toleration}"
            );
        }
    }

    #[test]
    fn what_every_pod_has_and_what_is_about_other_taints_is_not_kept() {
        let usual = |key: &str| json!({"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300});
        let mut all = vec![
            json!({"key": "nvidia.com/gpu", "operator": "Exists"}),
            usual("node.kubernetes.io/not-ready"),
            usual("node.kubernetes.io/unreachable"),
        ];
        assert!(pod(&json!(all)).spec.tolerations.is_empty());
        all.extend(
            (0..1000).map(|value| json!({"operator": "Exists", "value": value.to_string()})),
        );
        assert_eq!(pod(&json!(all)).spec.tolerations.len(), TOLERATIONS);
        assert_eq!(pod(&json!(null)).spec.tolerations, []);
    }

    #[test]
    fn a_toleration_with_an_end_keeps_no_pod_for_ever() {
        let key = "node.kubernetes.io/out-of-service";
        let taint = Taint {
            key: key.to_owned(),
            effect: "NoExecute".to_owned(),
            ..Taint::default()
        };
        let stays = |tolerations: &Value| Pod::of(&pod(tolerations)).stays_beside(&taint);
        let ends = json!({"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 9});
        let all = json!({"operator": "Exists"});
        assert!(stays(&json!([all])));
        assert!(!stays(&json!([ends])) && !stays(&json!([])));
        assert!(!stays(&json!([ends, all])), "the first one counts");
    }
}
