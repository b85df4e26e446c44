//! Two head pods of one cluster, of which one leads: the other one's GCS is neither believed nor told
//! anything, and neither is that of a head pod that leads no more.

use super::clusters::{Cluster, Controller, soon, waiting};
use crate::play_gcs::{Played, PlayedGcs};
use crate::played_api::PlayedApi;

const EARLY: &str = "2026-01-14T12:00:00Z";
const LATE: &str = "2026-01-14T12:00:20Z";

/// As Ray's GCS answers while another one leads.
fn passive() -> Played {
    let details = "GCS server is in passive (read-only) mode.".to_owned();
    Played {
        failure: Some((tonic::Code::Aborted, "GcsPassive".to_owned(), details)),
        ..Played::default()
    }
}

/// A cluster that was scaled by its first head, while the second one stood by.
struct TwoHeads {
    _api: PlayedApi,
    cluster: Cluster,
    second: PlayedGcs,
    controller: Controller,
}

impl TwoHeads {
    async fn start() -> Self {
        let api = PlayedApi::default();
        let (cluster, second) = Cluster::with_two_heads(&api, "team-a", passive()).await;
        cluster.is_ready("ray-head", "True", EARLY);
        cluster.is_ready("ray-head-2", "False", EARLY);
        let controller = Controller::start(&api);
        cluster.is_scaled().await;
        let first = &cluster.gcs;
        soon("the first is told", || !first.played().reports.is_empty()).await;
        Self {
            _api: api,
            cluster,
            second,
            controller,
        }
    }

    fn first_stands_by(&self) {
        self.cluster.gcs.played().failure = passive().failure;
    }

    /// The second GCS leads, and so many tasks wait.
    fn second_leads(&self, tasks: i64) {
        let mut second = self.second.played();
        second.failure = None;
        second.state = waiting(tasks, "ray-head-2");
    }

    async fn has(&self, replicas: i64) {
        let what = format!("the cluster has {replicas} workers");
        soon(&what, || self.cluster.replicas() == replicas).await;
    }
}

#[tokio::test]
async fn the_head_that_stands_by_is_not_asked_until_it_leads() {
    let heads = TwoHeads::start().await;
    assert_eq!(heads.second.played().connections, 0, "it only stood by");

    heads.first_stands_by();
    heads.second_leads(5);
    heads.cluster.is_ready("ray-head", "False", LATE);
    heads.cluster.is_ready("ray-head-2", "True", LATE);
    heads.has(5).await;
    let second = &heads.second;
    soon("the new one is told", || {
        !second.played().reports.is_empty()
    })
    .await;
    heads.controller.stop().await;
}

/// Readiness is probed every few seconds only, and a pod on a node that is cut off stays ready for longer.
#[tokio::test]
async fn a_gcs_that_says_that_it_stands_by_is_believed_before_readiness_is() {
    let heads = TwoHeads::start().await;
    heads.first_stands_by();
    heads.second_leads(5);
    heads.has(5).await;
    heads.controller.stop().await;
}

/// It was cut off from the API server, its Lease has run out, and it has not noticed yet.
#[tokio::test]
async fn a_former_leader_that_still_answers_is_neither_believed_nor_told() {
    let heads = TwoHeads::start().await;
    heads.second_leads(3);
    heads.cluster.is_ready("ray-head-2", "True", LATE);
    heads.has(3).await;
    let told = heads.cluster.gcs.played().reports.len();
    heads.cluster.gcs.played().state = waiting(8, "ray-head");
    heads.second_leads(5);
    heads.has(5).await;
    let second = &heads.second;
    soon("the new one is told", || second.played().reports.len() > 1).await;
    assert_eq!(heads.cluster.gcs.played().reports.len(), told);
    heads.controller.stop().await;
}
