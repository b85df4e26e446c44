//! The token of Ray's token authentication.

use std::fmt;

use tonic::metadata::{Ascii, MetadataValue};

use super::Material;
use super::material::UnreadableFile;

/// A token, ready to be sent. `Debug` never shows it.
#[derive(Clone)]
pub struct Token(MetadataValue<Ascii>);

/// The source of the token. A file is read again for each call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenSource(pub Material);

/// The error of a token that is missing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum NoToken {
    #[error(transparent)]
    UnreadableFile(#[from] UnreadableFile),
    #[error("the token in {0:?} is empty: put the cluster's token there")]
    Empty(Material),
    #[error("the token in {0:?} has characters that no HTTP header can have")]
    Unprintable(Material),
}

impl TokenSource {
    /// The token as it is now.
    pub(super) fn token(&self) -> Result<Token, NoToken> {
        let content = self.0.read()?;
        let text = std::str::from_utf8(&content).ok();
        let text = text.ok_or_else(|| NoToken::Unprintable(self.0.clone()))?;
        // As Ray reads it: the first line, without blanks around it.
        let line = text.lines().next().unwrap_or_default().trim();
        if line.is_empty() {
            return Err(NoToken::Empty(self.0.clone()));
        }
        let mut value = MetadataValue::try_from(format!("Bearer {line}"))
            .map_err(|_| NoToken::Unprintable(self.0.clone()))?;
        // A sensitive value is not shown by Debug, and not kept in the compression table of HTTP/2.
        value.set_sensitive(true);
        Ok(Token(value))
    }
}

impl Token {
    /// The value of the header `authorization`. Ray compares the word `Bearer` by case.
    pub(super) fn header(self) -> MetadataValue<Ascii> {
        self.0
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(text: &str) -> TokenSource {
        TokenSource(text.as_bytes().to_vec().into())
    }

    #[test]
    fn the_first_line_without_blanks_is_the_token() {
        let token = source(" s3cret \nsecond\n").token().unwrap();
        assert_eq!(token.header().to_str().unwrap(), "Bearer s3cret");
    }

    #[test]
    fn a_token_that_cannot_be_sent_is_refused() {
        assert!(matches!(source("\nx").token(), Err(NoToken::Empty(_))));
        assert!(matches!(
            source("a\u{7}b").token(),
            Err(NoToken::Unprintable(_))
        ));
    }

    #[test]
    fn a_file_is_read_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token");
        let source = TokenSource(path.clone().into());
        assert!(matches!(source.token(), Err(NoToken::UnreadableFile(_))));
        for text in ["one", "two"] {
            std::fs::write(&path, text).unwrap();
            let token = source.token().unwrap().header();
            assert_eq!(token.to_str().unwrap(), format!("Bearer {text}"));
        }
    }

    #[test]
    fn nothing_shows_the_token() {
        let source = source("s3cret");
        let token = source.token().unwrap();
        let shown = format!("{source:?} {token:?} {:?}", token.clone().header());
        assert!(!shown.contains("s3cret"), "{shown}");
    }
}
