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
pub mod kuberay;
pub mod limits;
pub mod prelude;
mod rule;
pub mod schema;
mod shared;
mod subject;

pub use prelude::*;

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
    &ippr::limit_below_size::RULE,
    &ippr::nothing_to_gain::RULE,
    &ippr::autoscaling_off::RULE,
    &ippr::autoscaler_version::RULE,
    &ippr::ray_version::RULE,
    &ippr::kubernetes_version::RULE,
    &ippr::limit_above_nodes::RULE,
    &ippr::cron_job::RULE,
    &ippr::limit_range::RULE,
    &ippr::limit_above_pod::RULE,
    &ippr::memory_monitor::RULE,
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
    &autoscaling::graceful_end::RULE,
    &autoscaling::gang_scheduling::RULE,
    &autoscaling::container_resources::RULE,
    &autoscaling::ray_container::RULE,
    &autoscaling::uncounted_devices::RULE,
    &autoscaling::unread_fields::RULE,
    &autoscaling::pull_secret::RULE,
    &autoscaling::head_architecture::RULE,
    &autoscaling::network_policy::RULE,
    &changes::max_lowered::RULE,
    &changes::group_removed::RULE,
    &changes::limit_lowered::RULE,
    &changes::mode_changed::RULE,
    &changes::scaling_overwritten::RULE,
    &changes::restarts_pods::RULE,
    &changes::edit_without_effect::RULE,
    &guards::resize_by_others::RULE,
    &guards::reconcile_invalid::RULE,
    &limits::workers_per_cluster::RULE,
    &limits::workers_per_group::RULE,
    &limits::pod_size::RULE,
    &limits::gpus_per_cluster::RULE,
    &limits::idle_timeout::RULE,
    &limits::cluster_size::RULE,
    &schema::unknown_field::RULE,
    &schema::refused_value::RULE,
    &kuberay::gcs_fault_tolerance::RULE,
    &kuberay::authentication::RULE,
    &kuberay::cluster_upgrade::RULE,
    &kuberay::job_settings::RULE,
    &kuberay::job_deletion::RULE,
    &kuberay::service_settings::RULE,
    &kuberay::cron_schedule::RULE,
    &kuberay::feature_gate::RULE,
];

/// The rule of that number.
pub fn find(id: RuleId) -> Option<&'static Rule> {
    RULES.iter().copied().find(|rule| rule.id == id)
}

/// Everything that the rules find in `subject`. Rules that the settings turn off are not run.
pub fn run(subject: &Subject<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for rule in RULES {
        if !subject.settings.modes.is_off(rule.id) {
            (rule.check)(subject, &mut findings);
        }
    }
    findings
}
