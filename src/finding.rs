//! What a rule reports, as data. Rendering happens in [`crate::report`] and in the admission
//! response, never here.

use std::fmt;

use crate::path::FieldPath;
use crate::policy::{Decided, Mode};

/// The stable number of a rule or default: never reused, never renumbered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RuleId(pub u16);

impl fmt::Display for RuleId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RF{:03}", self.0)
    }
}

/// A text that names no rule.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("\"{0}\" is no rule: rules are written like RF105 (`rayfit rules` lists them)")]
pub struct NoSuchRule(pub String);

impl std::str::FromStr for RuleId {
    type Err = NoSuchRule;

    fn from_str(text: &str) -> Result<Self, NoSuchRule> {
        let number = text.strip_prefix("RF").or_else(|| text.strip_prefix("rf"));
        match number.filter(|digits| digits.len() == 3).map(str::parse) {
            Some(Ok(number)) => Ok(Self(number)),
            _ => Err(NoSuchRule(text.to_owned())),
        }
    }
}

/// One thing that is wrong with one place of an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The rule that found it.
    pub rule: RuleId,
    /// The mode that holds where no policy says otherwise.
    pub mode: Mode,
    /// Where it is.
    pub path: FieldPath,
    /// The offending value, if there is one to show. Part of the finding's identity.
    pub value: Option<String>,
    /// What is wrong there, a clause that follows the path: `"2.5" is not an integer`.
    pub problem: String,
    /// What happens because of it, a full sentence.
    pub why: String,
    /// What to write instead, an imperative sentence.
    pub fix: String,
    /// Who decided how far it goes, once that is folded and if it was not the rule itself.
    pub decided: Option<Decided>,
}

impl Finding {
    /// Which fault this is: the rule, the place (groups by name) and the value. It decides whether
    /// an update brought a finding or inherited it.
    pub fn fault(&self) -> Fault<'_> {
        (self.rule, self.path.to_string(), self.value.as_deref())
    }
}

/// What makes two findings the same fault: rule, place, value.
pub type Fault<'a> = (RuleId, String, Option<&'a str>);

/// Longest value that is shown whole; pod templates can hold megabytes.
const SHOWN: usize = 64;

/// A value as it is shown in messages: short, on one line.
pub fn shown(value: &serde_json::Value) -> String {
    match value {
        serde_json::Value::String(text) => shown_text(text),
        serde_json::Value::Array(items) => format!("a list of {}", items.len()),
        serde_json::Value::Object(map) => format!("an object of {} keys", map.len()),
        other => other.to_string(),
    }
}

/// A text as it is shown in messages: quoted, escaped, cut after 64 characters.
pub fn shown_text(text: &str) -> String {
    if text.chars().nth(SHOWN).is_none() {
        return format!("{text:?}");
    }
    let head: String = text.chars().take(SHOWN).collect();
    format!("{:?}", head + "…")
}

/// The candidate nearest to `typo`, if one is near enough to have been meant.
pub fn nearest<'a>(typo: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let limit = 1 + typo.chars().count() / 4;
    candidates
        .into_iter()
        .map(|candidate| {
            (
                distance(&typo.to_lowercase(), &candidate.to_lowercase()),
                candidate,
            )
        })
        .filter(|(distance, _)| *distance <= limit)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// Edit distance (insertions, deletions, substitutions) of texts of bounded length.
fn distance(left: &str, right: &str) -> usize {
    let left: Vec<char> = left.chars().take(SHOWN).collect();
    let mut row: Vec<usize> = (0..=left.len()).collect();
    for (line, target) in right.chars().take(SHOWN).enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], line + 1);
        for (column, source) in left.iter().enumerate() {
            let substituted = diagonal + usize::from(*source != target);
            diagonal = row[column + 1];
            row[column + 1] = substituted.min(row[column] + 1).min(diagonal + 1);
        }
    }
    row[left.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rule_ids_round_trip() {
        assert_eq!("RF105".parse(), Ok(RuleId(105)));
        assert_eq!(RuleId(105).to_string(), "RF105");
        assert!("RF1".parse::<RuleId>().is_err());
        assert!("DF01".parse::<RuleId>().is_err());
    }

    #[test]
    fn nearest_finds_typos_and_nothing_far_off() {
        let keys = ["max-cpu", "max-memory", "resize-timeout"];
        assert_eq!(nearest("max-cpus", keys), Some("max-cpu"));
        assert_eq!(nearest("maxMemory", keys), Some("max-memory"));
        assert_eq!(nearest("colour", keys), None);
    }

    #[test]
    fn long_values_are_cut() {
        assert!(shown_text(&"x".repeat(1000)).len() < 80);
        assert_eq!(shown(&serde_json::json!({"a": 1})), "an object of 1 keys");
    }
}
