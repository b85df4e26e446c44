//! How much is tried: a part in `make test`, and all of it where `RAYFIT_THOROUGH` is set, as in `make test-rest`.

pub(crate) fn is_thorough() -> bool {
    std::env::vars_os().any(|(key, value)| key == "RAYFIT_THOROUGH" && !value.is_empty())
}

/// `all`, or a `part` of it.
pub(crate) fn part_of<T>(all: T, part: T) -> T {
    if is_thorough() { all } else { part }
}
