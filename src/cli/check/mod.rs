//! `rayfit check`: the checks of admission, offline.
//!
//! In: manifests and what policies say. Out: findings, and files in which some of them are mended. Invariant: without
//! `--fix` nothing is written.

mod fixes;

use std::borrow::Cow;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use k8s_openapi::jiff::Timestamp;
use serde_json::Value;

use fixes::{Fixes, Fixing};
use rayfit_core::facts::Facts;
use rayfit_core::finding::Finding;
use rayfit_core::judge::{Verdict, ceiling, fold, judge};
use rayfit_core::objects::{self, Identity, Item, StoredObjects};
use rayfit_core::policy::{Policies, Settings};
use rayfit_core::ray::{Group, RayObject};
use rayfit_core::report::{FindingsReport, UnreadInput, Unreadable, github, json, sarif, text};
use rayfit_core::rules::schema;
use rayfit_core::text::shown_text;
use rayfit_core::yaml::{self, Document, YamlFault};

use super::Outcome;
use super::shared::documents::{facts, objects as objects_of};
use super::shared::outcome;
use super::shared::policies::PolicyArgs;
use super::shared::progress::Progress;
use super::shared::settings::SettingsArgs;
use super::shared::source::{self, InputSource};

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
    github\n  rayfit check . --exclude 'charts/*/templates/'\n  rayfit check deploy/ --fix    # write the mechanical fixes into the files\n  \
    helm template my-chart | rayfit check -\n  rayfit check new.yaml --old stored.yaml   \
    # check it as an update\n  rayfit check deploy/ --policy policies.yaml\n  kubectl get \
    rayclusters -A -o json | rayfit check --no-defaults -\n\nExit codes: 0 no object is denied, 1 \
    some object is denied, 2 no \
    object is denied, but some input could not be read or written; with --fix, of the objects as they are afterwards."
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

    /// Write the fixes that need no decision into the files, and print them as a diff; comments and the order of keys
    /// stay. The text of standard input goes to standard output, and the findings to standard error
    #[arg(long)]
    fix: bool,

    /// Print what --fix would change, and change nothing
    #[arg(long, conflicts_with_all = ["fix", "output"])]
    diff: bool,

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
            facts: facts(self.facts.as_deref())?,
            policies: self.policies.policies()?,
            now: self.policies.now(),
            settings: self.settings.settings(),
            defaults: !self.no_defaults,
            exclude: self.exclude,
            fixing: match (self.fix, self.diff) {
                (true, _) => Fixing::Write,
                (_, true) => Fixing::Show,
                _ => Fixing::Off,
            },
        };
        let (report, fixes) = circumstances.check(&self.inputs)?;
        let text = match self.output {
            FindingsFormat::Text => text::render(&report),
            FindingsFormat::Json => json::render(&report),
            FindingsFormat::Sarif => sarif::render(&report),
            FindingsFormat::Github => github::render(&report),
        };
        let is_text = matches!(self.output, FindingsFormat::Text);
        let (out, aside) = fixes.printed(text, is_text, report.entries.len());
        anstream::stdout().write_all(out.as_bytes())?;
        anstream::stderr().write_all(aside.as_bytes())?;
        // After the report, so that a terminal shows the findings together.
        report.remarks.iter().for_each(outcome::warn);
        report.unread.iter().for_each(outcome::complain);
        // A denial counts for more than input that could not be read: a pipeline that acts on 1 must not miss
        // it.
        Ok(match report {
            FindingsReport { denied: 1.., .. } => Outcome::Denied,
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
    fixing: Fixing,
}

impl Circumstances {
    fn check(&self, inputs: &[PathBuf]) -> anyhow::Result<(FindingsReport, Fixes)> {
        let (mut report, mut fixes) = (FindingsReport::default(), Fixes::new(self.fixing));
        let mut sources = Vec::new();
        for input in inputs {
            match source::expand(input, &self.exclude) {
                Ok(found) => sources.extend(found.into_iter().map(|file| (input.as_path(), file))),
                Err(error) => report
                    .unread
                    .push(unread(&input.display().to_string(), &error)),
            }
        }
        let mut progress = Progress::new("checked");
        for (count, (input, source)) in sources.iter().enumerate() {
            progress.show(format_args!("{count} of {} files", sources.len()));
            self.source((*input, source), &mut report, &mut fixes)?;
        }
        Ok((report, fixes))
    }

    fn source(
        &self,
        (input, source): (&Path, &InputSource),
        report: &mut FindingsReport,
        fixes: &mut Fixes,
    ) -> anyhow::Result<()> {
        let name = source.name();
        let mut unreadable = Vec::new();
        match source.read() {
            Ok(mut text) => {
                if self.fixing != Fixing::Off {
                    let find = |object: &Value| self.find(object);
                    let written = fixes.take((input, source), &mut text, find);
                    let failed = written.map_err(|error| unread(&name, &error)).err();
                    report.unread.extend(failed);
                }
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
            report.unrelated += 1;
        } else {
            report.unread.append(&mut unreadable);
        }
        Ok(())
    }

    /// The findings in an object, for those that are mended.
    fn find(&self, object: &Value) -> Option<Vec<Finding>> {
        let identity = Identity::of(&RayObject::parse(object)?);
        let old = self.old.find(&identity).unwrap_or_default();
        let verdict = self.verdict(object, old).ok()?;
        let findings = verdict.findings().map(|(_, finding)| finding.clone());
        Some(findings.collect())
    }

    fn document(
        &self,
        (file, text): (&str, &str),
        document: &Document,
        report: &mut FindingsReport,
    ) -> anyhow::Result<()> {
        let mut remarks = None;
        for Item { pointer, object } in objects::items(&document.value) {
            let Some(parsed) = RayObject::parse(&*object) else {
                report.others += 1;
                continue;
            };
            let identity = Identity::of(&parsed);
            let old = self.old.find(&identity).unwrap_or_else(|count| {
                outcome::warn(format!(
                    "{identity}: --old has {count} of this name in different namespaces, so it is \
                     checked as a new object; write its namespace"
                ));
                None
            });
            let verdict = self
                .verdict(&object, old)
                .with_context(|| format!("the defaults cannot be applied to {identity}"))?;
            report.add((file, text), (document, &pointer), &identity, &verdict);
            let remarks = remarks.get_or_insert_with(|| document.overwritten.clone());
            remarks.extend(unfilled(&parsed, document, &pointer));
        }
        report.remark(file, remarks.unwrap_or_default());
        Ok(())
    }

    fn verdict(
        &self,
        object: &Value,
        old: Option<&Value>,
    ) -> Result<Verdict, json_patch::PatchError> {
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
            objects::admitted(object, old.as_ref(), &settings)?
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
            schema::find(fields.into(), self.settings.kuberay)
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
