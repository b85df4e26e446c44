//! The catalogue of rules and defaults, which `rayfit rules` prints and from which docs/rules.md is
//! generated.

use anstyle::Style;
use serde_json::{Value, json};

use super::json::pretty;
use super::page::{Page, SINCE, coverage, mode_and_version};

const BOLD: Style = Style::new().bold();

/// An aligned table for a terminal.
pub fn text(pages: &[Page]) -> String {
    let width = |cell: fn(&Page) -> &str| pages.iter().map(|page| cell(page).len()).max();
    let ids = width(|page| &page.id).unwrap_or_default();
    let names = width(|page| page.name).unwrap_or_default();
    let modes = width(mode).unwrap_or_default();
    let row = |page: &Page| {
        format!(
            "{BOLD}{:ids$}{BOLD:#}  {:names$}  {:modes$}  {}\n",
            page.id,
            page.name,
            mode(page),
            page.summary,
        )
    };
    pages.iter().map(row).collect()
}

/// The mode, in one word.
fn mode(page: &Page) -> &str {
    page.mode.unwrap_or("default")
}

/// One JSON object per rule or default, in a list.
pub fn json(pages: &[Page]) -> String {
    let titled = |list: &[(&str, String)]| -> Vec<Value> {
        list.iter()
            .map(|(title, text)| json!({"title": title, "text": text}))
            .collect()
    };
    let objects = pages.iter().map(|page| {
        json!({
            "id": page.id,
            "name": page.name,
            "mode": page.mode,
            "cases": page.cases,
            "summary": page.summary,
            "texts": titled(&page.texts),
            "examples": titled(&page.examples),
            "withoutWebhook": {"covered": page.without_webhook.0, "gap": page.without_webhook.1},
            "since": SINCE,
        })
    });
    pretty(&Value::Array(objects.collect()))
}

/// The complete docs/rules.md: a table whose numbers link to the sections after it.
pub fn markdown(pages: &[Page]) -> String {
    let row = |page: &Page| {
        format!(
            // GitHub makes this anchor of a section's heading.
            "| [{}](#{}-{}) | {} | {} | {} |\n",
            page.id,
            page.id.to_lowercase(),
            page.name,
            page.name,
            page.summary.replace('|', "\\|"),
            mode(page),
        )
    };
    let rows: String = pages.iter().map(row).collect();
    let sections: String = pages.iter().map(section).collect();
    format!("{HEAD}\n| | name | what | mode |\n|---|---|---|---|\n{rows}{sections}")
}

const HEAD: &str = "\
# Rules and defaults

This page is generated from the code with `rayfit rules -o markdown`. A rule's mode is the consequence of
its findings where no policy sets another one: `enforce` denies the request, `warn` lets it through with a
warning, `audit` only records it, and `by case` means that it depends on the finding. Defaults (DF) are filled
in at admission where a field is absent. Missing numbers are reserved.
`rayfit explain RF105` shows a section of this page in the terminal.
";

fn section(page: &Page) -> String {
    // Summaries are written for the middle of a sentence.
    let mut summary = page.summary.chars();
    let first = summary.next().into_iter().flat_map(char::to_uppercase);
    let head = format!(
        "\n## {} {}\n\n{}. {}\n\n{}\n",
        page.id,
        page.name,
        first.chain(summary).collect::<String>(),
        mode_and_version(page),
        coverage(page)
    );
    let texts = page.texts.iter();
    let texts = texts.map(|(title, text)| format!("\n**{title}.** {text}\n"));
    let examples = page.examples.iter();
    let examples = examples.map(|(title, yaml)| format!("\n{title}:\n\n```yaml\n{yaml}\n```\n"));
    std::iter::once(head).chain(texts).chain(examples).collect()
}
