//! Lines of a bounded width.

/// `text` in lines of at most `width` characters where its words allow it; the first begins with
/// `first`, the others with as many blanks.
pub(super) fn wrapped(first: &str, text: &str, width: usize) -> String {
    let indent = " ".repeat(first.chars().count());
    let options = textwrap::Options::new(width)
        .initial_indent(first)
        .subsequent_indent(&indent)
        .break_words(false)
        .word_splitter(textwrap::WordSplitter::NoHyphenation);
    // Whatever lines the text came in, it is one paragraph.
    let words: Vec<&str> = text.split_whitespace().collect();
    textwrap::fill(&words.join(" "), options)
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
