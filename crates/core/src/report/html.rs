//! The frame of a page that stands alone: it loads nothing, and runs no script but its own.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use ring::digest::{SHA256, digest};

/// The colours: light or dark as the reader's screen is, and light on paper.
pub const COLOURS: &str = ":root{color-scheme:light dark;--text:#222;--ground:#fff;--faint:#666;\
    --line:#ddd;--hot:#a00;--link:#0b57b0}\
    @media screen and (prefers-color-scheme:dark){:root{--text:#e4e4e4;--ground:#16181c;\
    --faint:#a0a4ab;--line:#3a3e45;--hot:#ff8a80;--link:#8ab8f5}}";

const STYLE: &str = "body{font:15px/1.5 system-ui,sans-serif;max-width:72rem;margin:2rem auto;padding:0 1rem;\
    color:var(--text);background:var(--ground);overflow-wrap:anywhere}\
    a{color:var(--link)}table{border-collapse:collapse;width:100%}\
    th,td{text-align:left;padding:.3rem .6rem;border-bottom:1px solid var(--line)}\
    td.n,th.n{text-align:right;font-variant-numeric:tabular-nums}\
    details{margin:.5rem 0}summary{cursor:pointer}\
    .hot{color:var(--hot);font-weight:600}code{font-size:13px}";

/// A page. The title is text; `style` and `body` are markup, and `script` runs at the end if it is not empty.
pub fn document(title: &str, style: &str, body: &str, script: &str) -> String {
    let title = escaped(title);
    // A script that got into the page by a mistake has another hash, and is not run.
    let (allowed, script) = if script.is_empty() {
        ("'none'".to_owned(), String::new())
    } else {
        let hash = BASE64_STANDARD.encode(digest(&SHA256, script.as_bytes()));
        (
            format!("'sha256-{hash}'"),
            format!("<script>{script}</script>"),
        )
    };
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"/><meta http-equiv=\"Content-Security-Policy\" \
         content=\"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'\"/>\
         <meta name=\"viewport\" content=\"width=device-width\"/><title>{title}</title>\
         <style>{COLOURS}{STYLE}{style}</style></head><body>\n<h1>{title}</h1>\n{body}{script}</body></html>\n"
    )
}

/// A text as markup: whatever is in it is shown, and does nothing. Characters that a page must not
/// have are replaced.
pub fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\n' | '\t' => out.push(letter),
            // The first two ranges turn the direction of the text around them, and Unicode has no
            // characters at the last two numbers.
            '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{fffe}' | '\u{ffff}' => {
                out.push('\u{fffd}');
            }
            _ if letter.is_control() => out.push('\u{fffd}'),
            _ => out.push(letter),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_cannot_become_markup() {
        assert_eq!(
            escaped("<a href=\"x\" title='y'>&\u{0}\u{202e}"),
            "&lt;a href=&quot;x&quot; title=&#39;y&#39;&gt;&amp;\u{fffd}\u{fffd}"
        );
        let page = document("<script>", "", "", "");
        assert!(!page.contains("<script>") && page.contains("<h1>&lt;script&gt;</h1>"));
    }
}
