//! The error chain of the API server's client as a text for people: the server's own words, without
//! the client's wrapping.

use std::error::Error;

use crate::text::ForeignText;

/// The messages of an error and its causes, each of them once.
pub fn text(error: &(dyn Error + 'static)) -> String {
    let mut said: Vec<String> = Vec::new();
    let mut next = Some(error);
    while let Some(error) = next {
        let (message, last) = message(error);
        // Many errors repeat the message of their cause.
        if !said.iter().any(|before| before.contains(&message)) {
            said.push(message);
        }
        next = if last { None } else { error.source() };
    }
    // The server may have taken it from text of a stranger.
    ForeignText(said.join(": ")).to_string()
}

/// The message of one error, and whether its causes add nothing to it.
fn message(error: &(dyn Error + 'static)) -> (String, bool) {
    if let Some(kube::Error::Api(status)) = error.downcast_ref::<kube::Error>() {
        let said = if status.message.is_empty() {
            &status.reason
        } else {
            &status.message
        };
        return (said.clone(), true);
    }
    let text = error.to_string();
    // The library's wrapper appends the whole status after this text.
    let short = text.split(": ApiError").next().unwrap_or(&text);
    (short.to_owned(), false)
}

#[cfg(test)]
mod tests {
    use kube::core::Status;

    use crate::apiserver::error_chain::*;

    #[derive(Debug, thiserror::Error)]
    #[error("the list failed: {0}")]
    struct Wrapper(#[source] kube::Error);

    #[test]
    fn the_api_servers_own_words_are_enough() {
        let status = Status::failure("pods is forbidden", "Forbidden").with_code(403);
        let error = kube::Error::Api(Box::new(status));
        assert_eq!(text(&error), "pods is forbidden");
        assert_eq!(text(&Wrapper(error)), "the list failed: pods is forbidden");
    }
}
