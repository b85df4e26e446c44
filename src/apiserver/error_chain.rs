//! Errors of the API server's client, for people: what it said, not how the client keeps it.

use std::error::Error;

/// What an error and its causes say, each thing once.
pub fn text(error: &(dyn Error + 'static)) -> String {
    let mut said: Vec<String> = Vec::new();
    let mut next = Some(error);
    while let Some(error) = next {
        let (words, last) = words(error);
        // Many errors repeat what caused them.
        if !said.iter().any(|before| before.contains(&words)) {
            said.push(words);
        }
        next = if last { None } else { error.source() };
    }
    said.join(": ")
}

/// The words of one error, and whether what caused it adds nothing.
fn words(error: &(dyn Error + 'static)) -> (String, bool) {
    if let Some(kube::Error::Api(status)) = error.downcast_ref::<kube::Error>() {
        let said = if status.message.is_empty() {
            &status.reason
        } else {
            &status.message
        };
        return (said.clone(), true);
    }
    let text = error.to_string();
    // A wrapper's words hold the whole status after a colon.
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
