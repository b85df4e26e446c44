//! `rayfit default`: the object as admission would store it.

use std::path::PathBuf;

use anyhow::Context as _;
use rayfit_core::defaults::AppliedValue;
use rayfit_core::facts::Facts;
use rayfit_core::objects::{self, Item};
use rayfit_core::policy::Settings;
use rayfit_core::ray::RayObject;
use rayfit_core::report::diff;
use rayfit_core::report::json::pretty;
use rayfit_core::yaml;
use serde_json::Value;

use super::Outcome;
use super::shared::documents::unread;
use super::shared::outcome;
use super::shared::policies::PolicyArgs;
use super::shared::settings::SettingsArgs;
use super::shared::source;

/// Print the objects of a manifest as admission would store them
///
/// Prints YAML for YAML and JSON for JSON, with every object and document; objects that are not Ray
/// objects are unchanged. Keys keep their order, but comments, anchors and quoting style are lost.
/// With --diff it prints only what changes, and why.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    rayfit default raycluster.yaml --diff\n  \
    rayfit default raycluster.yaml | kubectl apply -f -\n  \
    kustomize build . | rayfit default - > stored.yaml")]
pub(super) struct DefaultCommand {
    /// A file, or - for standard input
    #[arg(value_name = "FILE|-")]
    input: PathBuf,

    /// Print only what changes, as a unified diff, and which default changed it
    #[arg(long)]
    diff: bool,

    #[command(flatten)]
    policies: PolicyArgs,

    #[command(flatten)]
    settings: SettingsArgs,
}

impl DefaultCommand {
    pub(super) fn run(self) -> anyhow::Result<Outcome> {
        let source = source::single(&self.input);
        let name = source.name();
        let text = source.read().with_context(|| name.clone())?;
        let (policies, now) = (self.policies.policies()?, self.policies.now());
        let base = self.settings.settings();
        let facts = Facts::default();
        let settings = |object: &RayObject<'_>| {
            policies
                .settings_for(&base, object, &facts, now)
                .into_owned()
        };
        // Whoever pipes JSON through the command goes on with JSON.
        let is_json = text.trim_start().starts_with(['{', '[']);
        let write: fn(&Value) -> String = if is_json { pretty } else { yaml::write };
        let mut out = String::new();
        for (index, document) in yaml::read(&text).into_iter().enumerate() {
            let document = document.map_err(|fault| unread(&name, fault))?;
            // Of a key that occurs twice the output has one value, so whoever pipes it on would not notice.
            let remarks = document.overwritten.into_iter();
            remarks.for_each(|fault| outcome::warn(unread(&name, fault)));
            let original = document.value;
            let (result, applied) =
                defaulted(&original, &settings).with_context(|| name.clone())?;
            if self.diff {
                out.push_str(&diff::render(
                    [&name, &format!("{name} (as stored)")],
                    &write(&original),
                    &write(&result),
                    &applied,
                ));
            } else {
                out.push_str(if index > 0 && !is_json { "---\n" } else { "" });
                out.push_str(&write(&result));
            }
        }
        outcome::print(&out)
    }
}

/// A document with the defaults of every Ray object in it.
fn defaulted(
    document: &Value,
    settings: &impl Fn(&RayObject<'_>) -> Settings,
) -> anyhow::Result<(Value, Vec<AppliedValue>)> {
    let mut result = document.clone();
    let mut all = Vec::new();
    for Item { pointer, object } in objects::items(document) {
        let Some(parsed) = RayObject::parse(&*object) else {
            continue;
        };
        let (defaulted, applied) = objects::defaulted(&object, &settings(&parsed))
            .context("the defaults cannot be applied to the object")?;
        if let (Some(place), false) = (result.pointer_mut(&pointer), applied.is_empty()) {
            *place = defaulted;
        }
        all.extend(applied);
    }
    Ok((result, all))
}
