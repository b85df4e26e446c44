//! `rayfit crd`: the CustomResourceDefinition of RayPolicy.

use std::io::Write as _;

use super::Outcome;
use crate::manifests::to_yaml;
use crate::policy::resource;

/// Print the CustomResourceDefinition of RayPolicy
///
/// `rayfit manifests` prints it too; use this command if you install definitions separately.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  rayfit crd | kubectl apply --server-side -f -")]
pub(super) struct CrdCommand {}

impl CrdCommand {
    #[expect(clippy::unused_self, reason = "every command has the same form")]
    pub(super) fn run(self) -> anyhow::Result<Outcome> {
        let definition = to_yaml(&[resource::definition()]);
        std::io::stdout().write_all(definition.as_bytes())?;
        Ok(Outcome::Clean)
    }
}
