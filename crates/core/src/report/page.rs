//! The full description of a rule or default, which `rayfit explain` prints.

use anstyle::Style;

use super::wrap::wrapped;
use crate::defaults::{DEFAULTS, DefaultRule};
use crate::rule_page;
use crate::rules::{OwnMode, RULES, Rule};
use crate::text::nearest;
use crate::vap;

/// The description of a rule or default.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    /// RF105, DF01.
    pub id: String,
    /// The short name, in kebab case.
    pub name: &'static str,
    /// The mode of a rule where no policy sets another one; `None` for a default.
    pub mode: Option<&'static str>,
    /// The cases on which the mode depends, if it does.
    pub cases: Option<&'static str>,
    /// One line for tables.
    pub summary: &'static str,
    /// Titled texts, in reading order.
    pub texts: Vec<(&'static str, String)>,
    /// Titled manifests, in reading order.
    pub examples: Vec<(&'static str, String)>,
    /// The part that the API server can check by itself, and what it cannot (see [`crate::vap`]).
    pub without_webhook: (&'static str, Option<&'static str>),
}

impl From<&Rule> for Page {
    fn from(rule: &Rule) -> Self {
        let (mode, cases) = match rule.mode {
            OwnMode::Always(mode) => (mode.name(), None),
            OwnMode::ByCase(cases) => ("by case", Some(cases)),
        };
        Self {
            id: rule.id.to_string(),
            name: rule.name,
            mode: Some(mode),
            cases,
            summary: rule.summary,
            texts: vec![
                ("What it does", rule_page::what(rule.page)),
                ("Why", rule.why.to_owned()),
                (WITHOUT, rule_page::text(rule.page, WITHOUT)),
            ],
            examples: manifests(rule.page, ["Reported", "Corrected"]),
            without_webhook: rule.cel.coverage(),
        }
    }
}

impl From<&DefaultRule> for Page {
    fn from(default: &DefaultRule) -> Self {
        Self {
            id: default.id.to_string(),
            name: default.name,
            mode: None,
            cases: None,
            summary: default.summary,
            texts: vec![
                ("What it does", rule_page::what(default.page)),
                ("Why", default.why.to_owned()),
            ],
            examples: manifests(default.page, ["Before", "As stored"]),
            without_webhook: if vap::defaults::covers(default.id) {
                ("yes", None)
            } else {
                ("no", None)
            },
        }
    }
}

/// The first release, which has every rule and default: one of a later release needs a version of its own.
pub(super) const SINCE: &str = "0.1.0";

/// The heading above how others behave.
pub(super) const WITHOUT: &str = "Without this rule";

fn manifests(page: &str, headings: [&'static str; 2]) -> Vec<(&'static str, String)> {
    let titled = headings.map(|heading| (heading, rule_page::manifest(page, heading).to_owned()));
    titled.to_vec()
}

/// The pages of all rules, then of all defaults.
pub fn all() -> Vec<Page> {
    let rules = RULES.iter().map(|rule| Page::from(*rule));
    let defaults = DEFAULTS.iter().map(|default| Page::from(*default));
    rules.chain(defaults).collect()
}

/// The page of that number or name, ignoring case.
///
/// # Errors
///
/// Neither a rule nor a default has it; the text says which name is similar.
pub fn find(query: &str) -> Result<Page, String> {
    let pages = all();
    let named =
        |page: &&Page| page.id.eq_ignore_ascii_case(query) || page.name.eq_ignore_ascii_case(query);
    if let Some(page) = pages.iter().find(named) {
        return Ok(page.clone());
    }
    // Numbers are candidates too: a digit is mistyped as easily as a letter.
    let candidates = pages.iter().flat_map(|page| [page.name, page.id.as_str()]);
    Err(match nearest(query, candidates) {
        Some(near) => format!("there is no rule or default \"{query}\"; did you mean {near}?"),
        None => {
            format!("there is no rule or default \"{query}\"; `rayfit rules` lists them all")
        }
    })
}

const WIDTH: usize = 88;
const BOLD: Style = Style::new().bold();

/// The page for a terminal.
pub fn render(page: &Page) -> String {
    let mut parts = vec![
        format!("{BOLD}{} {}{BOLD:#}", page.id, page.name),
        wrapped("", page.summary, WIDTH),
        wrapped("", &mode_and_version(page), WIDTH),
        wrapped("", &coverage(page), WIDTH),
    ];
    for (title, text) in &page.texts {
        parts.push(format!(
            "{BOLD}{title}{BOLD:#}\n{}",
            wrapped("  ", text, WIDTH)
        ));
    }
    for (title, manifest) in &page.examples {
        let indented = manifest.replace('\n', "\n    ");
        parts.push(format!("{BOLD}{title}{BOLD:#}\n    {indented}"));
    }
    parts.join("\n\n") + "\n"
}

/// The part that `rayfit vap` covers: `Without a webhook (rayfit vap): in part. ...`
pub(super) fn coverage(page: &Page) -> String {
    let (covered, gap) = page.without_webhook;
    let gap = gap.map_or_else(String::new, |gap| format!(" {gap}"));
    format!("Without a webhook (`rayfit vap`): {covered}.{gap}")
}

/// `Mode: enforce. Since 0.1.0.`
pub(super) fn mode_and_version(page: &Page) -> String {
    match (page.mode, page.cases) {
        (Some(mode), Some(cases)) => format!("Mode: {mode} ({cases}). Since {SINCE}."),
        (Some(mode), None) => format!("Mode: {mode}. Since {SINCE}."),
        (None, _) => format!("A default, filled in at admission. Since {SINCE}."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_found_by_number_and_name() {
        for query in ["RF105", "rf105", "ippr-start-params", "IPPR-Start-Params"] {
            assert_eq!(find(query).map(|page| page.id), Ok("RF105".to_owned()));
        }
        assert_eq!(find("df04").map(|page| page.name), Ok("ray-sidecar"));
    }

    #[test]
    fn a_typo_gets_a_suggestion() {
        let error = find("ippr-start-parms").unwrap_err();
        assert!(error.contains("did you mean ippr-start-params?"), "{error}");
        let error = find("quite-something-else").unwrap_err();
        assert!(error.contains("rayfit rules"), "{error}");
    }
}
