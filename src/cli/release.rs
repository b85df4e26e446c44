//! `rayfit release`: in an emergency, let Ray objects pass while no webhook answers.

use super::Outcome;
use super::live::{self, block_on};
use crate::audit;

/// In an emergency: let Ray objects pass while no webhook answers
///
/// Sets the failure policy of the webhooks to Ignore, with your own rights. It needs no webhook and
/// no replica of Rayfit. While a RayPolicy asks for failClosed, running replicas close it again: set
/// failClosed to false there too.
#[derive(Debug, clap::Args)]
#[command(after_help = "The same without rayfit:\n  \
    kubectl delete validatingwebhookconfiguration rayfit-validating   (until the next install)")]
pub(super) struct Release {
    #[command(flatten)]
    cluster: live::ClusterArgs,
}

impl Release {
    pub(super) fn run(self) -> anyhow::Result<Outcome> {
        let changed = block_on(async {
            let client = self.cluster.client().await?;
            Ok(audit::release(&client).await?)
        })?;
        let said = if changed {
            "released: Ray objects pass while no webhook answers"
        } else {
            "nothing to release: Ray objects pass already while no webhook answers"
        };
        super::outcome::say(said)?;
        Ok(Outcome::Clean)
    }
}
