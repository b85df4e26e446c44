//! The page of a rule or a default, in Markdown: a file beside its code.

/// A page: a text, then sections with headings, each with a further text or with a manifest (YAML).
#[derive(Debug, Clone, Copy)]
pub struct RulePage(pub &'static str);

impl RulePage {
    /// The text before the first heading: what is checked or filled in.
    pub fn what(self) -> String {
        joined(self.0.split("\n## ").next().unwrap_or_default())
    }

    /// The text below a heading; empty if there is no such heading.
    pub fn text(self, heading: &str) -> String {
        joined(self.section(heading))
    }

    /// The manifest below a heading; empty if there is no such heading.
    pub fn manifest(self, heading: &str) -> &'static str {
        let fenced = self.section(heading).trim();
        let begun = fenced.strip_prefix("```yaml\n").unwrap_or_default();
        begun.strip_suffix("\n```").unwrap_or_default()
    }

    fn section(self, heading: &str) -> &'static str {
        let sections = self.0.split("\n## ").skip(1);
        let mut titled = sections.filter_map(|section| section.split_once('\n'));
        let found = titled.find(|(title, _)| *title == heading);
        found.map_or("", |(_, section)| section)
    }
}

/// A text in one line, however it is wrapped in its file.
fn joined(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
