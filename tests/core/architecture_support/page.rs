//! The names of modules on a page: in its drawings, and in backticks.

use std::collections::BTreeSet;

/// What a page names, as far as it is written like a module (`plan`) or a path of modules
/// (`plan/packing`).
#[derive(Debug, Default)]
pub(crate) struct Names {
    /// Words in its mermaid drawings.
    pub(crate) drawn: BTreeSet<String>,
    /// What stands in backticks.
    pub(crate) quoted: BTreeSet<String>,
}

impl Names {
    /// Reads a page.
    pub(crate) fn of(page: &str) -> Self {
        let mut names = Self::default();
        let mut fence = None;
        for line in page.lines() {
            let mark = line.trim_start().strip_prefix("```");
            match (mark, fence) {
                (Some(language), None) => fence = Some(language.trim()),
                (Some(_), Some(_)) => fence = None,
                (None, Some("mermaid")) => names.drawn.extend(words(line)),
                (None, Some(_)) => {}
                (None, None) => {
                    let quoted = line.split('`').skip(1).step_by(2);
                    names.quoted.extend(quoted.filter_map(name));
                }
            }
        }
        names
    }
}

/// The words of a line of a drawing. What stands around them is the drawing's own: `a["plan"] --> b`.
fn words(line: &str) -> impl Iterator<Item = String> {
    line.split(|letter: char| letter.is_whitespace() || "[](){}<>\"'|;:,&".contains(letter))
        .filter_map(name)
}

/// The word as a module, or as a path of modules.
fn name(word: &str) -> Option<String> {
    let word = word.strip_prefix("crates/core/").unwrap_or(word);
    let word = word.strip_prefix("src/").unwrap_or(word);
    let word = word.strip_suffix('/').unwrap_or(word);
    let is_module = |part: &str| {
        part.starts_with(|first: char| first.is_ascii_lowercase())
            && part.chars().all(|letter| {
                letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '_'
            })
    };
    word.split('/').all(is_module).then(|| word.to_owned())
}

#[test]
fn names_stand_in_drawings_and_in_backticks() {
    let page = "A `plan/packing/`, `crates/core/src/ray` and `ray.io/x`, no word/other.\n\
                ```mermaid\nflowchart\n  a[\"reconcile/effects: the<br/>\"] --> gcs\n```\n\
                ```sh\nrun x/y\n```\n";
    let names = Names::of(page);
    let listed = |names: &BTreeSet<String>| names.iter().cloned().collect::<Vec<_>>().join(" ");
    assert_eq!(
        listed(&names.drawn),
        "a br flowchart gcs reconcile/effects the"
    );
    assert_eq!(listed(&names.quoted), "plan/packing ray");
}
