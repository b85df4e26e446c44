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
    strum::EnumString,
    strum::IntoStaticStr,
)]
// Policies write Enforce, and flags enforce.
#[strum(serialize_all = "lowercase", ascii_case_insensitive)]
#[strum(parse_err_ty = Misread, parse_err_fn = no_mode)]
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

fn no_mode(text: &str) -> Misread {
    Misread(format!(
        "\"{text}\" is not a mode: write off, audit, warn or enforce"
    ))
}
