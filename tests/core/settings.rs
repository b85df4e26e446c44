//! What the environment says about how much is tried.

/// A variable of the environment.
pub(crate) fn setting(name: &str) -> Option<String> {
    let value = std::env::vars_os().find(|(key, _)| key == name)?.1;
    Some(value.into_string().unwrap())
}

/// `all`, where `RAYFIT_THOROUGH` is set, as in `make test-long`; a `part` of it in `make test`.
pub(crate) fn part_of<T>(all: T, part: T) -> T {
    let is_thorough = setting("RAYFIT_THOROUGH").is_some_and(|value| !value.is_empty());
    if is_thorough { all } else { part }
}
