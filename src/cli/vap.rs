//! `rayfit vap`: the rules as ValidatingAdmissionPolicies, for clusters without webhooks.

use rayfit_core::manifests::{FailurePolicy, to_yaml};
use rayfit_core::policy::settings::KUBERAY_OPERATOR;
use rayfit_core::policy::{Mode, Settings};
use rayfit_core::rule_id::RuleId;
use rayfit_core::vap::{self, VapOptions};

use super::Outcome;
use super::shared::outcome;
use super::shared::settings::rule_and_mode;

/// Print the rules as ValidatingAdmissionPolicies
///
/// For Kubernetes clusters that do not allow webhooks: the API server itself checks Ray objects. Needs
/// Kubernetes 1.30 or later. `rayfit rules -o json` and docs/rules.md say how much of each rule it checks.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    rayfit vap | kubectl apply --server-side -f -\n  \
    rayfit vap --defaults --rule RF213=off > rayfit-policies.yaml\n  \
    rayfit vap --only-namespace team-a | kubectl apply --server-side -f -\n  \
    rayfit vap --defaults | kubectl delete --ignore-not-found -f -   (uninstall)")]
pub(super) struct VapCommand {
    /// Mode of one rule: off, audit, warn or enforce; can be repeated
    #[arg(long = "rule", value_name = "ID=MODE", value_parser = rule_and_mode)]
    rules: Vec<(RuleId, Mode)>,

    /// Also fill in requests and resize policy of groups that grow in place (DF01, DF02)
    ///
    /// As MutatingAdmissionPolicies, which need Kubernetes 1.36 or later.
    #[arg(long)]
    defaults: bool,

    /// Refuse objects that are too large for the expressions, instead of storing them without validation
    #[arg(long)]
    fail_closed: bool,

    /// Exclude this namespace, besides kube-system; can be repeated
    #[arg(long = "exclude-namespace", value_name = "NAME")]
    excluded_namespaces: Vec<String>,

    /// Check Ray objects in this namespace only; can be repeated
    #[arg(long = "only-namespace", value_name = "NAME")]
    only_namespaces: Vec<String>,

    /// The user that KubeRay's operator runs as; can be repeated
    ///
    /// `kubectl get clusterrolebinding kuberay-operator -o yaml` shows its account.
    #[arg(long = "operator-user", value_name = "USER", default_value = KUBERAY_OPERATOR)]
    operators: Vec<String>,
}

impl VapCommand {
    pub(super) fn run(self) -> anyhow::Result<Outcome> {
        let mut settings = Settings {
            operators: self.operators,
            ..Settings::default()
        };
        for (rule, mode) in self.rules {
            settings.modes.set(rule, mode);
        }
        let options = VapOptions {
            settings,
            failure_policy: if self.fail_closed {
                FailurePolicy::Closed
            } else {
                FailurePolicy::Open
            },
            excluded_namespaces: self.excluded_namespaces,
            only_namespaces: self.only_namespaces,
            defaults: self.defaults,
        };
        outcome::print(&to_yaml(&vap::objects(&options)))
    }
}
