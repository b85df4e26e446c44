//! The page of a rule or a default, in Markdown: a file beside its code. It is a text, then sections with headings, each
//! with a further text or with a manifest (YAML).

/// The text before the first heading: what is checked or filled in.
pub fn what(page: &str) -> String {
    joined(page.split("\n## ").next().unwrap_or_default())
}

/// The text below a heading; empty if there is no such heading.
pub fn text(page: &str, heading: &str) -> String {
    joined(section(page, heading))
}

/// The manifest below a heading; empty if there is no such heading.
pub fn manifest<'a>(page: &'a str, heading: &str) -> &'a str {
    let fenced = section(page, heading).trim();
    let begun = fenced.strip_prefix("```yaml\n").unwrap_or_default();
    begun.strip_suffix("\n```").unwrap_or_default()
}

fn section<'a>(page: &'a str, heading: &str) -> &'a str {
    let sections = page.split("\n## ").skip(1);
    let mut titled = sections.filter_map(|section| section.split_once('\n'));
    let found = titled.find(|(title, _)| *title == heading);
    found.map_or("", |(_, section)| section)
}

/// A text in one line, however it is wrapped in its file.
fn joined(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
