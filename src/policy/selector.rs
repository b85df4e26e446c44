//! Compiled selectors: labels, compared as Kubernetes does, and names with `*`.

use super::resource::{LabelExpression, ScopeOperator, ScopeSelector};
use crate::ray::label;

/// Requirements on labels, all of which must hold.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Labels(Vec<LabelExpression>);

impl Labels {
    /// Compiles a selector.
    ///
    /// # Errors
    ///
    /// A requirement has a key or a value that is not valid in a label, or values that its operator does not take.
    pub fn compile(selector: &ScopeSelector) -> Result<Self, String> {
        let plain = selector
            .match_labels
            .iter()
            .map(|(key, value)| LabelExpression {
                key: key.clone(),
                operator: ScopeOperator::In,
                values: vec![value.clone()],
            });
        let expressions: Vec<LabelExpression> = plain
            .chain(selector.match_expressions.iter().cloned())
            .collect();
        for LabelExpression {
            key,
            operator,
            values,
        } in &expressions
        {
            if !label::is_key(key) {
                return Err(format!("{key:?} is not a label key"));
            }
            if let Some(wrong) = values.iter().find(|value| !label::is_value(value)) {
                return Err(format!("{wrong:?} is not a label value (key {key:?})"));
            }
            let takes_values = matches!(operator, ScopeOperator::In | ScopeOperator::NotIn);
            if takes_values == values.is_empty() {
                return Err(format!(
                    "{key:?}: In and NotIn need values, Exists and DoesNotExist take none"
                ));
            }
        }
        Ok(Self(expressions))
    }

    /// Whether there are no requirements, so that it matches everything.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The keys of the labels that are looked up.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|need| need.key.as_str())
    }

    /// Whether the labels that `label` looks up meet every requirement.
    pub fn match_labels<'a>(&self, label: impl Fn(&str) -> Option<&'a str>) -> bool {
        self.0.iter().all(|need| {
            let label = label(&need.key);
            let is_listed =
                || label.is_some_and(|label| need.values.iter().any(|value| value == label));
            match need.operator {
                ScopeOperator::In => is_listed(),
                ScopeOperator::NotIn => !is_listed(),
                ScopeOperator::Exists => label.is_some(),
                ScopeOperator::DoesNotExist => label.is_none(),
            }
        })
    }
}

/// A name in which `*` stands for any text, the empty one included.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pattern(String);

impl Pattern {
    /// A pattern.
    pub fn new(text: &str) -> Self {
        Self(text.to_owned())
    }

    /// Matches every name.
    pub fn is_any(&self) -> bool {
        self.0.bytes().all(|byte| byte == b'*')
    }

    /// Whether `name` matches.
    pub fn matches(&self, name: &str) -> bool {
        let Some((head, rest)) = self.0.split_once('*') else {
            return self.0 == name;
        };
        let Some(mut name) = name.strip_prefix(head) else {
            return false;
        };
        let mut parts: Vec<&str> = rest.split('*').collect();
        let tail = parts.pop().unwrap_or_default();
        for part in parts {
            // Taking the first match is correct, because a `*` may stand for any text.
            match name.split_once(part) {
                Some((_, after)) => name = after,
                None => return false,
            }
        }
        name.ends_with(tail)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn expression(key: &str, operator: ScopeOperator, values: &[&str]) -> ScopeSelector {
        ScopeSelector {
            match_expressions: vec![LabelExpression {
                key: key.to_owned(),
                operator,
                values: values.iter().map(|&value| value.to_owned()).collect(),
            }],
            ..ScopeSelector::default()
        }
    }

    fn holds(selector: &ScopeSelector, label: Option<&'static str>) -> bool {
        let labels = Labels::compile(selector).unwrap();
        labels.match_labels(|key| label.filter(|_| key == "team"))
    }

    #[test]
    fn labels_are_compared_as_kubernetes_does() {
        use ScopeOperator::{DoesNotExist, Exists, In, NotIn};
        for (operator, values, a, b, absent) in [
            (In, &["a"][..], true, false, false),
            (NotIn, &["a"], false, true, true),
            (Exists, &[], true, true, false),
            (DoesNotExist, &[], false, false, true),
        ] {
            let selector = expression("team", operator, values);
            let found = [Some("a"), Some("b"), None].map(|label| holds(&selector, label));
            assert_eq!(found, [a, b, absent], "{operator:?}");
        }
        assert!(holds(&ScopeSelector::default(), None));
    }

    #[test]
    fn selectors_that_cannot_select_are_refused() {
        let compile = |key, operator, values: &[&str]| {
            Labels::compile(&expression(key, operator, values)).map(|_| ())
        };
        let refusal = "\"team\": In and NotIn need values, Exists and DoesNotExist take none";
        assert_eq!(
            compile("team", ScopeOperator::In, &[]),
            Err(refusal.to_owned())
        );
        assert_eq!(
            compile("team", ScopeOperator::Exists, &["a"]),
            Err(refusal.to_owned())
        );
        assert!(compile("te am", ScopeOperator::Exists, &[]).is_err());
        assert!(compile("team", ScopeOperator::In, &["a b"]).is_err());
    }

    #[test]
    fn stars_stand_for_any_text() {
        for (pattern, name, expected) in [
            ("a", "a", true),
            ("a", "ab", false),
            ("exp-*", "exp-1", true),
            ("exp-*", "my-exp-1", false),
            ("*-gpu", "a-gpu", true),
            ("a*b*c", "a1b2c", true),
            ("a*b*c", "a1c2b", false),
            ("ab*ba", "aba", false),
            ("*", "", true),
            ("**", "x", true),
        ] {
            assert_eq!(
                Pattern::new(pattern).matches(name),
                expected,
                "{pattern} {name}"
            );
        }
    }

    proptest! {
        #[test]
        fn a_name_with_a_part_replaced_by_a_star_matches(
            head in "[a-z-]{0,8}", middle in "[a-z-]{0,8}", tail in "[a-z-]{0,8}",
        ) {
            let name = format!("{head}{middle}{tail}");
            let pattern = format!("{head}*{tail}");
            prop_assert!(Pattern::new(&pattern).matches(&name));
        }
    }
}
