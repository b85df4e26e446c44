//! The error chain of the API server's client as a text for people: the server's own words, without
//! the client's wrapping.

use std::error::Error;

use rayfit_core::text::ForeignText;

/// The messages of an error and its causes, each of them once.
pub fn text(error: &(dyn Error + 'static)) -> String {
    let mut texts: Vec<String> = Vec::new();
    let mut next = Some(error);
    while let Some(error) = next {
        let message = if let Some(kube::Error::Api(status)) = error.downcast_ref() {
            // Its causes add nothing to it.
            next = None;
            match &*status.message {
                "" => status.reason.clone(),
                message => message.to_owned(),
            }
        } else {
            next = error.source();
            let text = error.to_string();
            // The library's wrapper appends the whole status after this text.
            text.split(": ApiError").next().unwrap_or(&text).to_owned()
        };
        // Many errors repeat the message of their cause.
        if !texts.iter().any(|earlier| earlier.contains(&message)) {
            texts.push(message);
        }
    }
    // The server may have taken it from text of a stranger.
    ForeignText(texts.join(": ")).to_string()
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
