//! The fixes of all files that are checked.

use std::path::Path;

use rayfit_core::finding::Finding;
use rayfit_core::fix::{RefusedFix, fix};
use rayfit_core::report::diff;
use serde_json::Value;

use crate::cli::shared::outcome;
use crate::cli::shared::source::InputSource;

/// The use of fixes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Fixing {
    /// None is made.
    #[default]
    Off,
    /// They are printed.
    Show,
    /// They are written into the files.
    Write,
}

/// The fixes of all files.
#[derive(Debug, Default)]
pub(super) struct Fixes {
    fixing: Fixing,
    diff: String,
    fixed: usize,
    /// The text of standard input.
    piped: Option<String>,
}

impl Fixes {
    pub(super) fn new(fixing: Fixing) -> Self {
        Self {
            fixing,
            ..Self::default()
        }
    }

    /// Fixes the text of a source, and makes it the one that is to be checked.
    pub(super) fn take(
        &mut self,
        (input, source): (&Path, &InputSource),
        text: &mut String,
        find: impl Fn(&Value) -> Option<Vec<Finding>>,
    ) -> anyhow::Result<()> {
        let (name, fixed) = (source.name(), fix(text, find));
        let writes = self.fixing == Fixing::Write;
        if writes && fixed.text != *text {
            source.replace(input, &fixed.text)?;
        }
        self.fixed += fixed.fixed;
        for RefusedFix { rule, at, reason } in fixed.refused {
            let (line, column) = (at.line, at.column);
            outcome::warn(format!(
                "{name}: line {line} column {column}: {rule} is not fixed: {reason}"
            ));
        }
        if writes && *source == InputSource::Stdin {
            self.piped = Some(fixed.text.clone());
        } else {
            let remarks: [&str; 0] = [];
            let diff = diff::render([&name, &name], text, &fixed.text, &remarks);
            self.diff.push_str(&diff);
        }
        if writes {
            *text = fixed.text;
        }
        Ok(())
    }

    /// The texts for standard output and standard error, where `report` says what was found, in so many findings.
    pub(super) fn printed(self, report: String, is_text: bool, found: usize) -> (String, String) {
        let Self { diff, fixed, .. } = self;
        let summary = match self.fixing {
            Fixing::Off => return (report, String::new()),
            Fixing::Show => {
                let left = found.saturating_sub(fixed);
                return (diff, format!("{fixed} would be fixed, {left} left\n"));
            }
            Fixing::Write => format!("{fixed} fixed, {found} left\n"),
        };
        match self.piped {
            Some(piped) => (piped, diff + &report + &summary),
            None if is_text => (diff + &report + &summary, String::new()),
            None => (report, diff + &summary),
        }
    }
}
