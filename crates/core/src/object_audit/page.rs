//! The report of `rayfit rollout` as one HTML page, to send to teams. Its script shows the report that lies in it as
//! JSON, and loads nothing.

use serde_json::Value;

use crate::report::html::{document, escaped};
use crate::text::is_obeyed;

/// The most bytes of objects with findings: mail takes such an attachment, and browsers show it at once.
const MOST_BYTES: usize = 8 << 20;

/// The most findings that are shown of those that are gone.
const MOST_GONE: usize = 1000;

/// The page of a report, which has as many objects as there is room for.
pub fn html(mut report: Value, title: &str) -> String {
    let lead = format!(
        "{} Ray objects: {} would be denied if they were created now, {} more if everything were enforced.",
        report["objects"], report["denied"], report["wouldDeny"]
    );
    // Programs read these; the page shows the same otherwise.
    for rule in report["rules"].as_array_mut().into_iter().flatten() {
        rule["objects"].take();
    }
    if let Some(gone) = report
        .pointer_mut("/earlier/gone")
        .and_then(Value::as_array_mut)
    {
        gone.truncate(MOST_GONE);
    }
    let mut room = MOST_BYTES;
    let mut left_out = 0;
    if let Some(objects) = report["findings"].as_array_mut() {
        let all = objects.len();
        objects.retain_mut(|object| {
            for finding in object["findings"].as_array_mut().into_iter().flatten() {
                finding["message"].take();
            }
            let size = object.to_string().len();
            let fits = size <= room;
            room -= if fits { size } else { 0 };
            fits
        });
        left_out = all - objects.len();
    }
    report["leftOut"] = left_out.into();
    // Nothing in the text ends its element, and nothing turns the direction of the text around it.
    let data = report.to_string().replace(is_obeyed, "\u{fffd}");
    let data = data.replace('<', "\\u003c");
    let body = include_str!("page.html").replace("{lead}", &escaped(&lead));
    let body = body.replace("{report}", &data);
    document(
        title,
        include_str!("page.css"),
        &body,
        include_str!("page.js"),
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn page(objects: &[Value]) -> String {
        let count = objects.len();
        let report = json!({"objects": count, "denied": 1, "wouldDeny": 0, "findings": objects});
        html(report, "<title>")
    }

    #[test]
    fn names_cannot_become_markup() {
        let name = "</script><script>alert(1)</script>\u{202e}{report}";
        let page = page(&[json!({"name": name})]);
        assert_eq!(page.matches("</script>").count(), 2, "{page}");
        assert!(!page.contains("alert(1)</") && !page.contains('\u{202e}'));
        let data = page.split("type=\"application/json\">").nth(1).unwrap();
        let data: Value = serde_json::from_str(data.split("</script>").next().unwrap()).unwrap();
        assert_eq!(
            data["findings"][0]["name"],
            name.replace('\u{202e}', "\u{fffd}")
        );
    }

    #[test]
    fn pages_are_bounded_and_say_what_is_left_out() {
        let large = json!({"name": "x".repeat(1 << 20)});
        let page = page(&vec![large; 12]);
        assert!(page.len() < MOST_BYTES + (1 << 20), "{}", page.len());
        assert!(page.contains("\"leftOut\":5"));
    }
}
