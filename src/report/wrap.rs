//! Lines of a bounded width.

/// `text` in lines of at most `width` characters where its words allow it; the first begins with
/// `first`, the others with as many blanks.
pub(super) fn wrapped(first: &str, text: &str, width: usize) -> String {
    let indent = first.chars().count();
    let mut lines = vec![first.to_owned()];
    let mut used = indent;
    for word in text.split_whitespace() {
        let length = word.chars().count();
        if used > indent && used + 1 + length > width {
            lines.push(" ".repeat(indent));
            used = indent;
        }
        if let Some(line) = lines.last_mut() {
            if used > indent {
                line.push(' ');
                used += 1;
            }
            line.push_str(word);
            used += length;
        }
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_hang_under_the_first_word() {
        let text = wrapped("  fix: ", "one two three fourteen-or-more five", 16);
        assert_eq!(
            text,
            "  fix: one two\n       three\n       fourteen-or-more\n       five"
        );
    }
}
