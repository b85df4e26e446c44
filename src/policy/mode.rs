//! The modes of a rule.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The consequence of a finding. Modes are ordered from the mildest to the strictest.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize, Serialize, JsonSchema,
)]
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
    pub const fn name(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Audit => "audit",
            Self::Warn => "warn",
            Self::Enforce => "enforce",
        }
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A text that is not a mode.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("\"{0}\" is not a mode: write off, audit, warn or enforce")]
pub struct NoSuchMode(pub String);

impl std::str::FromStr for Mode {
    type Err = NoSuchMode;

    fn from_str(text: &str) -> Result<Self, NoSuchMode> {
        [Self::Off, Self::Audit, Self::Warn, Self::Enforce]
            .into_iter()
            .find(|mode| mode.name().eq_ignore_ascii_case(text))
            .ok_or_else(|| NoSuchMode(text.to_owned()))
    }
}
