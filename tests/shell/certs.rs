//! Certificates of our own, by several replicas against a played API server, in virtual time.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rayfit_core::manifests::access::rights::CERTIFICATES;
use rayfit_core::manifests::{self, Certificates};

use crate::played_api::{Call, Fault, PlayedApi};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rayfit::apiserver::{Informers, Watches};
use rayfit::certs::{CertificateOptions, WallClock, run};
use rayfit::tls::{CertificateStore, provider};
use rustls::RootCertStore;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::ServerCertVerifier as _;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use serde_json::{Value, json};
use tokio::task::JoinHandle;

const SECRET: &str = "/api/v1/namespaces/rayfit-system/secrets/rayfit-self-managed-certs";
const CONFIGURATIONS: [&str; 2] = [
    "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/rayfit-mutating",
    "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/rayfit-validating",
];

const DAY: Duration = Duration::from_hours(24);

struct Cluster {
    server: PlayedApi,
    clock: Arc<AtomicU64>,
    replicas: Vec<Replica>,
}

struct Replica {
    store: Arc<CertificateStore>,
    task: JoinHandle<()>,
}

impl Cluster {
    /// What the manifests apply, and the pods that follow.
    fn start(replicas: usize) -> Self {
        let server = PlayedApi::default();
        server.faults(|call| (!is_allowed(call)).then_some(Fault::Status(403, None)));
        let options = manifests::ManifestOptions::default()
            .with(|options| options.certificates = Some(Certificates::SelfManaged));
        for object in manifests::objects(&options) {
            match object["kind"].as_str().unwrap() {
                "Secret" => server.put(SECRET, object),
                "MutatingWebhookConfiguration" => server.put(CONFIGURATIONS[0], object),
                "ValidatingWebhookConfiguration" => server.put(CONFIGURATIONS[1], object),
                _ => {}
            }
        }
        let clock = Arc::new(AtomicU64::new(1_800_000_000));
        let mut cluster = Self {
            server,
            clock,
            replicas: Vec::new(),
        };
        for _ in 0..replicas {
            cluster.add_replica();
        }
        cluster
    }

    fn add_replica(&mut self) {
        let options = CertificateOptions::new("rayfit-system/rayfit-self-managed-certs").unwrap();
        let store = Arc::new(CertificateStore::default());
        let clock = self.clock.clone();
        let clock: WallClock =
            Arc::new(move || UNIX_EPOCH + Duration::from_secs(clock.load(Ordering::SeqCst)));
        let informers = Informers::new(self.server.client(), Watches::default());
        let serving = store.clone();
        let task = tokio::spawn(run(options, informers, serving, clock));
        self.replicas.push(Replica { store, task });
    }

    /// Waits until `holds`, checking all the while that no call would fail.
    async fn wait_until(&self, what: &str, holds: impl Fn(&Self) -> bool) {
        let waiting = async {
            while !holds(self) {
                self.assert_no_gap();
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        };
        let waited = tokio::time::timeout(Duration::from_mins(1), waiting).await;
        assert!(waited.is_ok(), "never: {what}");
        self.assert_no_gap();
    }

    fn pass(&self, time: Duration) {
        self.clock.fetch_add(time.as_secs(), Ordering::SeqCst);
        // Replicas at rest look again every few minutes, or when they hear of a change.
        self.server.change(SECRET, |secret| {
            secret["metadata"]["annotations"]["test/now"] =
                json!(self.clock.load(Ordering::SeqCst).to_string());
        });
    }

    /// Until the leaf is due again, and renewed by every replica.
    async fn pass_a_renewal(&self) {
        let before = self.leaves()[0].clone();
        self.pass(72 * DAY);
        let renewed = |cluster: &Self| cluster.all_serve_another_leaf_than(before.as_ref());
        self.wait_until("renewed", renewed).await;
    }

    fn leaves(&self) -> Vec<Option<CertificateDer<'static>>> {
        let leaf = |replica: &Replica| Some(replica.store.current()?.leaf()?.clone());
        self.replicas.iter().map(leaf).collect()
    }

    fn all_serve_another_leaf_than(&self, before: Option<&CertificateDer<'static>>) -> bool {
        let leaves = self.leaves();
        leaves[0].is_some()
            && leaves[0].as_ref() != before
            && leaves.iter().all(|leaf| *leaf == leaves[0])
    }

    /// The bundles that differ.
    fn bundles(&self) -> Vec<Vec<CertificateDer<'static>>> {
        let configurations = CONFIGURATIONS.map(|path| self.server.get(path).unwrap());
        let mut bundles = Vec::new();
        for object in &configurations {
            for webhook in object["webhooks"].as_array().unwrap() {
                let bundle = bundle(webhook);
                if !bundles.contains(&bundle) {
                    bundles.push(bundle);
                }
            }
        }
        bundles
    }

    /// All serve one leaf, and every webhook trusts exactly one authority.
    fn is_settled(&self) -> bool {
        let bundles = self.bundles();
        self.all_serve_another_leaf_than(None) && bundles.len() == 1 && bundles[0].len() == 1
    }

    fn assert_no_gap(&self) {
        // The bundles first: what is served later is trusted by them as well.
        let bundles = self.bundles();
        let now = UNIX_EPOCH + Duration::from_secs(self.clock.load(Ordering::SeqCst));
        for leaf in self.leaves().into_iter().flatten() {
            for bundle in bundles.iter().filter(|bundle| !bundle.is_empty()) {
                assert!(verifies(bundle, &leaf, now), "a call would fail");
            }
        }
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        self.replicas
            .iter()
            .for_each(|replica| replica.task.abort());
    }
}

/// Whether the rights that we ask for allow a request.
fn is_allowed(call: &Call) -> bool {
    CERTIFICATES.iter().any(|need| {
        need.resource == call.resource
            && need.verbs.contains(&call.verb)
            && need.name.is_none_or(|only| call.name == only)
    })
}

fn bundle(webhook: &Value) -> Vec<CertificateDer<'static>> {
    let text = webhook["clientConfig"]["caBundle"]
        .as_str()
        .unwrap_or_default();
    let pem = STANDARD.decode(text).unwrap();
    CertificateDer::pem_slice_iter(&pem)
        .map(Result::unwrap)
        .collect()
}

/// As an API server that trusts `bundle` sees it.
fn verifies(
    bundle: &[CertificateDer<'static>],
    leaf: &CertificateDer<'_>,
    now: SystemTime,
) -> bool {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(bundle.iter().cloned());
    let verifier = WebPkiServerVerifier::builder_with_provider(roots.into(), provider().into());
    let host = ServerName::try_from("rayfit.rayfit-system.svc").unwrap();
    let now = UnixTime::since_unix_epoch(now.duration_since(UNIX_EPOCH).unwrap());
    verifier
        .build()
        .unwrap()
        .verify_server_cert(leaf, &[], &host, &[], now)
        .is_ok()
}

#[tokio::test(start_paused = true)]
async fn certificates_are_renewed_for_years_by_one_authority() {
    let cluster = Cluster::start(3);
    cluster.wait_until("settled", Cluster::is_settled).await;
    let first = cluster.bundles();
    for _ in 0..9 {
        cluster.pass_a_renewal().await;
        cluster.wait_until("settled", Cluster::is_settled).await;
    }
    assert_eq!(cluster.bundles(), first);
}

/// The command of docs/install.md, and what follows while pods change over.
#[tokio::test(start_paused = true)]
async fn the_authority_is_replaced_by_one_command_without_a_gap() {
    let cluster = Cluster::start(3);
    cluster.wait_until("settled", Cluster::is_settled).await;
    let (former, leaf) = (cluster.bundles()[0].clone(), cluster.leaves()[0].clone());
    let docs = include_str!("../../docs/install.md");
    let command = docs
        .lines()
        .find(|line| line.contains("/data/ca.key"))
        .unwrap();
    let patch = command.split('\'').nth(1).unwrap();
    let patch: json_patch::Patch = serde_json::from_str(patch).unwrap();
    cluster
        .server
        .change(SECRET, |secret| json_patch::patch(secret, &patch).unwrap());
    let both = |cluster: &Cluster| {
        cluster
            .bundles()
            .iter()
            .all(|bundle| bundle.len() == 2 && bundle.contains(&former[0]))
    };
    cluster.wait_until("both are trusted", both).await;
    cluster.pass(Duration::from_mins(1));
    let replaced = |cluster: &Cluster| cluster.all_serve_another_leaf_than(leaf.as_ref());
    cluster.wait_until("the new one has signed", replaced).await;
    assert!(both(&cluster));
    cluster.pass(Duration::from_mins(10));
    cluster.wait_until("settled", Cluster::is_settled).await;
    assert_ne!(cluster.bundles()[0], former);
}

#[tokio::test(start_paused = true)]
async fn a_bundle_that_somebody_resets_is_mended() {
    let cluster = Cluster::start(2);
    cluster.wait_until("settled", Cluster::is_settled).await;
    for path in CONFIGURATIONS {
        cluster.server.change(path, |object| {
            object["webhooks"][1]["clientConfig"]["caBundle"] = json!("");
        });
    }
    cluster.wait_until("mended", Cluster::is_settled).await;
}

#[tokio::test(start_paused = true)]
async fn a_secret_that_is_emptied_is_no_outage() {
    let cluster = Cluster::start(2);
    cluster.wait_until("settled", Cluster::is_settled).await;
    let before = cluster.leaves()[0].clone();
    cluster
        .server
        .change(SECRET, |secret| secret["data"] = json!({}));
    let both = |cluster: &Cluster| cluster.bundles().iter().all(|bundle| bundle.len() == 2);
    cluster.wait_until("both are trusted", both).await;
    cluster.pass(Duration::from_mins(1));
    cluster
        .wait_until("replaced", |cluster| {
            cluster.all_serve_another_leaf_than(before.as_ref())
        })
        .await;
    cluster.pass(Duration::from_mins(10));
    cluster.wait_until("settled", Cluster::is_settled).await;
}

#[tokio::test(start_paused = true)]
async fn every_right_is_used_and_no_other_is_needed() {
    let cluster = Cluster::start(2);
    cluster.wait_until("settled", Cluster::is_settled).await;
    let rights = CERTIFICATES.iter().flat_map(|need| {
        need.verbs
            .iter()
            .map(|verb| ((*verb).to_owned(), need.resource.to_owned()))
    });
    let requests = cluster.server.objects().requests.clone();
    let used: BTreeSet<(String, String)> = requests
        .into_iter()
        .filter(is_allowed)
        .map(|call| (call.verb.to_owned(), call.resource))
        .collect();
    assert_eq!(used, rights.collect());
}
