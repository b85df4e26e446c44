//! A played GCS: the same services as Ray's, over gRPC, with whatever state a test gives it.

#![allow(
    dead_code,
    unreachable_pub,
    missing_docs,
    reason = "each test binary includes it and uses a part of it"
)]
#![allow(
    clippy::unused_async,
    reason = "it has to be started within a runtime, which an asynchronous function holds its callers to"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard};

use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto::Builder;
use hyper_util::service::TowerToHyperService;
use rayfit::gcs::Address;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpSocket};
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use tonic::service::Routes;
use tonic::{Code, Request, Response, Status};

/// The messages and services, as `build.rs` makes them for tests.
#[allow(clippy::all, clippy::pedantic, reason = "generated")]
mod generated {
    include!(concat!(env!("OUT_DIR"), "/gcs_server/ray.rs"));
}

pub use generated::ray::rpc;
pub use generated::ray::rpc::autoscaler as messages;

use messages::autoscaler_state_service_server::{
    AutoscalerStateService, AutoscalerStateServiceServer,
};
use rpc::internal_kv_gcs_service_server::{InternalKvGcsService, InternalKvGcsServiceServer};
use rpc::node_info_gcs_service_server::{NodeInfoGcsService, NodeInfoGcsServiceServer};
use rpc::observability_pub_sub_service_server::{
    ObservabilityPubSubService, ObservabilityPubSubServiceServer,
};

/// What the played GCS has, and what it was told.
#[derive(Default)]
pub struct Played {
    /// What it answers to the question for its state.
    pub state: messages::ClusterResourceState,
    /// The token that it asks for.
    pub token: Option<String>,
    /// Never answers.
    pub is_mute: bool,
    /// Fails every call so.
    pub failure: Option<(Code, String, String)>,
    /// Why it rejects drains, if it does.
    pub rejection: Option<String>,
    /// Keys of the internal store, with their namespace.
    pub keys: BTreeMap<(Vec<u8>, Vec<u8>), Vec<u8>>,
    /// What it was told, oldest first.
    pub reports: Vec<messages::AutoscalingState>,
    pub drains: Vec<messages::DrainNodeRequest>,
    pub stopped: Vec<Vec<u8>>,
    pub resizes: Vec<messages::ResizeRayletResourceInstancesRequest>,
    /// How often it was asked for its state.
    pub asked: usize,
    /// Names of the headers of the last call.
    pub headers: Vec<String>,
    /// How many connections there have been.
    pub connections: usize,
    /// What each subscriber wants, by its id.
    pub subscribed: BTreeMap<Vec<u8>, BTreeSet<Vec<u8>>>,
    /// What drivers were to print.
    pub printed: Vec<String>,
    /// What was published, oldest first.
    pub published: Vec<rpc::PubMessage>,
    /// Wakes who waits for that.
    pub news: Arc<Notify>,
    /// How often somebody has asked for it.
    pub polls: usize,
}

/// A played GCS that listens. It ends, and its connections with it, when it is dropped.
pub struct PlayedGcs {
    played: Arc<Mutex<Played>>,
    place: Place,
    running: JoinSet<()>,
}

/// An address that nobody else is given, also while no GCS listens there: connections are refused then.
pub struct Place {
    address: SocketAddr,
    /// Bound, and never listens.
    _reserved: TcpSocket,
}

impl Place {
    /// A free port of the loopback interface.
    pub fn free() -> Self {
        Self::of(bound("127.0.0.1:0".parse().unwrap()).unwrap())
    }

    /// A listener for whoever else is to listen there, once.
    pub fn listener(&self) -> TcpListener {
        bound(self.address).unwrap().listen(1024).unwrap()
    }

    fn of(reserved: TcpSocket) -> Self {
        Self {
            address: reserved.local_addr().unwrap(),
            _reserved: reserved,
        }
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

/// Two sockets can be bound to one address if both say so, and not more than one of them listens.
fn bound(at: SocketAddr) -> std::io::Result<TcpSocket> {
    let socket = TcpSocket::new_v4()?;
    socket.set_reuseaddr(true)?;
    socket.bind(at)?;
    Ok(socket)
}

impl PlayedGcs {
    /// Listens on a free port of the loopback interface.
    pub async fn start(played: Played) -> Self {
        Self::again(Place::free(), played, None).await
    }

    /// The same, with mutual TLS.
    pub async fn start_tls(played: Played, tls: rustls::ServerConfig) -> Self {
        let acceptor = TlsAcceptor::from(Arc::new(tls));
        Self::again(Place::free(), played, Some(acceptor)).await
    }

    /// Two of them, on one port of two addresses.
    pub async fn pair(first: Played, second: Played) -> (Self, Self) {
        loop {
            let one = Place::free();
            let other = SocketAddr::from(([127, 0, 0, 2], one.address.port()));
            // Somebody else may have this port of the other address.
            if let Ok(reserved) = bound(other) {
                let other = Place::of(reserved);
                return (
                    Self::again(one, first, None).await,
                    Self::again(other, second, None).await,
                );
            }
        }
    }

    /// Listens where an earlier one did.
    pub async fn again(place: Place, played: Played, tls: Option<TlsAcceptor>) -> Self {
        let listener = place.listener();
        let played = Arc::new(Mutex::new(played));
        let mut running = JoinSet::new();
        running.spawn(accept(listener, Arc::clone(&played), tls));
        Self {
            played,
            place,
            running,
        }
    }

    /// Ends it as SIGKILL would, and returns where it can be started again.
    pub async fn kill(mut self) -> Place {
        self.running.shutdown().await;
        self.place
    }

    pub fn address(&self) -> Address {
        let address = self.place.address;
        Address::new(address.ip().to_string(), address.port())
    }

    pub fn played(&self) -> MutexGuard<'_, Played> {
        self.played.lock().unwrap()
    }
}

/// Each connection is a task of this one, so that all end together.
async fn accept(listener: TcpListener, played: Arc<Mutex<Played>>, tls: Option<TlsAcceptor>) {
    let mut connections = JoinSet::new();
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        played.lock().unwrap().connections += 1;
        let service = Service(Arc::clone(&played));
        let tls = tls.clone();
        connections.spawn(async move {
            match tls {
                None => serve(stream, service).await,
                Some(tls) => {
                    // A client that is refused is the client's matter.
                    if let Ok(stream) = tls.accept(stream).await {
                        serve(stream, service).await;
                    }
                }
            }
        });
    }
}

async fn serve(stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static, service: Service) {
    let routes = Routes::new(AutoscalerStateServiceServer::new(service.clone()))
        .add_service(NodeInfoGcsServiceServer::new(service.clone()))
        .add_service(InternalKvGcsServiceServer::new(service.clone()))
        .add_service(ObservabilityPubSubServiceServer::new(service));
    // However the connection ends is no matter of the server's.
    let _ = Builder::new(TokioExecutor::new())
        .http2_only()
        .serve_connection(
            TokioIo::new(stream),
            TowerToHyperService::new(routes.into_axum_router()),
        )
        .await;
}

#[derive(Clone)]
struct Service(Arc<Mutex<Played>>);

impl Service {
    /// What every call goes through first.
    async fn enter<T>(&self, request: Request<T>) -> Result<T, Status> {
        let (is_mute, verdict) = {
            let mut played = self.0.lock().unwrap();
            let metadata = request.metadata();
            played.headers = metadata
                .keys()
                .map(|key| match key {
                    tonic::metadata::KeyRef::Ascii(key) => key.to_string(),
                    tonic::metadata::KeyRef::Binary(key) => key.to_string(),
                })
                .collect();
            let shown = metadata
                .get("authorization")
                .map(tonic::metadata::AsciiMetadataValue::as_bytes);
            (played.is_mute, played.verdict(shown))
        };
        if is_mute {
            std::future::pending::<()>().await;
        }
        verdict.map(|()| request.into_inner())
    }

    fn played(&self) -> MutexGuard<'_, Played> {
        self.0.lock().unwrap()
    }
}

impl Played {
    /// Publishes how much memory is in use on a node, as its dashboard agent does.
    pub fn publish_memory(&mut self, node: &str, used: u64, total: u64, now: f64) {
        let json = serde_json::json!({"now": now, "mem": [total, total.saturating_sub(used), 1.0, used], "workers": [{"pid": 1}]});
        self.publish(format!("RAY_REPORTER:{node}").as_bytes(), json.to_string());
    }

    pub fn publish(&mut self, key: &[u8], json: String) {
        let usage = rpc::NodeResourceUsage { json };
        self.published.push(rpc::PubMessage {
            channel_type: rpc::ChannelType::RayNodeResourceUsageChannel.into(),
            key_id: key.to_vec(),
            inner_message: Some(rpc::pub_message::InnerMessage::NodeResourceUsageMessage(
                usage,
            )),
            sequence_id: i64::try_from(self.published.len()).unwrap() + 1,
        });
        self.news.notify_waiters();
    }

    fn verdict(&self, shown: Option<&[u8]>) -> Result<(), Status> {
        if let Some((code, message, details)) = &self.failure {
            let details = details.clone().into_bytes().into();
            return Err(Status::with_details(*code, message, details));
        }
        let Some(token) = &self.token else {
            return Ok(());
        };
        if shown == Some(format!("Bearer {token}").as_bytes()) {
            return Ok(());
        }
        let text = "InvalidAuthToken: Authentication token is missing or incorrect";
        Err(Status::unauthenticated(text))
    }
}

#[tonic::async_trait]
impl AutoscalerStateService for Service {
    async fn get_cluster_resource_state(
        &self,
        request: Request<messages::GetClusterResourceStateRequest>,
    ) -> Result<Response<messages::GetClusterResourceStateReply>, Status> {
        self.enter(request).await?;
        let mut played = self.played();
        played.asked += 1;
        Ok(Response::new(messages::GetClusterResourceStateReply {
            cluster_resource_state: Some(played.state.clone()),
        }))
    }

    async fn get_cluster_status(
        &self,
        request: Request<messages::GetClusterStatusRequest>,
    ) -> Result<Response<messages::GetClusterStatusReply>, Status> {
        self.enter(request).await?;
        let mut played = self.played();
        played.asked += 1;
        Ok(Response::new(messages::GetClusterStatusReply {
            autoscaling_state: played.reports.last().cloned(),
            cluster_resource_state: Some(played.state.clone()),
        }))
    }

    async fn report_autoscaling_state(
        &self,
        request: Request<messages::ReportAutoscalingStateRequest>,
    ) -> Result<Response<messages::ReportAutoscalingStateReply>, Status> {
        let told = self.enter(request).await?.autoscaling_state;
        self.played().reports.extend(told);
        Ok(Response::new(messages::ReportAutoscalingStateReply {}))
    }

    async fn drain_node(
        &self,
        request: Request<messages::DrainNodeRequest>,
    ) -> Result<Response<messages::DrainNodeReply>, Status> {
        let drain = self.enter(request).await?;
        let mut played = self.played();
        played.drains.push(drain);
        Ok(Response::new(messages::DrainNodeReply {
            is_accepted: played.rejection.is_none(),
            rejection_reason_message: played.rejection.clone().unwrap_or_default(),
        }))
    }

    async fn resize_raylet_resource_instances(
        &self,
        request: Request<messages::ResizeRayletResourceInstancesRequest>,
    ) -> Result<Response<messages::ResizeRayletResourceInstancesReply>, Status> {
        let resize = self.enter(request).await?;
        let mut played = self.played();
        played.resizes.push(resize.clone());
        let nodes = &mut played.state.node_states;
        let node = nodes.iter_mut().find(|node| node.node_id == resize.node_id);
        let node = node.ok_or_else(|| Status::aborted("NotFound"))?;
        node.total_resources.extend(resize.resources);
        Ok(Response::new(
            messages::ResizeRayletResourceInstancesReply {
                total_resources: node.total_resources.clone(),
            },
        ))
    }
}

#[tonic::async_trait]
impl NodeInfoGcsService for Service {
    async fn drain_node(
        &self,
        request: Request<rpc::DrainNodeRequest>,
    ) -> Result<Response<rpc::DrainNodeReply>, Status> {
        let nodes = self.enter(request).await?.drain_node_data;
        let ids = nodes.into_iter().map(|node| node.node_id);
        self.played().stopped.extend(ids);
        Ok(Response::new(rpc::DrainNodeReply { status: None }))
    }
}

#[tonic::async_trait]
impl InternalKvGcsService for Service {
    async fn internal_kv_get(
        &self,
        request: Request<rpc::InternalKvGetRequest>,
    ) -> Result<Response<rpc::InternalKvGetReply>, Status> {
        let asked = self.enter(request).await?;
        let value = self
            .played()
            .keys
            .get(&(asked.namespace, asked.key))
            .cloned();
        let code = if value.is_some() { 0 } else { 17 };
        Ok(Response::new(rpc::InternalKvGetReply {
            status: Some(rpc::GcsStatus {
                code,
                message: String::new(),
            }),
            value: value.unwrap_or_default(),
        }))
    }

    async fn internal_kv_del(
        &self,
        request: Request<rpc::InternalKvDelRequest>,
    ) -> Result<Response<rpc::InternalKvDelReply>, Status> {
        let gone = self.enter(request).await?;
        let found = self.played().keys.remove(&(gone.namespace, gone.key));
        Ok(Response::new(rpc::InternalKvDelReply {
            status: Some(rpc::GcsStatus::default()),
            deleted_num: found.is_some().into(),
        }))
    }

    async fn internal_kv_put(
        &self,
        request: Request<rpc::InternalKvPutRequest>,
    ) -> Result<Response<rpc::InternalKvPutReply>, Status> {
        let put = self.enter(request).await?;
        let mut played = self.played();
        let key = (put.namespace, put.key);
        let added = !played.keys.contains_key(&key);
        if added || put.overwrite {
            played.keys.insert(key, put.value);
        }
        let status = Some(rpc::GcsStatus::default());
        Ok(Response::new(rpc::InternalKvPutReply { status, added }))
    }
}

#[tonic::async_trait]
impl ObservabilityPubSubService for Service {
    async fn gcs_subscriber_command_batch(
        &self,
        request: Request<rpc::GcsSubscriberCommandBatchRequest>,
    ) -> Result<Response<rpc::GcsSubscriberCommandBatchReply>, Status> {
        use rpc::command::CommandMessageOneOf::{SubscribeMessage, UnsubscribeMessage};
        let asked = self.enter(request).await?;
        let mut played = self.played();
        let keys = played.subscribed.entry(asked.subscriber_id).or_default();
        for command in asked.commands {
            match command.command_message_one_of {
                Some(SubscribeMessage(_)) => keys.insert(command.key_id),
                Some(UnsubscribeMessage(_)) => keys.remove(&command.key_id),
                None => false,
            };
        }
        let reply = rpc::GcsSubscriberCommandBatchReply::default();
        Ok(Response::new(reply))
    }

    async fn gcs_publish(
        &self,
        request: Request<rpc::GcsPublishRequest>,
    ) -> Result<Response<rpc::GcsPublishReply>, Status> {
        use rpc::pub_message::InnerMessage::LogBatchMessage;
        let asked = self.enter(request).await?;
        let mut played = self.played();
        for message in asked.pub_messages {
            if let Some(LogBatchMessage(batch)) = message.inner_message {
                played.printed.extend(batch.lines);
            }
        }
        Ok(Response::new(rpc::GcsPublishReply::default()))
    }

    async fn gcs_subscriber_poll(
        &self,
        request: Request<rpc::GcsSubscriberPollRequest>,
    ) -> Result<Response<rpc::GcsSubscriberPollReply>, Status> {
        let asked = self.enter(request).await?;
        self.played().polls += 1;
        loop {
            let news = Arc::clone(&self.played().news);
            let news = news.notified();
            tokio::pin!(news);
            news.as_mut().enable();
            let pub_messages: Vec<rpc::PubMessage> = {
                let played = self.played();
                let keys = played.subscribed.get(&asked.subscriber_id);
                let is_wanted = |message: &&rpc::PubMessage| {
                    message.sequence_id > asked.max_processed_sequence_id
                        && keys.is_some_and(|keys| keys.contains(&message.key_id))
                };
                played.published.iter().filter(is_wanted).cloned().collect()
            };
            if !pub_messages.is_empty() {
                return Ok(Response::new(rpc::GcsSubscriberPollReply {
                    pub_messages,
                    publisher_id: b"gcs".to_vec(),
                    status: None,
                }));
            }
            news.await;
        }
    }
}
