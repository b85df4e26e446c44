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
