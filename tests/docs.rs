//! What is generated from the code is what the code would generate.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::path::Path;

use rayfit::report::{catalogue, page};

fn read(file: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(file);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

#[test]
fn the_page_of_rules_is_up_to_date() {
    assert!(
        read("docs/rules.md") == catalogue::markdown(&page::all()),
        "docs/rules.md has drifted: cargo run -- rules -o markdown > docs/rules.md"
    );
}

#[test]
fn every_row_of_the_table_leads_to_a_section() {
    let pages = page::all();
    let text = catalogue::markdown(&pages);
    for page in &pages {
        let heading = format!("\n## {} {}\n", page.id, page.name);
        let link = format!("(#{}-{})", page.id.to_lowercase(), page.name);
        assert!(text.contains(&heading), "{heading}");
        assert!(text.contains(&link), "{link}");
    }
}

/// The README holds the table between two comments, so that the text around it is free.
#[test]
fn the_table_in_the_readme_is_up_to_date() {
    const BEGIN: &str = "<!-- rules: rayfit rules -o markdown-table -->\n";
    const END: &str = "<!-- /rules -->";
    let readme = read("README.md");
    let table = readme
        .split_once(BEGIN)
        .and_then(|(_, rest)| rest.split_once(END))
        .map(|(table, _)| table)
        .expect("README.md has the table of rules between its two comments");
    assert!(
        table == catalogue::markdown_table(&page::all(), "docs/rules.md"),
        "the table in README.md has drifted: paste the output of cargo run -- rules -o markdown-table"
    );
}
