//! `rayfit release`: in an emergency, lets Ray objects through while no webhook answers.

use rayfit_core::manifests::names;

use super::Outcome;
use super::live::{self, block_on};
use super::shared::outcome;
use crate::audit;

/// In an emergency, let Ray objects through while no webhook answers
///
/// Sets the failure policy of the webhooks to Ignore, with your own permissions. It needs no webhook and
/// no replica of Rayfit. While a RayPolicy sets failClosed, running replicas undo this: set failClosed
/// to false there too.
#[derive(Debug, clap::Args)]
#[command(after_help = "The same without rayfit:\n  \
    kubectl delete validatingwebhookconfiguration rayfit-validating   (until the next install)")]
pub(super) struct ReleaseCommand {
    /// Namespace of the installation
    #[arg(long, value_name = "NAME", default_value = names::NAMESPACE)]
    namespace: String,

    #[command(flatten)]
    cluster: live::ClusterArgs,
}

impl ReleaseCommand {
    pub(super) fn run(self) -> anyhow::Result<Outcome> {
        let changed = block_on(async {
            let client = self.cluster.client().await?;
            Ok(audit::release(&client, &self.namespace).await?)
        })?;
        // To release twice is no error: in an emergency somebody else may have been faster.
        outcome::print(if changed {
            "released: Ray objects are stored without validation while no webhook answers\n"
        } else {
            "nothing to release: Ray objects are already stored without validation while no \
             webhook answers\n"
        })
    }
}
