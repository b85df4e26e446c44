//! `rayfit check`: the checks of admission, offline.

use std::borrow::Cow;
use std::io::Write as _;
use std::path::PathBuf;

use anyhow::Context as _;
use k8s_openapi::jiff::Timestamp;
use serde_json::Value;

use super::Outcome;
use super::shared::documents::{facts, objects as objects_of};
use super::shared::outcome;
use super::shared::policies::PolicyArgs;
use super::shared::progress::Progress;
use super::shared::settings::SettingsArgs;
use super::shared::source::{self, InputSource};
use crate::facts::Facts;
use crate::judge::{Verdict, ceiling, fold, judge};
use crate::objects::{self, Identity, Item, StoredObjects};
use crate::policy::{Policies, Settings};
use crate::ray::{Group, RayObject};
use crate::report::{FindingsReport, UnreadInput, Unreadable, github, json, sarif, text};
use crate::rules::schema;
use crate::text::shown_text;
use crate::yaml::{self, Document, YamlFault};

/// Check manifests as admission would, without a cluster
///
/// Reads YAML (as kubectl does) and JSON, including files with several documents and lists; searches
/// folders for *.yaml, *.yml and *.json, without what is hidden or listed in a .gitignore; skips objects
/// that are not RayCluster, RayJob, RayService or RayCronJob, and in folders also what cannot be read and
/// names none of these kinds, such as templates of other charts. Applies defaults first, as admission does. What
/// KubeRay made of another Ray object is only audited, as at admission, if it is as an API server stores it, with a
/// UID; in other manifests an owner excuses nothing, because anybody can write it.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  rayfit check raycluster.yaml\n  rayfit check deploy/ -o \
    github\n  rayfit check . --exclude 'charts/*/templates/'\n  helm template my-chart | rayfit check -\n  rayfit check new.yaml --old stored.yaml   \
    # check it as an update\n  rayfit check deploy/ --policy policies.yaml\n  kubectl get \
    rayclusters -A -o json | rayfit check --no-defaults -\n\nExit codes: 0 no object is denied, 1 \
    some object is denied, 2 no \
    object is denied, but some input could not be read."
)]
pub(super) struct CheckCommand {
    /// Files, folders, or - for standard input
    #[arg(required = true, value_name = "FILE|DIR|-")]
    inputs: Vec<PathBuf>,

    /// Leave out files and folders below the folders that are named, by a pattern as in a .gitignore
    #[arg(long, value_name = "GLOB")]
    exclude: Vec<String>,

    /// Format of the findings
    #[arg(short, long, value_enum, default_value_t, value_name = "FORMAT")]
    output: FindingsFormat,

    /// Check the objects without applying Rayfit's defaults first, for objects stored without them
    #[arg(long)]
    no_defaults: bool,

    /// File with the stored objects: an object of the same kind, namespace and name is checked as an
    /// update of the stored one; if only one of the two names a namespace, both are in it
    #[arg(long, value_name = "FILE")]
    old: Option<PathBuf>,

    /// File with facts about the Kubernetes cluster (its version, its nodes), for rules that need them
    #[arg(long, value_name = "FILE")]
    facts: Option<PathBuf>,

    #[command(flatten)]
    policies: PolicyArgs,

    #[command(flatten)]
    settings: SettingsArgs,
}

#[derive(Debug, Clone, Copy, Default, clap::ValueEnum)]
enum FindingsFormat {
    /// For people: the line, why it matters, and how to fix it
    #[default]
    Text,
    /// For programs
    Json,
    /// SARIF 2.1.0, for code scanning services
    Sarif,
    /// Annotations of a pull request, from a GitHub workflow
    Github,
}

impl CheckCommand {
    pub(super) fn run(self) -> anyhow::Result<Outcome> {
        let mut stored = StoredObjects::default();
        if let Some(path) = &self.old {
            objects_of(path)?
                .into_iter()
                .for_each(|object| stored.add(object));
        }
        let circumstances = Circumstances {
            old: stored,
            facts: self
                .facts
                .as_deref()
                .map(facts)
                .transpose()?
                .unwrap_or_default(),
            policies: self.policies.policies()?,
            now: self.policies.now(),
            settings: self.settings.settings(),
            defaults: !self.no_defaults,
            exclude: self.exclude,
        };
        let report = circumstances.check(&self.inputs)?;
        let text = match self.output {
            FindingsFormat::Text => text::render(&report),
            FindingsFormat::Json => json::render(&report),
            FindingsFormat::Sarif => sarif::render(&report),
            FindingsFormat::Github => github::render(&report),
        };
        anstream::stdout().write_all(text.as_bytes())?;
        // After the report, so that a terminal shows the findings together.
        report.remarks.iter().for_each(outcome::warn);
        report.unread.iter().for_each(outcome::complain);
        // A denial counts for more than input that could not be read: a pipeline that acts on 1 must not miss
        // it.
        Ok(match report {
            FindingsReport { tally, .. } if tally.denied > 0 => Outcome::Denied,
            FindingsReport { unread, .. } if !unread.is_empty() => Outcome::Failed,
            _ => Outcome::Clean,
        })
    }
}

/// The settings and facts that manifests are checked with.
struct Circumstances {
    old: StoredObjects,
    facts: Facts,
    policies: Policies,
    now: Timestamp,
    settings: Settings,
    defaults: bool,
    exclude: Vec<String>,
}

impl Circumstances {
    fn check(&self, inputs: &[PathBuf]) -> anyhow::Result<FindingsReport> {
        let mut report = FindingsReport::default();
        let mut sources = Vec::new();
        for input in inputs {
            match source::expand(input, &self.exclude) {
                Ok(files) => sources.extend(files),
                Err(error) => report
                    .unread
                    .push(unread(&input.display().to_string(), &error)),
            }
        }
        let mut progress = Progress::new("checked");
        for (count, source) in sources.iter().enumerate() {
            progress.show(format_args!("{count} of {} files", sources.len()));
            self.source(source, &mut report)?;
        }
        Ok(report)
    }

    fn source(&self, source: &InputSource, report: &mut FindingsReport) -> anyhow::Result<()> {
        let name = source.name();
        let mut unreadable = Vec::new();
        match source.read() {
            Ok(text) => {
                for document in yaml::read(&text) {
                    match document {
                        Ok(document) => self.document((&name, &text), &document, report)?,
                        Err(fault) => unreadable.push(UnreadInput {
                            file: name.clone(),
                            reason: Unreadable::Content(fault),
                        }),
                    }
                }
            }
            Err(error) => unreadable.push(unread(&name, &error)),
        }
        // Folders with charts have templates that are no YAML yet: only a file that was named, or that names a
        // Ray kind, is a fault.
        if !unreadable.is_empty() && source.is_unrelated() {
            report.tally.unrelated += 1;
        } else {
            report.unread.append(&mut unreadable);
        }
        Ok(())
    }

    fn document(
        &self,
        (file, text): (&str, &str),
        document: &Document,
        report: &mut FindingsReport,
    ) -> anyhow::Result<()> {
        let mut remarks = None;
        for Item { pointer, object } in objects::items(&document.value) {
            let Some(parsed) = RayObject::parse(&object) else {
                report.tally.others += 1;
                continue;
            };
            let identity = Identity::of(&parsed);
            let verdict = self.verdict(&object, &identity)?;
            report.add((file, text), (document, &pointer), &identity, &verdict);
            let remarks = remarks.get_or_insert_with(|| document.overwritten.clone());
            remarks.extend(unfilled(&parsed, document, &pointer));
        }
        report.remark(file, remarks.unwrap_or_default());
        Ok(())
    }

    fn verdict(&self, object: &Value, identity: &Identity) -> anyhow::Result<Verdict> {
        let old = match self.old.find(identity) {
            Ok(old) => old,
            Err(count) => {
                outcome::warn(format!(
                    "{identity}: --old has {count} of this name in different namespaces, so it is \
                     checked as a new object; write its namespace"
                ));
                None
            }
        };
        // It is checked in the namespace of the stored object that it changes.
        let mut object = object.clone();
        if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut)
            && let Some(namespace) = old.and_then(|old| old.pointer("/metadata/namespace"))
        {
            let entry = metadata.entry("namespace");
            entry.or_insert_with(|| namespace.clone());
        }
        let object = &object;
        let old = old.and_then(RayObject::parse);
        let admitted = if self.defaults {
            let settings = RayObject::parse(object).map(|parsed| self.settings_for(&parsed));
            let settings = settings.unwrap_or(Cow::Borrowed(&self.settings));
            objects::admitted(object, old.as_ref(), &settings)
                .with_context(|| format!("the defaults cannot be applied to {identity}"))?
        } else {
            objects::received(object)
        };
        let Some(admitted) = RayObject::parse(&admitted) else {
            return Ok(Verdict::default());
        };
        let settings = self.settings_for(&admitted);
        let mut verdict = judge(&admitted, old.as_ref(), None, &self.facts, &settings);
        let ceiling = ceiling(&admitted, None, &settings);
        // Faults because of which the API server drops or refuses fields, without places of which a rule
        // says more.
        let fields = object.as_object();
        let mut written = fields.map_or_else(Vec::new, |fields| {
            schema::find(fields, self.settings.kuberay)
        });
        written.retain(|finding| {
            let mut reported = verdict.findings();
            reported.all(|(_, other)| other.path != finding.path)
        });
        verdict.add(fold(written, &settings, ceiling, |_| false));
        Ok(verdict)
    }

    fn settings_for(&self, object: &RayObject<'_>) -> Cow<'_, Settings> {
        self.policies
            .settings_for(&self.settings, object, &self.facts, self.now)
    }
}

/// The placeholders that stand where a group has a number.
fn unfilled(object: &RayObject<'_>, document: &Document, pointer: &str) -> Vec<YamlFault> {
    let groups = object.cluster.iter().flat_map(|cluster| &cluster.workers);
    let counts = groups.flat_map(|group| {
        ["replicas", "minReplicas", "maxReplicas", "numOfHosts"].map(|key| (group, key))
    });
    let fault = |(group, key): (&Group<'_>, &'static str)| {
        let text = group.spec.get(key)?.as_str()?;
        let place = document.place(&format!("{pointer}{}", group.path().key(key).pointer()));
        Some(YamlFault {
            at: place.span.start,
            reason: format!("{} stands where a number belongs", shown_text(text)),
            remedy: yaml::template_hint(text)?.to_owned(),
        })
    };
    counts.filter_map(fault).collect()
}

fn unread(file: &str, error: &anyhow::Error) -> UnreadInput {
    UnreadInput {
        file: file.to_owned(),
        reason: Unreadable::File(error.to_string()),
    }
}
