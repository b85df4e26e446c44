//! The settings with which objects are checked and defaulted, as flags that several commands share.

use rayfit_core::policy::resource::Defaults;
use rayfit_core::policy::settings::{IMAGE, KUBERAY, KUBERAY_OPERATOR};
use rayfit_core::policy::{Mode, Settings};
use rayfit_core::ray::RayVersion;
use rayfit_core::ray::feature_gate::{GateSetting, gate_setting};
use rayfit_core::rule_id::RuleId;
use rayfit_core::rules;

/// Flags that change how objects are checked and defaulted.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Rules and defaults")]
pub struct SettingsArgs {
    /// Mode of one rule where no policy sets it: off, audit, warn or enforce; can be repeated
    ///
    /// Example: --rule RF213=off --rule RF214=warn
    #[arg(long = "rule", value_name = "ID=MODE", value_parser = rule_and_mode)]
    rules: Vec<(RuleId, Mode)>,

    /// The user that KubeRay's operator runs as; can be repeated
    ///
    /// The clusters that it creates for a RayJob or RayService were checked with that object and are
    /// not checked again. Where the default is left, `rayfit serve` takes the accounts from KubeRay's
    /// `ClusterRoleBinding` kuberay-operator, if there is one.
    #[arg(long = "operator-user", value_name = "USER", default_value = KUBERAY_OPERATOR)]
    operators: Vec<String>,

    /// The version of KubeRay, for rules that differ between its versions
    #[arg(long = "kuberay-version", value_name = "VERSION", default_value_t = KUBERAY)]
    kuberay: RayVersion,

    /// Feature gates of KubeRay's operator that differ from the defaults of its version
    ///
    /// As its flag --feature-gates, for example RayClusterMTLS=true,RayJobDeletionPolicy=false.
    #[arg(long, value_name = "NAME=BOOL", value_parser = gate_setting, value_delimiter = ',')]
    kuberay_feature_gates: Vec<GateSetting>,

    /// Rayfit's image, for clusters in the modes central and sidecar
    #[arg(long, value_name = "IMAGE", default_value = IMAGE)]
    image: String,

    /// Set num-cpus of heads to "0" where it is absent, so that no tasks run there
    #[arg(long)]
    head_takes_no_work: bool,
}

impl SettingsArgs {
    /// The settings that the flags ask for.
    pub fn settings(self) -> Settings {
        let mut settings = Settings {
            operators: self.operators,
            kuberay: self.kuberay,
            feature_gates: self.kuberay_feature_gates,
            defaults: Defaults::of_flags(self.image, self.head_takes_no_work),
            ..Settings::default()
        };
        for (rule, mode) in self.rules {
            settings.modes.set(rule, mode);
        }
        settings
    }
}

/// Reads `RF213=off`.
pub(in crate::cli) fn rule_and_mode(
    text: &str,
) -> Result<(RuleId, Mode), Box<dyn std::error::Error + Send + Sync>> {
    let (rule, mode) = text
        .split_once('=')
        .ok_or("write a rule and a mode, like RF213=off")?;
    let id: RuleId = rule.trim().parse()?;
    // A mode for a rule that does not exist would change nothing, and nobody would notice.
    rules::find(id).ok_or_else(|| RuleId::unknown(rule))?;
    Ok((id, mode.trim().parse()?))
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use rayfit_core::ray::feature_gate::{MUTUAL_TLS, NETWORK_POLICY};

    use super::*;

    #[derive(Debug, Parser)]
    struct Flags {
        #[command(flatten)]
        settings: SettingsArgs,
    }

    fn read(flags: &[&str]) -> Result<Settings, String> {
        Flags::try_parse_from([&["rayfit"], flags].concat())
            .map(|flags| flags.settings.settings())
            .map_err(|error| error.to_string())
    }

    #[test]
    fn without_flags_the_defaults_hold() {
        assert_eq!(read(&[]), Ok(Settings::default()));
    }

    #[test]
    fn flags_change_the_settings() {
        let flags = "--rule RF105=off --rule rf105=Warn \
                     --operator-user me --kuberay-version 1.8 --kuberay-feature-gates RayClusterMTLS=true --image x:1 --head-takes-no-work";
        let settings = read(&flags.split_whitespace().collect::<Vec<_>>()).unwrap();
        assert_eq!(settings.modes.get(RuleId(105)), Some(Mode::Warn));
        assert_eq!(settings.operators, ["me"]);
        assert_eq!(settings.kuberay, RayVersion::new(1, 8, 0));
        assert!(settings.has_gate(&MUTUAL_TLS) && !settings.has_gate(&NETWORK_POLICY));
        assert_eq!(settings.image(), "x:1");
        assert_eq!(settings.defaults.head_takes_no_work, Some(true));
    }

    #[test]
    fn wrong_flags_say_what_to_write() {
        for (flag, hint) in [
            ("--rule=RF105", "like RF213=off"),
            ("--rule=RF999=off", "rayfit rules"),
            ("--rule=RF105=loud", "write off, audit, warn or enforce"),
            (
                "--kuberay-feature-gates=RayClusterMtls=true",
                "RayClusterMTLS,",
            ),
        ] {
            let error = read(&[flag]).unwrap_err();
            assert!(error.contains(hint), "{flag}: {error}");
        }
    }
}
