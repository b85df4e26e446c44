//! `rayfit manifests`: the manifests that install Rayfit.

use std::fs;
use std::path::PathBuf;

use anyhow::Context as _;
use rayfit_core::manifests::options::MONITORING;
use rayfit_core::manifests::{
    self, Certificates, FailurePolicy, ManifestOptions, kustomize, names, to_yaml,
};
use rayfit_core::policy::settings::IMAGE;

use super::Outcome;
use super::shared::outcome;

/// Print the YAML that installs Rayfit
#[derive(Debug, clap::Args)]
#[expect(clippy::struct_excessive_bools, reason = "flags of a command line")]
#[command(after_help = "Examples:\n  \
    rayfit manifests --self-managed | kubectl apply -f -\n  \
    rayfit manifests --cert-manager --fail-closed > rayfit.yaml\n  \
    rayfit manifests --self-managed | kubectl delete --ignore-not-found -f -   (uninstall)")]
pub(super) struct ManifestsCommand {
    /// Let cert-manager issue the certificates (it must be installed; 1.19 or later is recommended)
    #[arg(long, conflicts_with = "self_managed")]
    cert_manager: bool,

    /// Let Rayfit issue and rotate its own certificates (the default)
    #[arg(long)]
    self_managed: bool,

    /// Refuse Ray objects while no webhook answers, instead of storing them without validation
    #[arg(long)]
    fail_closed: bool,

    /// Namespace to install into
    #[arg(long, value_name = "NAME", default_value = names::NAMESPACE)]
    namespace: String,

    /// Rayfit's image
    #[arg(long, value_name = "IMAGE", default_value = IMAGE)]
    image: String,

    /// Replicas of the webhooks [default: 2, with --fail-closed 3]
    #[arg(long, value_name = "N")]
    replicas: Option<u32>,

    /// Replicas of the controller, which scales clusters
    #[arg(long, value_name = "N", default_value_t = 2)]
    controller_replicas: u32,

    /// One Deployment for webhooks and controller, with one account that has the permissions of both
    ///
    /// For small clusters. By default the controller runs separately, without permissions for webhook
    /// configurations and certificates, because it reads the answers of tenants' Ray clusters.
    #[arg(long, conflicts_with_all = ["no_controller", "controller_replicas"])]
    single_deployment: bool,

    /// Port of the webhooks in the pod
    ///
    /// The default is 10250 because the control plane of a private GKE cluster can reach nodes on
    /// ports 443 and 10250 only, unless a firewall rule is added.
    #[arg(long, default_value_t = 10250)]
    port: u16,

    /// Port of probes and metrics in the pod
    #[arg(long, value_name = "PORT", default_value_t = 8080)]
    health_port: u16,

    /// Run in the node's network
    ///
    /// For clusters whose control plane cannot reach pods (EKS with another network plugin). Needs
    /// another --port, because the kubelet uses 10250, and a privileged namespace.
    #[arg(long)]
    host_network: bool,

    /// Priority class of the pods, for example system-cluster-critical
    ///
    /// With it comes a ResourceQuota for that class, without which GKE allows system-cluster-critical in kube-system only.
    #[arg(long, value_name = "CLASS")]
    priority_class: Option<String>,

    /// The time for which the API server waits for an answer
    #[arg(long, value_name = "SECONDS", default_value_t = 3)]
    timeout_seconds: u8,

    /// Exclude this namespace, besides kube-system and Rayfit's own; can be repeated
    #[arg(long = "exclude-namespace", value_name = "NAME")]
    excluded_namespaces: Vec<String>,

    /// Check Ray objects and scale clusters in this namespace only; can be repeated
    ///
    /// To try Rayfit with one team first. Permission to scale is then granted in that namespace only.
    #[arg(long = "only-namespace", value_name = "NAME")]
    only_namespaces: Vec<String>,

    /// Ports of your API servers, which the NetworkPolicy lets Rayfit reach
    #[arg(
        long,
        value_name = "PORTS",
        value_delimiter = ',',
        default_value = "443,6443,8443,16443"
    )]
    api_server_ports: Vec<u16>,

    /// Addresses of your API servers, for example 10.0.0.0/28; can be repeated
    ///
    /// The NetworkPolicy then lets only these addresses call the webhooks, and lets Rayfit reach only
    /// these on --api-server-ports. Where agents of the control plane (konnectivity) call webhooks for
    /// it, name their addresses too.
    #[arg(long = "api-server-cidr", value_name = "CIDR")]
    api_server_cidrs: Vec<String>,

    /// ConfigMap in Rayfit's namespace with the authority (ca.crt) of the client certificates of callers
    ///
    /// Then only API servers that present such a certificate can call the webhooks (docs/security.md).
    #[arg(long, value_name = "NAME")]
    client_ca_config_map: Option<String>,

    /// Label of the namespaces whose pods may read metrics; can be repeated
    #[arg(long = "monitoring-namespace-label", value_name = "KEY=VALUE", default_values = MONITORING)]
    monitoring_namespace_labels: Vec<String>,

    /// Install the webhooks only, without the permissions that scaling clusters needs
    #[arg(long)]
    no_controller: bool,

    /// Only scale clusters: one installation in a Kubernetes cluster has webhooks, and further ones do without
    ///
    /// For more clusters than one process can scale. Each installation needs a --namespace and an
    /// --only-namespace of its own (docs/operations.md).
    #[arg(long, requires = "only_namespaces", conflicts_with_all = ["no_controller", "single_deployment", "cert_manager", "self_managed", "fail_closed", "initial_sizes", "write_to"])]
    no_webhooks: bool,

    /// Permit reading Secrets, for Ray clusters with token authentication or TLS in mode central
    #[arg(long, conflicts_with = "no_controller")]
    ray_auth: bool,

    /// Permit deleting RayClusters that nobody uses and whose `idleTerminationOptions` say `Delete`
    #[arg(long, conflicts_with = "no_controller")]
    delete_idle_clusters: bool,

    /// Have new worker pods sent to a webhook, which makes them as large as Rayfit said when it asked for them
    ///
    /// A RayPolicy with `inPlace.initialSizes` needs it. While the webhook does not answer, pods are made as
    /// their templates say, and grow later.
    #[arg(long)]
    initial_sizes: bool,

    /// Ports of Ray's GCS in head pods, which the NetworkPolicy lets Rayfit reach
    #[arg(
        long,
        value_name = "PORTS",
        value_delimiter = ',',
        default_value = "6379"
    )]
    gcs_ports: Vec<u16>,

    /// Leave out the CustomResourceDefinition of RayPolicy, if you install definitions separately
    /// (`rayfit crd` prints it)
    #[arg(long)]
    no_crds: bool,

    /// Write a folder for kustomize instead, with an overlay for each kind of installation
    ///
    /// Then: kubectl apply -k FOLDER/overlays/self-managed
    #[arg(long, value_name = "FOLDER", conflicts_with_all = ["cert_manager", "self_managed", "fail_closed", "ray_auth", "delete_idle_clusters", "initial_sizes"])]
    write_to: Option<PathBuf>,
}

impl ManifestsCommand {
    pub(super) fn run(self) -> anyhow::Result<Outcome> {
        let folder = self.write_to.clone();
        let options = self.options();
        options.check().map_err(anyhow::Error::msg)?;
        if let Some(folder) = folder {
            // Files that only an earlier version wrote are not deleted, because they cannot be told from the
            // user's own files.
            for (path, text) in kustomize::tree(&options) {
                let path = folder.join(path);
                let parent = path.parent().unwrap_or(&folder);
                fs::create_dir_all(parent)
                    .with_context(|| format!("cannot make {}", parent.display()))?;
                fs::write(&path, text)
                    .with_context(|| format!("cannot write {}", path.display()))?;
            }
            return Ok(Outcome::Clean);
        }
        let mut text = String::new();
        // As in container runtimes, the part before the first slash is a host if it has a dot or a port, or is
        // localhost.
        let host = options.image.split_once('/').map(|(host, _)| host);
        let is_host = |host: &str| host.contains(['.', ':']) || host == "localhost";
        if !host.is_some_and(is_host) {
            text.push_str(NO_REGISTRY);
        }
        if options.ray_auth && options.only_namespaces.is_empty() {
            text.push_str(EVERY_SECRET);
        }
        text.push_str(&to_yaml(&manifests::objects(&options)));
        outcome::print(&text)
    }

    fn options(self) -> ManifestOptions {
        ManifestOptions {
            namespace: self.namespace,
            image: self.image,
            replicas: self.replicas,
            controller_replicas: self.controller_replicas,
            port: self.port,
            health_port: self.health_port,
            host_network: self.host_network,
            priority_class: self.priority_class,
            certificates: Some(if self.cert_manager {
                Certificates::CertManager
            } else {
                Certificates::SelfManaged
            }),
            failure_policy: if self.fail_closed {
                FailurePolicy::Closed
            } else {
                FailurePolicy::Open
            },
            timeout_seconds: self.timeout_seconds,
            excluded_namespaces: self.excluded_namespaces,
            only_namespaces: self.only_namespaces,
            api_server_ports: self.api_server_ports,
            api_server_cidrs: self.api_server_cidrs,
            client_ca_config_map: self.client_ca_config_map,
            monitoring_namespace_labels: self.monitoring_namespace_labels,
            webhooks: !self.no_webhooks,
            controller: !self.no_controller,
            single_deployment: self.single_deployment,
            ray_auth: self.ray_auth,
            delete_idle_clusters: self.delete_idle_clusters,
            initial_sizes: self.initial_sizes,
            gcs_ports: self.gcs_ports,
            definitions: !self.no_crds,
        }
    }
}

/// Comment before YAML whose image names no registry.
const NO_REGISTRY: &str = "\
# The image names no registry: each node takes it from wherever its container runtime looks first.
# Push it to a registry of yours and name it: --image registry.example/rayfit:VERSION, or with
# @sha256:... so that it can never become another one.
";

/// Comment before YAML with a permission that undoes the separation of the two accounts.
const EVERY_SECRET: &str = "\
# --ray-auth without --only-namespace lets what scales clusters read every Secret of the cluster, the
# webhooks' own key included. Name the namespaces of Ray clusters with tokens or TLS.
";
