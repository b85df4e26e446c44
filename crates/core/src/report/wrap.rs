//! Wrapping text to a bounded width.

/// `text` in lines of at most `width` characters, except for longer words; the first line begins
/// with `first`, the others with as many spaces.
pub(super) fn wrapped(first: &str, text: &str, width: usize) -> String {
    let indent = " ".repeat(first.chars().count());
    let options = textwrap::Options::new(width)
        .initial_indent(first)
        .subsequent_indent(&indent)
        .break_words(false)
        .word_splitter(textwrap::WordSplitter::NoHyphenation);
    // Line breaks in the text are ignored: it is one paragraph.
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
