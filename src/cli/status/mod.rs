//! `rayfit status`: what runs, what is pending, and what cannot be done.
//!
//! In: what a person may read of a live cluster. Out: text. Invariant: nothing is written.

mod detail;
mod overview;

use rayfit_core::simulate::price::Price;

use super::Outcome;
use super::live::{self, LiveArgs};
use super::shared::outcome;
use crate::controller::observe::Key;

/// Show how RayClusters are scaled: modes, sizes, pending pods, demand that cannot be met
///
/// Without a name, prints one line for each RayCluster that you may read, from the API server only.
/// With a name, also prints its groups, pods and demand; its GCS is then asked through a forwarded port.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    rayfit status\n  \
    rayfit status -n ray\n  \
    rayfit status --price cpu-hour=0.04,gib-hour=0.005,gpu-hour=2\n  \
    rayfit status ray/demo")]
pub(super) struct StatusCommand {
    /// The RayCluster
    #[arg(value_name = "NAMESPACE/NAME", value_parser = live::cluster_name)]
    cluster: Option<Key>,

    /// Only RayClusters of this namespace
    #[arg(short, long, value_name = "NAME", conflicts_with = "cluster")]
    namespace: Option<String>,

    /// The prices of hours of worker pods, of which what is not named costs nothing: what pods cost is shown too
    #[arg(long, value_name = "cpu-hour=AMOUNT,gib-hour=AMOUNT,gpu-hour=AMOUNT")]
    price: Option<Price>,

    #[command(flatten)]
    live: LiveArgs,
}

impl StatusCommand {
    pub(super) fn run(self) -> anyhow::Result<Outcome> {
        let text = match &self.cluster {
            Some(cluster) => {
                let (look, settings) = self.live.look_to_plan(cluster)?;
                detail::text(cluster, &look, &settings, self.price)
            }
            None => live::block_on(async {
                let client = self.live.api.client().await?;
                let namespace = self.namespace.as_deref();
                let clusters = live::clusters(&client, namespace).await?;
                let pods = live::ray_pods(&client, namespace).await?;
                Ok(overview::text(&clusters, &pods, self.price))
            })?,
        };
        outcome::print(&text)
    }
}
