//! The rules, one documented unit each, and the registry that everything is made from: webhook
//! messages, `rayfit explain` and `rayfit rules`, the documentation page, SARIF and the tests.
//!
//! A rule is a pure function of a [`Subject`]: the object, the old object if it is an update, the
//! cluster facts that are known, and the settings. It never fails; it reports [`Finding`]s.
//! To add one: write its file in the family's folder (a `RULE` and a `check`), list it in
//! [`RULES`], add fixtures under `tests/fixtures/rules/<ID>/`.

pub mod autoscaling;
mod cel;
pub mod changes;
pub mod guards;
pub mod ippr;
pub mod limits;
mod subject;

pub use cel::{Cel, Check, Each, PLAIN};
pub use subject::Subject;

use crate::finding::Finding;
use crate::path::FieldPath;
use crate::policy::Mode;
use crate::rule_id::RuleId;

/// The mode of a rule where no policy says otherwise.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OwnMode {
    /// The same for every finding.
    Always(Mode),
    /// It depends; the text says on what. Each finding sets its mode itself.
    ByCase(&'static str),
}

/// A rule: what it is, for people, and how it is checked.
#[derive(Debug)]
pub struct Rule {
    /// The stable number.
    pub id: RuleId,
    /// The stable short name, in kebab case.
    pub name: &'static str,
    /// The mode where no policy says otherwise.
    pub mode: OwnMode,
    /// One line for tables.
    pub summary: &'static str,
    /// What is looked at and what is reported.
    pub what: &'static str,
    /// What happens because of it: the sentence that findings carry as their reason.
    pub why: &'static str,
    /// A manifest (YAML) with a finding; only what matters is in it.
    pub bad: &'static str,
    /// The same manifest, mended.
    pub good: &'static str,
    /// How Ray, KubeRay or Kubernetes behaves without the rule, with the source of the fact.
    pub without: &'static str,
    /// The first release that has it.
    pub since: &'static str,
    /// What of it the API server can judge by itself.
    pub cel: Cel,
    /// Reports what it finds.
    pub check: fn(&Subject<'_>, &mut Findings),
}

impl Rule {
    /// A finding of this rule: what is wrong at `path` and what to write instead. Mode and reason
    /// are the rule's own (Enforce where the rule goes by case) until changed.
    pub fn finding(
        &self,
        path: FieldPath,
        problem: impl Into<String>,
        fix: impl Into<String>,
    ) -> Finding {
        Finding {
            rule: self.id,
            mode: match self.mode {
                OwnMode::Always(mode) => mode,
                OwnMode::ByCase(_) => Mode::Enforce,
            },
            path,
            value: None,
            problem: problem.into(),
            why: self.why.to_owned(),
            fix: fix.into(),
            decided: None,
        }
    }
}

impl Finding {
    /// With the offending value, as it is to be shown and compared.
    #[must_use]
    pub fn valued(mut self, value: impl Into<String>) -> Self {
        self.value = Some(value.into());
        self
    }

    /// With another mode than the rule's own.
    #[must_use]
    pub fn in_mode(mut self, mode: Mode) -> Self {
        self.mode = mode;
        self
    }

    /// With another reason than the rule's own.
    #[must_use]
    pub fn because(mut self, why: impl Into<String>) -> Self {
        self.why = why.into();
        self
    }
}

/// What the rules found, in the order of the rules and of the object.
#[derive(Debug, Default)]
pub struct Findings(Vec<Finding>);

impl Findings {
    /// Adds one.
    pub fn add(&mut self, finding: Finding) {
        self.0.push(finding);
    }

    /// All of them.
    pub fn into_vec(self) -> Vec<Finding> {
        self.0
    }
}

/// Every rule, by number.
pub static RULES: &[&Rule] = &[
    &ippr::schema::RULE,
    &ippr::unknown_key::RULE,
    &ippr::unknown_group::RULE,
    &ippr::invalid_limit::RULE,
    &ippr::start_params::RULE,
    &ippr::group_resources::RULE,
    &ippr::no_requests::RULE,
    &ippr::resize_policy::RULE,
    &ippr::cap_below_size::RULE,
    &ippr::nothing_to_gain::RULE,
    &ippr::autoscaling_off::RULE,
    &ippr::autoscaler_version::RULE,
    &ippr::ray_version::RULE,
    &ippr::kubernetes_version::RULE,
    &ippr::cap_above_nodes::RULE,
    &ippr::cron_job::RULE,
    &ippr::limit_range::RULE,
    &autoscaling::replica_bounds::RULE,
    &autoscaling::group_name::RULE,
    &autoscaling::cpu_unknown::RULE,
    &autoscaling::start_param_integer::RULE,
    &autoscaling::start_param_resources::RULE,
    &autoscaling::two_sources::RULE,
    &autoscaling::labels_in_start_params::RULE,
    &autoscaling::restart_policy::RULE,
    &autoscaling::version_conflict::RULE,
    &autoscaling::needs_v2::RULE,
    &autoscaling::start_command_env::RULE,
    &autoscaling::group_suspend::RULE,
    &autoscaling::max_unbounded::RULE,
    &autoscaling::head_takes_work::RULE,
    &autoscaling::gpu_mismatch::RULE,
    &autoscaling::memory_request_only::RULE,
    &autoscaling::sidecar_resources::RULE,
    &autoscaling::sidecar_version::RULE,
    &autoscaling::kueue_managed::RULE,
    &autoscaling::job_deletion_policy::RULE,
    &autoscaling::idle_timeout::RULE,
    &autoscaling::group_labels::RULE,
    &autoscaling::custom_command::RULE,
    &autoscaling::name_length::RULE,
    &autoscaling::start_param_type::RULE,
    &autoscaling::no_worker_groups::RULE,
    &autoscaling::group_resources_quantity::RULE,
    &autoscaling::priority_ray_version::RULE,
    &autoscaling::no_container::RULE,
    &autoscaling::no_spec::RULE,
    &autoscaling::tpu_topology::RULE,
    &changes::max_lowered::RULE,
    &changes::group_removed::RULE,
    &changes::cap_lowered::RULE,
    &changes::mode_changed::RULE,
    &changes::scaling_overwritten::RULE,
    &changes::restarts_pods::RULE,
    &guards::resize_by_others::RULE,
    &guards::reconcile_invalid::RULE,
    &limits::workers_per_cluster::RULE,
    &limits::workers_per_group::RULE,
    &limits::pod_size::RULE,
    &limits::gpus_per_cluster::RULE,
    &limits::idle_timeout::RULE,
    &limits::cluster_size::RULE,
];

/// The rule of that number.
pub fn find(id: RuleId) -> Option<&'static Rule> {
    RULES.iter().copied().find(|rule| rule.id == id)
}

/// Everything that the rules find in `subject`. Rules that the settings turn off are not run.
pub fn run(subject: &Subject<'_>) -> Vec<Finding> {
    let mut findings = Findings::default();
    for rule in RULES {
        if !subject.settings.modes.is_off(rule.id) {
            (rule.check)(subject, &mut findings);
        }
    }
    findings.into_vec()
}
