//! The numbers of rules and defaults.

use crate::text::Misread;

/// The stable number of a rule or default: never reused, never renumbered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, derive_more::Display)]
#[display("RF{_0:03}")]
pub struct RuleId(pub u16);

impl RuleId {
    /// The error of a text that is not the number of a rule.
    pub fn unknown(text: &str) -> Misread {
        Misread(format!(
            "\"{text}\" is not a rule: rules are written like RF105 (`rayfit rules` lists them)"
        ))
    }
}

impl std::str::FromStr for RuleId {
    type Err = Misread;

    fn from_str(text: &str) -> Result<Self, Misread> {
        let number = text.strip_prefix("RF").or_else(|| text.strip_prefix("rf"));
        match number.filter(|digits| digits.len() == 3).map(str::parse) {
            Some(Ok(number)) => Ok(Self(number)),
            _ => Err(Self::unknown(text)),
        }
    }
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
}
