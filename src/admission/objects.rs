//! The objects in a review: finding them, and parsing the fields that are read.

use serde_json::Value;
use serde_json::value::RawValue;

use super::review::{Review, ReviewError};
use super::tree::{self, Detail, TreeBudget, TreeError};

/// The object and, for an update, the stored one; both raw.
pub(super) fn objects<'a>(
    review: &Review<'a>,
) -> Result<(&'a RawValue, Option<&'a RawValue>), ReviewError> {
    let is_update = review.operation == "UPDATE";
    let needs = if is_update { "an update" } else { "a create" };
    let object = review
        .object
        .ok_or(ReviewError::NoObject("object", needs))?;
    match review.old_object {
        None if is_update => Err(ReviewError::NoObject("oldObject", needs)),
        old => Ok((object, old.filter(|_| is_update))),
    }
}

/// One of the objects, if there is memory for it.
pub(super) fn read(
    raw: &RawValue,
    field: &'static str,
    detail: Detail,
    budget: &TreeBudget,
) -> Result<Value, ReviewError> {
    tree::read(raw, detail, budget).map_err(|error| match error {
        TreeError::Json(error) => ReviewError::Object(field, error.into()),
        TreeError::TooMuch => ReviewError::TooMuch(field),
    })
}
