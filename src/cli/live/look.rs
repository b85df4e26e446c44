//! One observation of a live cluster.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::anyhow;
use futures_util::{StreamExt as _, stream};
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::Client;
use kube::api::{Api, ListParams, Request};
use rayfit_core::facts::pods::CLUSTER as CLUSTER_LABEL;
use rayfit_core::plan::PlanSettings;
use rayfit_core::ray::{Kind, RayObject, ReconcileMode, ippr};
use rayfit_core::reconcile::effects::effect::ERROR_KEY;
use rayfit_core::simulate::price::Price;
use rayfit_core::snapshot::allowed::RAY_CLUSTER;
use rayfit_core::snapshot::gcs::ClusterResourceState;
use rayfit_core::snapshot::kube_node::add_loads;
use rayfit_core::snapshot::pod_object::PodObject;
use rayfit_core::snapshot::prospect_reader::ProspectReader;
use rayfit_core::snapshot::{
    API_VERSION, ClusterId, History, KIND, KubeNode, NodeLoads, OwnPods, Snapshot,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::time::timeout;

use super::forward::forward;
use super::worker_pods::{PodAmounts, WorkerPods};
use crate::apiserver::error_chain::text;
use crate::apiserver::server_time::own_timestamp;
use crate::apiserver::{Gate, Patience};
use crate::cli::shared::outcome;
use crate::controller::clock::Clock;
use crate::controller::head::address;
use crate::controller::head::address::Head;
use crate::controller::head::credentials::Credentials;
use crate::controller::head::extras::Extras;
use crate::controller::head::memory_watch;
use crate::controller::observe::Key;
use crate::controller::observe::pod_events::read_events;
use crate::gcs::{self, Address};

/// The most RayClusters whose GCSs are asked by one command: each keeps a port of this machine.
const MOST_ASKED: usize = 200;

/// The most GCSs that are asked at the same time.
const ASKED_AT_ONCE: usize = 16;

/// The time within which one of them has to answer, with the forwarding of its port.
const ASK_PATIENCE: Duration = Duration::from_secs(15);

/// The observed state.
pub(crate) struct LiveState {
    /// Everything that a decision needs, without fields that may be secret.
    pub(crate) snapshot: Snapshot,
    /// The reason for which the GCS could not be asked, if so. Demand is unknown then.
    pub(crate) unreachable: Option<String>,
    /// The scaler's error as `ray status` shows it; empty if nothing is wrong.
    pub(crate) error: String,
}

impl LiveState {
    /// The limitation of the scaler's knowledge, in words for people, if there is one.
    pub(crate) fn limitation(&self) -> Option<&'static str> {
        (!reads_cluster_scope(self.snapshot.ray_cluster.object())).then_some(
            "the head's container scales it, by the annotation rayfit.dev/settings, because it may \
             read neither RayPolicies nor Kubernetes nodes",
        )
    }

    /// The snapshot, if the GCS could be asked.
    pub(crate) fn complete(self) -> anyhow::Result<Snapshot> {
        match self.unreachable {
            None => Ok(self.snapshot),
            Some(why) => anyhow::bail!("nothing can be decided without the GCS: {why}"),
        }
    }
}

/// Observes a cluster; its GCS is asked at `address` or through a forwarded port.
pub(crate) async fn look(
    client: &Client,
    key: &Key,
    address: Option<Address>,
) -> anyhow::Result<LiveState> {
    let (cluster, mut pods) = objects(client, key).await?;
    read_prospects(client, key, &cluster, &mut pods).await;
    let answer = ask(client, key, &cluster, &pods, address).await;
    let (state, error, unreachable) = match answer {
        Ok((state, error)) => (state, error, None),
        Err(error) => (
            ClusterResourceState::default(),
            String::new(),
            Some(format!("{error:#}")),
        ),
    };
    // The scaler in a head's container decides without them, and so does whoever foresees its decisions.
    let (nodes, loads) = if reads_cluster_scope(&cluster) {
        neighbours(client, &cluster, &pods).await
    } else {
        (None, NodeLoads::new())
    };
    let snapshot = Snapshot {
        api_version: API_VERSION.to_owned(),
        kind: KIND.to_owned(),
        time: own_timestamp().to_string(),
        ray_cluster: RAY_CLUSTER.keep(&cluster).into(),
        pods,
        nodes,
        loads,
        gcs: state,
        history: History::default(),
    };
    Ok(LiveState {
        snapshot,
        unreachable,
        error,
    })
}

/// A RayCluster as it is.
pub(crate) async fn cluster(client: &Client, key: &Key) -> anyhow::Result<Value> {
    let path = format!("/apis/ray.io/v1/namespaces/{}/rayclusters", key.namespace);
    let request = Request::new(path).get(&key.name, &kube::api::GetParams::default())?;
    let cluster = client.request(request).await;
    cluster.map_err(|error| anyhow!("RayCluster {key} cannot be read: {}", text(&error)))
}

async fn pods(
    client: &Client,
    namespace: Option<&str>,
    labels: &str,
    fields: &str,
) -> anyhow::Result<Vec<PodObject>> {
    let api: Api<Pod> = match namespace {
        Some(namespace) => Api::namespaced(client.clone(), namespace),
        None => Api::all(client.clone()),
    };
    let pods = api
        .list(&ListParams::default().labels(labels).fields(fields))
        .await;
    let pods = pods.map_err(|error| anyhow!("pods cannot be listed: {}", text(&error)))?;
    Ok(pods.items.iter().filter_map(pruned).collect())
}

/// Reads what node autoscalers say about the pods that wait for a Kubernetes node, as the controller
/// does. A sidecar does not read it.
async fn read_prospects(client: &Client, key: &Key, cluster: &Value, pods: &mut OwnPods) {
    let awaiting = pods.awaiting();
    if awaiting.is_empty() || !reads_cluster_scope(cluster) {
        return;
    }
    let gate = Gate::new(10, 10, Patience::default());
    let mut reader = ProspectReader::new(&key.namespace, awaiting);
    match read_events(client, &gate, &key.namespace, &mut reader).await {
        Ok(_) => pods.set_prospects(reader.prospects()),
        Err(fault) => outcome::warn(format_args!(
            "Events cannot be listed, so this is without what node autoscalers say about pods: {fault}"
        )),
    }
}

/// Checks whether the scaler of a cluster reads RayPolicies, Kubernetes nodes and Events. The account of a head pod may
/// read the RayCluster and pods only.
pub(super) fn reads_cluster_scope(cluster: &Value) -> bool {
    let cluster = cluster.as_object();
    let cluster = cluster.map(|cluster| RayObject::of_kind(Kind::RayCluster, cluster));
    cluster.is_none_or(|cluster| cluster.reconcile_mode() != ReconcileMode::Sidecar)
}

/// The fields of an object that decisions read.
fn pruned<T: DeserializeOwned>(object: &impl Serialize) -> Option<T> {
    // By way of JSON: the client's types have every field of Kubernetes, and the planner's only those that it
    // reads.
    let object = serde_json::to_value(object).ok()?;
    serde_json::from_value(object).ok()
}

/// The Kubernetes nodes of pods that may grow, and what pods of other RayClusters request of them; of
/// other clusters the nodes that are about to leave: as the controller reads them. Without permission
/// to read them, no resize is checked against the headroom of its node.
async fn neighbours(
    client: &Client,
    cluster: &Value,
    own_pods: &OwnPods,
) -> (Option<Vec<KubeNode>>, NodeLoads) {
    let annotations = &cluster["metadata"]["annotations"];
    let grows = annotations.get(ippr::ANNOTATION).is_some();
    let hosts: BTreeSet<&str> = own_pods.iter().filter_map(|pod| pod.node).collect();
    let (mut nodes, mut loads) = (Vec::new(), NodeLoads::new());
    for host in hosts {
        let node = Api::<Node>::all(client.clone()).get(host).await;
        if !grows {
            let node = node.ok().and_then(|node| pruned::<KubeNode>(&node));
            nodes.extend(node.filter(|node| !node.is_open()));
            continue;
        }
        let on_host = format!("spec.nodeName={host}");
        let beside = pods(client, None, CLUSTER_LABEL, &on_host).await;
        let (Ok(node), Ok(beside)) = (node, beside) else {
            return (None, NodeLoads::new());
        };
        nodes.extend(pruned::<KubeNode>(&node));
        let (_, others) = OwnPods::divide(own_pods.cluster().clone(), beside);
        add_loads(&mut loads, &others);
    }
    (
        Some(nodes).filter(|nodes| grows || !nodes.is_empty()),
        loads,
    )
}

async fn ask(
    client: &Client,
    key: &Key,
    cluster: &Value,
    pods: &OwnPods,
    address: Option<Address>,
) -> anyhow::Result<(ClusterResourceState, String)> {
    let gcs = connect(client, key, cluster, pods, address).await?;
    let mut state = gcs.cluster_resource_state().await?;
    let extras = Extras::of(&cluster.clone().into(), &PlanSettings::default());
    // Only the end of an idle cluster depends on its users, and without their number it is said to be unknown.
    if extras.ends_unused {
        state.users = gcs.users(None).await.ok();
    }
    memory_watch::fill_once(&gcs, &extras.follows, &mut state, &Clock::default()).await;
    // `ray status` shows the text under this key, whichever autoscaler has written it.
    let error = gcs.kv_get("", ERROR_KEY).await?.unwrap_or_default();
    Ok((state, String::from_utf8_lossy(&error).into_owned()))
}

/// A client of a cluster's GCS at `address`, or through a forwarded port.
pub(super) async fn connect(
    client: &Client,
    key: &Key,
    cluster: &Value,
    pods: &OwnPods,
    address: Option<Address>,
) -> anyhow::Result<gcs::Client> {
    let head = address::head(key, cluster, pods).map_err(anyhow::Error::msg)?;
    let address = if let Some(address) = address {
        address
    } else {
        let api = Api::namespaced(client.clone(), &key.namespace);
        forward(api, head.pod.clone(), head.address.port).await?
    };
    let head = Head { address, ..head };
    // These requests belong to one observation, and no other requests wait for them.
    let gate = Gate::new(1, 4, Patience::default());
    let credentials = Credentials::secrets(client.clone(), gate);
    Ok(credentials.client(key, &head).await?)
}

/// A cluster and its pods.
pub(super) async fn objects(client: &Client, key: &Key) -> anyhow::Result<(Value, OwnPods)> {
    let cluster = cluster(client, key).await?;
    let labelled = format!("{CLUSTER_LABEL}={}", key.name);
    let labelled = pods(client, Some(&key.namespace), &labelled, "").await?;
    let (pods, _) = OwnPods::divide(ClusterId::of(&cluster), labelled);
    Ok((cluster, pods))
}

/// The pods of all RayClusters, of one namespace or of all.
pub(crate) async fn ray_pods(
    client: &Client,
    namespace: Option<&str>,
) -> anyhow::Result<Vec<PodObject>> {
    pods(client, namespace, CLUSTER_LABEL, "").await
}

/// The worker pods of all these RayClusters that have any, and what their GCSs, each asked through a forwarded port, say
/// of them: most to be saved first.
pub(crate) async fn worker_pods(
    client: &Client,
    clusters: &[&Value],
    price: Price,
) -> anyhow::Result<Vec<WorkerPods>> {
    let pods = ray_pods(client, None).await?;
    let of = |cluster| {
        let id = ClusterId::of(cluster);
        let own = pods.iter().filter(|pod| id.owns(&pod.metadata)).cloned();
        let own: Vec<PodObject> = own.collect();
        let (own, _) = OwnPods::divide(id, own);
        let why = format!("only the {MOST_ASKED} largest are asked");
        (
            WorkerPods::of(cluster, own.iter(), Err(why), price),
            cluster,
            own,
        )
    };
    let mut all: Vec<_> = clusters.iter().copied().map(of).collect();
    all.retain(|(workers, ..)| workers.have != PodAmounts::default());
    all.sort_by_cached_key(|(workers, ..)| workers.rank());
    let asked = all
        .into_iter()
        .enumerate()
        .map(|(at, (workers, cluster, pods))| async move {
            if at >= MOST_ASKED {
                return workers;
            }
            let asked = async {
                let text = |key: &str| cluster["metadata"][key].as_str().unwrap_or_default();
                let key = Key::new(text("namespace"), text("name"))?;
                let gcs = connect(client, &key, cluster, &pods, None).await?;
                anyhow::Ok(gcs.cluster_resource_state().await?)
            };
            let state = timeout(ASK_PATIENCE, asked).await;
            let state = state.unwrap_or_else(|_| Err(anyhow!("no answer within {ASK_PATIENCE:?}")));
            let state = state.as_ref().map_err(|error| format!("{error:#}"));
            WorkerPods::of(cluster, pods.iter(), state, price)
        });
    let asked = stream::iter(asked).buffer_unordered(ASKED_AT_ONCE);
    let mut all: Vec<WorkerPods> = asked.collect().await;
    all.sort_by_cached_key(WorkerPods::rank);
    Ok(all)
}

/// All RayClusters, of one namespace or of all.
pub(crate) async fn clusters(
    client: &Client,
    namespace: Option<&str>,
) -> anyhow::Result<Vec<Value>> {
    let within = namespace.map_or_else(String::new, |namespace| format!("namespaces/{namespace}/"));
    let request = Request::new(format!("/apis/ray.io/v1/{within}rayclusters"));
    let list = client.request::<Value>(request.list(&ListParams::default())?);
    let list = list.await.map(|mut list| list["items"].take());
    match list.map_err(|error| anyhow!("RayClusters cannot be listed: {}", text(&error)))? {
        Value::Array(clusters) => Ok(clusters),
        _ => Ok(Vec::new()),
    }
}
