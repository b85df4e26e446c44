//! The options of an installation.

use core::net::IpAddr;

use thiserror::Error;

use super::names::{self, Component};
use crate::policy::settings::IMAGE;
use crate::ray::label::is_dns_label;

/// The options of an installation.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "the options are independent")]
pub struct ManifestOptions {
    /// The namespace of Rayfit's objects.
    pub namespace: String,
    /// Rayfit's image, for the webhooks and for the clusters that Rayfit scales.
    pub image: String,
    /// The number of pods that serve webhooks; `None` is two, or three with fail-closed webhooks.
    pub replicas: Option<u32>,
    /// The number of pods that scale clusters, where they are a separate Deployment.
    pub controller_replicas: u32,
    /// The port of the webhooks in the pod.
    pub port: u16,
    /// The plain-HTTP port of probes and metrics in the pod.
    pub health_port: u16,
    /// Run in the node's network, for clusters whose control plane cannot reach pods.
    pub host_network: bool,
    /// A priority class for the pods.
    pub priority_class: Option<String>,
    /// The issuer of the serving certificate; `None` leaves that out.
    pub certificates: Option<Certificates>,
    /// The treatment of a Ray object while no webhook answers.
    pub failure_policy: FailurePolicy,
    /// Seconds for which the API server waits for an answer (1 to 30).
    pub timeout_seconds: u8,
    /// Excluded namespaces, besides kube-system and Rayfit's own.
    pub excluded_namespaces: Vec<String>,
    /// The only namespaces whose Ray objects are checked and whose clusters are scaled; all, if
    /// none is named.
    pub only_namespaces: Vec<String>,
    /// The ports that API servers listen on, which the NetworkPolicy lets Rayfit reach.
    pub api_server_ports: Vec<u16>,
    /// The addresses of API servers, as CIDRs: the NetworkPolicy lets only these reach the
    /// webhooks' port, and lets Rayfit reach only these on API servers' ports. If there are none,
    /// all addresses are allowed.
    pub api_server_cidrs: Vec<String>,
    /// A ConfigMap in Rayfit's namespace whose `ca.crt` is the authority of the client certificates
    /// that callers of the webhooks need.
    pub client_ca_config_map: Option<String>,
    /// The namespaces whose pods may read metrics, each as one `KEY=VALUE` of their labels.
    pub monitoring_namespace_labels: Vec<String>,
    /// Serve the webhooks. One installation in a Kubernetes cluster does; further ones only scale clusters.
    pub webhooks: bool,
    /// Scale clusters in mode central.
    pub controller: bool,
    /// Scale clusters in the Deployment of the webhooks, under their account.
    pub single_deployment: bool,
    /// Grant permission to read the Secrets of Ray clusters with token authentication or TLS.
    pub ray_auth: bool,
    /// Grant permission to delete RayClusters that nobody uses and whose spec asks for that.
    pub delete_idle_clusters: bool,
    /// Have new pods of Ray clusters sent to a webhook, which makes them as large as their RayCluster says.
    pub initial_sizes: bool,
    /// The ports of Ray's GCS in head pods, which the NetworkPolicy lets Rayfit reach.
    pub gcs_ports: Vec<u16>,
    /// Include the CustomResourceDefinition of RayPolicy.
    pub definitions: bool,
}

/// The issuer of the serving certificate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Certificates {
    /// cert-manager, which must be installed.
    CertManager,
    /// Rayfit itself.
    SelfManaged,
}

/// The treatment of a Ray object while no webhook answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FailurePolicy {
    /// It is stored as if Rayfit were not installed.
    Open,
    /// It is refused.
    Closed,
}

/// The error of invalid options.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ManifestOptionsError {
    /// Not a DNS label.
    #[error(
        "{0:?} is not a namespace name: write at most 63 lower-case letters, digits and dashes, \
         beginning and ending with a letter or digit"
    )]
    Namespace(String),
    /// A namespace is both selected and excluded.
    #[error(
        "namespace {0:?} cannot be selected: kube-system, Rayfit's own namespace and excluded ones \
         are never checked; name another one with --only-namespace"
    )]
    OnlySpared(String),
    /// An empty image, or one with blanks.
    #[error("{0:?} is not an image reference: write one like registry.example/rayfit:1.0.0")]
    Image(String),
    /// A port is below 1024, or used twice.
    #[error(
        "the webhooks cannot have port {port} while probes and metrics have port {health}: choose \
         two different ports from 1024 to 65535, because the container runs without permission to \
         use lower ones"
    )]
    Ports {
        /// The webhooks' port.
        port: u16,
        /// The plain-HTTP port.
        health: u16,
    },
    /// The kubelet's port in the node's network.
    #[error(
        "the kubelet uses port 10250 in the node's network: with --host-network choose another \
         one, for example --port 9443, and open it from the control plane to the nodes"
    )]
    KubeletPort,
    /// A value that the API server does not accept.
    #[error("a webhook's timeout is 1 to 30 seconds, not {0}; 3 is a good choice")]
    Timeout(u8),
    /// No webhooks at all.
    #[error("with 0 replicas nothing answers the webhooks: choose 1 or more (2 is the default)")]
    NoReplicas,
    /// No controller at all.
    #[error(
        "with 0 replicas of the controller nothing scales clusters: choose 1 or more (2 is the \
         default), or install without it (--no-controller)"
    )]
    NoControllerReplicas,
    /// Not an address and the length of its prefix.
    #[error("{0:?} is not a range of addresses: write one like 10.0.0.0/28 or 2001:db8::/64")]
    Cidr(String),
    /// Not one label.
    #[error("{0:?} is not a label: write KEY=VALUE, like kubernetes.io/metadata.name=monitoring")]
    NamespaceLabel(String),
}

const KUBELET_PORT: u16 = 10250;

/// The label of the namespace in which Prometheus usually runs.
pub const MONITORING: &str = "kubernetes.io/metadata.name=monitoring";

impl Default for ManifestOptions {
    fn default() -> Self {
        Self {
            namespace: names::NAMESPACE.to_owned(),
            image: IMAGE.to_owned(),
            replicas: None,
            controller_replicas: 2,
            // Control planes of private GKE clusters reach nodes on the ports 443 and 10250 only.
            port: KUBELET_PORT,
            health_port: 8080,
            host_network: false,
            priority_class: None,
            certificates: None,
            failure_policy: FailurePolicy::Open,
            timeout_seconds: 3,
            excluded_namespaces: Vec::new(),
            only_namespaces: Vec::new(),
            // Most network plugins compare the port of an API server itself and not that of its
            // Service: 6443 with kubeadm, 8443 with minikube, 16443 with MicroK8s.
            api_server_ports: vec![443, 6443, 8443, 16443],
            api_server_cidrs: Vec::new(),
            client_ca_config_map: None,
            monitoring_namespace_labels: vec![MONITORING.to_owned()],
            webhooks: true,
            controller: true,
            single_deployment: false,
            ray_auth: false,
            delete_idle_clusters: false,
            initial_sizes: false,
            gcs_ports: vec![6379],
            definitions: true,
        }
    }
}

impl ManifestOptions {
    /// The same installation with a change.
    #[must_use]
    pub fn with(&self, change: impl FnOnce(&mut Self)) -> Self {
        let mut changed = self.clone();
        change(&mut changed);
        changed
    }

    /// The Deployment that scales clusters, if there is one.
    pub fn scaler(&self) -> Option<Component> {
        let component = if self.single_deployment {
            Component::Admission
        } else {
            Component::Controller
        };
        self.controller.then_some(component)
    }

    /// The Deployments.
    pub fn components(&self) -> Vec<Component> {
        let mut components = Vec::new();
        components.extend(self.webhooks.then_some(Component::Admission));
        components.extend(self.scaler().filter(|each| *each == Component::Controller));
        components
    }

    /// The number of pods of a Deployment.
    pub fn replicas_of(&self, component: Component) -> u32 {
        match component {
            Component::Admission => self.replicas.unwrap_or(match self.failure_policy {
                FailurePolicy::Open => 2,
                FailurePolicy::Closed => 3,
            }),
            Component::Controller => self.controller_replicas,
        }
    }

    /// The excluded namespaces: kube-system, Rayfit's own and those of the options.
    pub(super) fn spared_namespaces(&self) -> Vec<&str> {
        let mut names = vec!["kube-system", self.namespace.as_str()];
        for name in &self.excluded_namespaces {
            if !names.contains(&name.as_str()) {
                names.push(name);
            }
        }
        names
    }

    /// Whether the options describe a working installation.
    pub fn check(&self) -> Result<(), ManifestOptionsError> {
        if !is_dns_label(&self.namespace) {
            return Err(ManifestOptionsError::Namespace(self.namespace.clone()));
        }
        let mut named = self.excluded_namespaces.iter().chain(&self.only_namespaces);
        if let Some(bad) = named.find(|name| !is_dns_label(name)) {
            return Err(ManifestOptionsError::Namespace(bad.clone()));
        }
        let spared = self.spared_namespaces();
        if let Some(both) = self
            .only_namespaces
            .iter()
            .find(|name| spared.contains(&name.as_str()))
        {
            return Err(ManifestOptionsError::OnlySpared(both.clone()));
        }
        if self.image.is_empty() || self.image.contains(char::is_whitespace) {
            return Err(ManifestOptionsError::Image(self.image.clone()));
        }
        let (port, health) = (self.port, self.health_port);
        if port < 1024 || health < 1024 || port == health {
            return Err(ManifestOptionsError::Ports { port, health });
        }
        if self.host_network && port == KUBELET_PORT {
            return Err(ManifestOptionsError::KubeletPort);
        }
        if !(1..=30).contains(&self.timeout_seconds) {
            return Err(ManifestOptionsError::Timeout(self.timeout_seconds));
        }
        if self.replicas_of(Component::Admission) == 0 {
            return Err(ManifestOptionsError::NoReplicas);
        }
        if self.controller && self.controller_replicas == 0 {
            return Err(ManifestOptionsError::NoControllerReplicas);
        }
        let mut cidrs = self.api_server_cidrs.iter();
        if let Some(bad) = cidrs.find(|cidr| !is_cidr(cidr)) {
            return Err(ManifestOptionsError::Cidr(bad.clone()));
        }
        let in_syntax = |text: &str| {
            let mut chars = text.chars();
            !text.is_empty()
                && chars.all(|char| char.is_ascii_alphanumeric() || "-_./".contains(char))
        };
        let is_label = |text: &str| {
            let parts = text.split_once('=');
            parts.is_some_and(|(key, value)| in_syntax(key) && in_syntax(value))
        };
        let mut labels = self.monitoring_namespace_labels.iter();
        match labels.find(|label| !is_label(label)) {
            Some(bad) => Err(ManifestOptionsError::NamespaceLabel(bad.clone())),
            None => Ok(()),
        }
    }
}

/// Whether the text is an address with a prefix length.
fn is_cidr(text: &str) -> bool {
    let parts = text.split_once('/');
    let parsed = parts.and_then(|(address, length)| {
        let address: IpAddr = address.parse().ok()?;
        let length: u8 = length.parse().ok().filter(|_| !length.starts_with('+'))?;
        Some(length <= if address.is_ipv4() { 32 } else { 128 })
    });
    parsed == Some(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refuses_what_cannot_work() {
        let changed = |change: fn(&mut ManifestOptions)| {
            let mut options = ManifestOptions::default();
            change(&mut options);
            options.check()
        };
        assert_eq!(changed(|_| ()), Ok(()));
        assert!(matches!(
            changed(|o| o.namespace = "Ray".into()),
            Err(ManifestOptionsError::Namespace(_))
        ));
        assert_eq!(
            changed(|o| o.only_namespaces = vec!["team-a".into(), "kube-system".into()]),
            Err(ManifestOptionsError::OnlySpared("kube-system".into()))
        );
        assert!(matches!(
            changed(|o| o.image.clear()),
            Err(ManifestOptionsError::Image(_))
        ));
        assert!(matches!(
            changed(|o| o.port = 8080),
            Err(ManifestOptionsError::Ports { .. })
        ));
        assert!(matches!(
            changed(|o| o.port = 443),
            Err(ManifestOptionsError::Ports { .. })
        ));
        assert_eq!(
            changed(|o| o.host_network = true),
            Err(ManifestOptionsError::KubeletPort)
        );
        assert_eq!(
            changed(|o| o.timeout_seconds = 31),
            Err(ManifestOptionsError::Timeout(31))
        );
        assert_eq!(
            changed(|o| o.replicas = Some(0)),
            Err(ManifestOptionsError::NoReplicas)
        );
        assert_eq!(
            changed(|o| o.controller_replicas = 0),
            Err(ManifestOptionsError::NoControllerReplicas)
        );
        for wrong in [
            "10.0.0.0",
            "10.0.0.0/33",
            "10.0.0.0/+8",
            "::/129",
            "a/8",
            "/8",
        ] {
            let options = ManifestOptions {
                api_server_cidrs: vec![wrong.to_owned()],
                ..ManifestOptions::default()
            };
            let refused = Err(ManifestOptionsError::Cidr(wrong.to_owned()));
            assert_eq!(options.check(), refused);
        }
        for wrong in ["monitoring", "=monitoring", "team=", "team=a b"] {
            let options = ManifestOptions {
                monitoring_namespace_labels: vec![wrong.to_owned()],
                ..ManifestOptions::default()
            };
            let refused = Err(ManifestOptionsError::NamespaceLabel(wrong.to_owned()));
            assert_eq!(options.check(), refused);
        }
        assert_eq!(
            changed(|o| o.api_server_cidrs = vec!["10.0.0.0/28".into(), "2001:db8::/64".into()]),
            Ok(())
        );
    }
}
