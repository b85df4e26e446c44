//! The object audit as one HTML page, to read and to send: it has no script and loads nothing.

use std::fmt::Write as _;

use crate::object_audit::table::shown;
use crate::object_audit::{AuditTally, AuditedObject};
use crate::report::html::{document, escaped};
use crate::rules;

/// The page. `title` says which objects were audited, and when.
pub fn html(judged: &[AuditedObject], title: &str) -> String {
    let tally = AuditTally::of(judged);
    let mut out = format!(
        "<p>{} Ray objects: <b>{}</b> would be denied if they were created now, <b>{}</b> more if \
         everything were enforced.</p>\n",
        tally.objects, tally.denied, tally.would_deny
    );
    out.push_str(
        "<table><thead><tr><th>Rule</th><th>What</th><th class=\"n\">Denied</th>\
         <th class=\"n\">Warned</th><th class=\"n\">Recorded</th><th class=\"n\">Exempt</th>\
         <th class=\"n\">Would be denied</th></tr></thead><tbody>\n",
    );
    for (rule, counts) in &tally.rules {
        let summary = rules::find(*rule).map_or("", |rule| rule.summary);
        let _ = writeln!(
            out,
            "<tr><td><a href=\"#{rule}\">{rule}</a></td><td>{}</td><td class=\"n\">{}</td>\
             <td class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"n hot\">{}</td></tr>",
            escaped(summary),
            counts.denied,
            counts.warned,
            counts.audited,
            counts.exempt,
            counts.would_deny
        );
    }
    out.push_str("</tbody></table>\n");
    for rule in tally.rules.keys() {
        let (name, why) = rules::find(*rule).map_or(("", ""), |rule| (rule.name, rule.why));
        let _ = writeln!(
            out,
            "<h2 id=\"{rule}\">{rule} {}</h2><p>{}</p>",
            escaped(name),
            escaped(why)
        );
        for judged in judged {
            let findings = judged.findings.iter();
            let mut of_rule = findings.filter(|finding| finding.rule == *rule).peekable();
            if of_rule.peek().is_none() {
                continue;
            }
            // Names and messages are of objects that anybody may write.
            let object = escaped(&judged.object.to_string());
            let _ = write!(out, "<details><summary>{object}</summary><ul>");
            for finding in of_rule {
                let mode = if finding.exempt {
                    "exempt"
                } else {
                    shown(finding.mode)
                };
                let message = escaped(&finding.message);
                let _ = write!(out, "<li>{mode}: <code>{message}</code></li>");
            }
            out.push_str("</ul></details>\n");
        }
    }
    document(title, "", &out)
}

#[cfg(test)]
mod tests {
    use crate::object_audit::page::*;

    #[test]
    fn names_cannot_become_markup() {
        let page = html(&[], "<script>");
        assert!(!page.contains("<script>") && page.contains("&lt;script&gt;"));
    }
}
