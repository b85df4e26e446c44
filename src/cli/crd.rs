//! `rayfit crd`: the CustomResourceDefinition of RayPolicy.

use std::io::Write as _;

use super::Outcome;
use crate::manifests::to_yaml;
use crate::policy::resource;

/// Prints the definition.
pub(super) fn run() -> anyhow::Result<Outcome> {
    let definition = to_yaml(&[resource::definition()]);
    std::io::stdout().write_all(definition.as_bytes())?;
    Ok(Outcome::Clean)
}
