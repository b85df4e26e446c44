//! The options of an installation.

use core::net::IpAddr;

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
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum FailurePolicy {
    /// It is stored as if Rayfit were not installed.
    #[default]
    Open,
    /// It is refused.
    Closed,
}

const KUBELET_PORT: u16 = 10250;

/// The labels of the namespaces in which Prometheus usually runs; the second one is that of KubeRay's guides.
pub const MONITORING: [&str; 2] = [
    "kubernetes.io/metadata.name=monitoring",
    "kubernetes.io/metadata.name=prometheus-system",
];

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
            monitoring_namespace_labels: MONITORING.map(str::to_owned).into(),
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

impl FailurePolicy {
    /// The name in webhook configurations and policies.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Open => "Ignore",
            Self::Closed => "Fail",
        }
    }
}

impl ManifestOptions {
    /// This installation with a change.
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

    /// Checks that the options describe a working installation.
    ///
    /// # Errors
    ///
    /// The first fault, with its remedy.
    pub fn check(&self) -> Result<(), String> {
        let mut named = std::iter::once(&self.namespace)
            .chain(&self.excluded_namespaces)
            .chain(&self.only_namespaces);
        let no_namespace = named.find(|name| !is_dns_label(name)).map(|name| {
            format!(
                "{name:?} is not a namespace name: write at most 63 lower-case letters, digits and dashes, \
                 beginning and ending with a letter or digit"
            )
        });
        let spared = self.spared_namespaces();
        let mut only = self.only_namespaces.iter();
        let only_spared = only.find(|name| spared.contains(&name.as_str()));
        let only_spared = only_spared.map(|name| {
            format!(
                "namespace {name:?} cannot be selected: kube-system, Rayfit's own namespace and excluded ones \
                 are never checked; name another one with --only-namespace"
            )
        });
        let (image, port, health) = (&self.image, self.port, self.health_port);
        let no_image = image.is_empty() || image.contains(char::is_whitespace);
        let mut cidrs = self.api_server_cidrs.iter();
        let mut labels = self.monitoring_namespace_labels.iter();
        let faults = [
            no_namespace,
            only_spared,
            no_image.then(|| {
                format!(
                    "{image:?} is not an image reference: write one like registry.example/rayfit:1.0.0"
                )
            }),
            (port < 1024 || health < 1024 || port == health).then(|| {
                format!(
                    "the webhooks cannot have port {port} while probes and metrics have port {health}: choose \
                     two different ports from 1024 to 65535, because the container runs without permission to \
                     use lower ones"
                )
            }),
            (self.host_network && port == KUBELET_PORT).then(|| {
                format!(
                    "the kubelet uses port {KUBELET_PORT} in the node's network: with --host-network choose \
                     another one, for example --port 9443, and open it from the control plane to the nodes"
                )
            }),
            (!(1..=30).contains(&self.timeout_seconds)).then(|| {
                let timeout = self.timeout_seconds;
                format!("a webhook's timeout is 1 to 30 seconds, not {timeout}; 3 is a good choice")
            }),
            (self.replicas_of(Component::Admission) == 0).then(|| {
                "with 0 replicas nothing answers the webhooks: choose 1 or more (2 is the default)"
                    .to_owned()
            }),
            (self.controller && self.controller_replicas == 0).then(|| {
                "with 0 replicas of the controller nothing scales clusters: choose 1 or more (2 is the \
                 default), or install without it (--no-controller)"
                    .to_owned()
            }),
            cidrs.find(|cidr| !is_cidr(cidr)).map(|cidr| {
                format!(
                    "{cidr:?} is not a range of addresses: write one like 10.0.0.0/28 or 2001:db8::/64"
                )
            }),
            labels.find(|label| !is_label(label)).map(|label| {
                format!(
                    "{label:?} is not a label: write KEY=VALUE, like kubernetes.io/metadata.name=monitoring"
                )
            }),
        ];
        faults.into_iter().flatten().next().map_or(Ok(()), Err)
    }
}

/// Reads `KEY=VALUE` of a label.
fn is_label(text: &str) -> bool {
    let in_syntax = |text: &str| {
        let mut chars = text.chars();
        !text.is_empty() && chars.all(|char| char.is_ascii_alphanumeric() || "-_./".contains(char))
    };
    let parts = text.split_once('=');
    parts.is_some_and(|(key, value)| in_syntax(key) && in_syntax(value))
}

/// Reads an address with a prefix length.
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

    type Change = fn(&mut ManifestOptions);

    #[test]
    fn refuses_what_cannot_work() {
        let changed = |change: Change| ManifestOptions::default().with(change).check();
        assert_eq!(changed(|_| ()), Ok(()));
        let cases: [(Change, &str); 9] = [
            (
                |o| o.namespace = "Ray".into(),
                "\"Ray\" is not a namespace name",
            ),
            (
                |o| o.only_namespaces = vec!["team-a".into(), "kube-system".into()],
                "namespace \"kube-system\" cannot be selected",
            ),
            (|o| o.image.clear(), "\"\" is not an image reference"),
            (
                |o| o.port = 8080,
                "cannot have port 8080 while probes and metrics have port 8080",
            ),
            (|o| o.port = 443, "cannot have port 443 while"),
            (|o| o.host_network = true, "the kubelet uses port 10250"),
            (|o| o.timeout_seconds = 31, "1 to 30 seconds, not 31"),
            (|o| o.replicas = Some(0), "nothing answers the webhooks"),
            (|o| o.controller_replicas = 0, "nothing scales clusters"),
        ];
        for (change, part) in cases {
            let fault = changed(change).unwrap_err();
            assert!(fault.contains(part), "{fault}");
        }
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
            let fault = options.check().unwrap_err();
            assert!(
                fault.starts_with(&format!("{wrong:?} is not a range")),
                "{fault}"
            );
        }
        for wrong in ["monitoring", "=monitoring", "team=", "team=a b"] {
            let options = ManifestOptions {
                monitoring_namespace_labels: vec![wrong.to_owned()],
                ..ManifestOptions::default()
            };
            let fault = options.check().unwrap_err();
            assert!(
                fault.starts_with(&format!("{wrong:?} is not a label")),
                "{fault}"
            );
        }
        assert_eq!(
            changed(|o| o.api_server_cidrs = vec!["10.0.0.0/28".into(), "2001:db8::/64".into()]),
            Ok(())
        );
    }
}
