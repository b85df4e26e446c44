//! The part of a rule that the API server can check by itself, in CEL: the source of `rayfit vap`.
//!
//! Each rule has it next to its check, so that the two are read and changed together. Everything
//! that an expression reports must be a finding of the rule: `tests/core/vap/` compares both on the
//! fixtures, and `tests/e2e/vap/` tries the policies on a real API server.

/// The part of a rule that CEL can express.
#[derive(Debug)]
pub enum Cel {
    /// All of it.
    Covered(&'static [Check]),
    /// Everything reported is a finding; the sentence says which findings of the rule are missed.
    InPart(&'static [Check], &'static str),
    /// Nothing; the sentence says why.
    NotCovered(&'static str),
    /// As the first says, and further expressions whose findings only warn.
    WithWarnings(&'static Self, &'static [Check]),
}

impl Cel {
    /// The expressions whose findings have the rule's own mode; none if the rule is not covered.
    pub const fn checks(&self) -> &'static [Check] {
        match self {
            Self::Covered(checks) | Self::InPart(checks, _) => checks,
            Self::NotCovered(_) => &[],
            Self::WithWarnings(cel, _) => cel.checks(),
        }
    }

    /// The expressions whose findings only warn.
    pub const fn warnings(&self) -> &'static [Check] {
        match self {
            Self::WithWarnings(_, checks) => checks,
            _ => &[],
        }
    }

    /// For people: `yes`, `in part` or `no`, and the sentence about what is missing.
    pub const fn coverage(&self) -> (&'static str, Option<&'static str>) {
        match self {
            Self::Covered(_) => ("yes", None),
            Self::InPart(_, gap) => ("in part", Some(gap)),
            Self::NotCovered(why) => ("no", Some(why)),
            Self::WithWarnings(cel, _) => cel.coverage(),
        }
    }
}

/// The gap of every rule about groups that `ray.io/ippr` lists: CEL has no JSON parser, so the
/// annotation is read by regular expressions.
pub const PLAIN: &str = "An annotation in which a group contains an object, a list or an escaped \
                         character is not checked, because CEL cannot parse JSON and reads only \
                         its plain form.";

/// The gap of every rule about pods that run.
pub const NO_PODS: Cel =
    Cel::NotCovered("CEL sees the new and the stored object, but not the running pods.");

/// One expression of a rule.
#[derive(Debug)]
pub struct Check {
    /// The variable for which it is evaluated.
    pub each: Each,
    /// A list of texts, one for each fault: the place and the problem. Faults of one object are
    /// distinguished by their texts, so these contain path and value.
    ///
    /// `s` is the object as [`crate::vap::variables`] describes it; a text may be empty (no fault)
    /// or hold several faults in lines.
    pub faults: &'static str,
    /// The remedy, an imperative sentence.
    pub fix: &'static str,
}

/// The variable for which an expression is evaluated, and its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Each {
    /// The object: `s`.
    Object,
    /// Each group, the head included: `g`. Its path is put before each text.
    Group,
    /// The head group, likewise.
    Head,
    /// Each worker group, likewise.
    Worker,
    /// Each group that `ray.io/ippr` lists, likewise; `l` is its entry there.
    Listed,
    /// An update: `s`, and `old` for the stored object.
    Change,
}
