//! Selectors of policies: labels, compared as Kubernetes does, and names with `*`.

use super::resource::{LabelExpression, ScopeOperator, ScopeSelector};
use crate::ray::label;

impl ScopeSelector {
    /// Checks that the selector can select.
    ///
    /// # Errors
    ///
    /// A requirement has a key or a value that is not valid in a label, or values that its operator does not take.
    pub fn check(&self) -> Result<(), String> {
        let plain = self.match_labels.iter();
        let plain = plain.map(|(key, value)| (key, std::slice::from_ref(value)));
        let expressions = self.match_expressions.iter();
        let expressions = expressions.map(|need| (&need.key, need.values.as_slice()));
        for (key, values) in plain.chain(expressions) {
            if !label::is_key(key) {
                return Err(format!("{key:?} is not a label key"));
            }
            if let Some(wrong) = values.iter().find(|value| !label::is_value(value)) {
                return Err(format!("{wrong:?} is not a label value (key {key:?})"));
            }
        }
        let contradicts = |need: &&LabelExpression| {
            let takes_values = matches!(need.operator, ScopeOperator::In | ScopeOperator::NotIn);
            takes_values == need.values.is_empty()
        };
        match self.match_expressions.iter().find(contradicts) {
            None => Ok(()),
            Some(LabelExpression { key, .. }) => Err(format!(
                "{key:?}: In and NotIn need values, Exists and DoesNotExist take none"
            )),
        }
    }

    /// Has no requirement, so that it matches everything.
    pub fn is_empty(&self) -> bool {
        self.match_labels.is_empty() && self.match_expressions.is_empty()
    }

    /// The keys of the labels that are looked up.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        let expressions = self.match_expressions.iter().map(|need| &need.key);
        let keys = self.match_labels.keys().chain(expressions);
        keys.map(String::as_str)
    }

    /// Matches an object whose labels `label` looks up.
    pub fn match_labels<'a>(&self, label: impl Fn(&str) -> Option<&'a str>) -> bool {
        let mut plain = self.match_labels.iter();
        plain.all(|(key, value)| label(key) == Some(value))
            && self.match_expressions.iter().all(|need| {
                let label = label(&need.key);
                let is_listed =
                    || label.is_some_and(|label| need.values.iter().any(|value| value == label));
                match need.operator {
                    ScopeOperator::In => is_listed(),
                    // As in Kubernetes, an object without the label meets NotIn.
                    ScopeOperator::NotIn => !is_listed(),
                    ScopeOperator::Exists => label.is_some(),
                    ScopeOperator::DoesNotExist => label.is_none(),
                }
            })
    }
}

/// A pattern of names that every name matches.
pub fn is_any(pattern: &str) -> bool {
    pattern.bytes().all(|byte| byte == b'*')
}

/// Matches a name with a pattern, in which `*` stands for any text, the empty one included.
pub fn matches(pattern: &str, name: &str) -> bool {
    let Some((head, rest)) = pattern.split_once('*') else {
        return pattern == name;
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
        selector.check().unwrap();
        selector.match_labels(|key| label.filter(|_| key == "team"))
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
            let matches_of = [Some("a"), Some("b"), None].map(|label| holds(&selector, label));
            assert_eq!(matches_of, [a, b, absent], "{operator:?}");
        }
        assert!(holds(&ScopeSelector::default(), None));
    }

    #[test]
    fn selectors_that_cannot_select_are_refused() {
        let check = |key, operator, values: &[&str]| expression(key, operator, values).check();
        let refusal = "\"team\": In and NotIn need values, Exists and DoesNotExist take none";
        assert_eq!(
            check("team", ScopeOperator::In, &[]),
            Err(refusal.to_owned())
        );
        assert_eq!(
            check("team", ScopeOperator::Exists, &["a"]),
            Err(refusal.to_owned())
        );
        assert!(check("te am", ScopeOperator::Exists, &[]).is_err());
        assert!(check("team", ScopeOperator::In, &["a b"]).is_err());
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
            assert_eq!(matches(pattern, name), expected, "{pattern} {name}");
        }
    }

    proptest! {
        #[test]
        fn a_name_with_a_part_replaced_by_a_star_matches(
            head in "[a-z-]{0,8}", middle in "[a-z-]{0,8}", tail in "[a-z-]{0,8}",
        ) {
            let name = format!("{head}{middle}{tail}");
            let pattern = format!("{head}*{tail}");
            prop_assert!(matches(&pattern, &name));
        }
    }
}
