//! The modes of a rule.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::text::Misread;

/// The consequence of a finding. Modes are ordered from the mildest to the strictest.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Deserialize,
    Serialize,
    JsonSchema,
    strum::Display,
    strum::IntoStaticStr,
)]
#[strum(serialize_all = "lowercase")]
pub enum Mode {
    /// Not judged.
    Off,
    /// Recorded in audit annotations and metrics; the user sees nothing.
    Audit,
    /// The request goes through with a warning.
    Warn,
    /// The request is denied.
    Enforce,
}

impl Mode {
    /// The name as users write it.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

impl std::str::FromStr for Mode {
    type Err = Misread;

    fn from_str(text: &str) -> Result<Self, Misread> {
        let mut modes = [Self::Off, Self::Audit, Self::Warn, Self::Enforce].into_iter();
        // Policies write Enforce, and flags enforce.
        let mode = modes.find(|mode| mode.name().eq_ignore_ascii_case(text));
        mode.ok_or_else(|| {
            Misread(format!(
                "\"{text}\" is not a mode: write off, audit, warn or enforce"
            ))
        })
    }
}
