//! What objects of different choices have in common, and on which choices the rest depends.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::choices::{Assignment, CHOICES};

/// A conjunction: the alternatives that each of some choices may have.
pub(super) type Conjunction = BTreeMap<usize, BTreeSet<usize>>;

/// When something is there: if one of these holds.
pub(super) type When = Vec<Conjunction>;

/// A part of objects that is there under a condition, in each of its forms.
#[derive(Debug)]
pub(super) struct TemplatePart {
    pub(super) when: When,
    pub(super) forms: Vec<(When, TemplateForm)>,
}

/// A value whose parts have conditions.
#[derive(Debug)]
pub(super) enum TemplateForm {
    Scalar(Value),
    Map(Vec<(String, TemplatePart)>),
    List(Vec<TemplatePart>),
}

/// Ends the generator at a part whose condition a template cannot ask for.
fn unasked(place: &str) -> ! {
    panic!(
        "{place} depends on choices in a way that is neither one conjunction of them nor that of the items of a list: \
         make it depend on a choice of its own in tests/chart/choices.rs"
    )
}

type Sample<'a> = (&'a Assignment, &'a Value);

/// Merges values of the same place.
pub(super) fn merge(place: &str, samples: &[Sample<'_>]) -> Vec<(When, TemplateForm)> {
    let Some((_, first)) = samples.first() else {
        return Vec::new();
    };
    let is_full = |value: &Value| match value {
        Value::Object(fields) => !fields.is_empty(),
        Value::Array(items) => !items.is_empty(),
        _ => false,
    };
    // What all have alike is not compared part by part.
    let all_alike = samples.iter().all(|(_, value)| value == first);
    let samples = if all_alike {
        samples.get(..1).unwrap_or_default()
    } else {
        samples
    };
    let all = |is: fn(&Value) -> bool| samples.iter().all(|(_, value)| is(value) && is_full(value));
    if all(Value::is_object) {
        return vec![(always(), TemplateForm::Map(merge_map(place, samples)))];
    }
    if all(Value::is_array) {
        return vec![(always(), TemplateForm::List(merge_list(place, samples)))];
    }
    if all_alike {
        return vec![(always(), TemplateForm::Scalar((*first).clone()))];
    }
    let mut values: Vec<&Value> = Vec::new();
    for (_, value) in samples {
        if !values.contains(value) {
            values.push(value);
        }
    }
    let form = |value: &&Value| {
        let when = condition(samples, |other| other == *value);
        let when = when.unwrap_or_else(|| unasked(place));
        (vec![when], TemplateForm::Scalar((*value).clone()))
    };
    values.iter().map(form).collect()
}

fn always() -> When {
    vec![Conjunction::new()]
}

fn merge_map(place: &str, samples: &[Sample<'_>]) -> Vec<(String, TemplatePart)> {
    let fields = samples.iter().map(|(_, value)| {
        let fields = value.as_object().into_iter().flatten();
        fields.map(|(key, value)| (key.clone(), value)).collect()
    });
    by_name(place, samples, &fields.collect::<Vec<_>>())
}

fn merge_list(place: &str, samples: &[Sample<'_>]) -> Vec<TemplatePart> {
    let items = samples.iter().map(|(_, value)| {
        let items = value.as_array().into_iter().flatten();
        items.map(|item| (identity(item), item)).collect()
    });
    let parts = by_name(place, samples, &items.collect::<Vec<_>>());
    parts.into_iter().map(|(_, part)| part).collect()
}

/// The parts of all samples: what each of them has by name.
fn by_name(
    place: &str,
    samples: &[Sample<'_>],
    named: &[Vec<(String, &Value)>],
) -> Vec<(String, TemplatePart)> {
    let each = in_order(named).into_iter().map(|name| {
        let find =
            |named: &Vec<(String, &'_ Value)>| named.iter().position(|(known, _)| *known == name);
        let found = named.iter().map(|named| Some(named.get(find(named)?)?.1));
        let found: Vec<Option<&Value>> = found.collect();
        let part = part(&format!("{place}/{name}"), samples, &found);
        (name, part)
    });
    each.collect()
}

/// What tells an item of a list: an object of an installation, something with a name, or the item itself.
fn identity(item: &Value) -> String {
    let metadata = &item["metadata"];
    if item["kind"].is_string() && metadata.is_object() {
        return format!(
            "{} {}/{}",
            item["kind"], metadata["namespace"], metadata["name"]
        );
    }
    match item["name"].as_str() {
        Some(name) => name.to_owned(),
        None => item.to_string(),
    }
}

/// The names of all samples, each after those that stand before it in any of them.
fn in_order(named: &[Vec<(String, &Value)>]) -> Vec<String> {
    let mut unplaced: Vec<&str> = Vec::new();
    let mut pairs: BTreeSet<(&str, &str)> = BTreeSet::new();
    for sample in named {
        for (at, (name, _)) in sample.iter().enumerate() {
            if !unplaced.contains(&&**name) {
                unplaced.push(name);
            }
            let before = at.checked_sub(1).and_then(|at| sample.get(at));
            pairs.extend(before.map(|(before, _)| (&**before, &**name)));
        }
    }
    let mut order: Vec<String> = Vec::new();
    while !unplaced.is_empty() {
        let is_free = |name: &&str| pairs.iter().all(|(_, after)| after != name);
        let next = unplaced.remove(unplaced.iter().position(is_free).unwrap_or_default());
        pairs.retain(|(before, _)| *before != next);
        order.push(next.to_owned());
    }
    order
}

/// A part that some samples have.
fn part(place: &str, samples: &[Sample<'_>], found: &[Option<&Value>]) -> TemplatePart {
    let present = samples.iter().zip(found);
    let present: Vec<Sample<'_>> = present
        .filter_map(|((assignment, _), value)| Some((*assignment, (*value)?)))
        .collect();
    let forms = merge(place, &present);
    let all: Vec<Sample<'_>> = samples
        .iter()
        .zip(found)
        .map(|((assignment, _), value)| (*assignment, value.unwrap_or(&Value::Null)))
        .collect();
    let when = match (condition(&all, |value| !value.is_null()), &*forms) {
        (Some(when), _) => vec![when],
        // A list is there if one of its items is.
        (None, [(_, TemplateForm::List(items))]) => {
            let mut when: When = items.iter().flat_map(|item| item.when.clone()).collect();
            when.dedup();
            let exact = all
                .iter()
                .all(|(assignment, value)| holds(&when, assignment) != value.is_null());
            if !exact {
                unasked(place);
            }
            when
        }
        _ => unasked(place),
    };
    TemplatePart { when, forms }
}

/// The conjunction that exactly those samples meet whose value is such, if there is one.
fn condition(samples: &[Sample<'_>], is_such: impl Fn(&Value) -> bool) -> Option<Conjunction> {
    let mut conjunction = Conjunction::new();
    for choice in 0..CHOICES.len() {
        let seen = |such: bool| -> BTreeSet<usize> {
            let chosen = samples.iter().filter(|(_, value)| !such || is_such(value));
            chosen.map(|(assignment, _)| assignment[choice]).collect()
        };
        let (wanted, all) = (seen(true), seen(false));
        if wanted != all {
            conjunction.insert(choice, wanted);
        }
    }
    let when = vec![conjunction];
    let exact = samples
        .iter()
        .all(|(assignment, value)| holds(&when, assignment) == is_such(value));
    when.into_iter().next().filter(|_| exact)
}

/// Whether a condition holds.
pub(super) fn holds(when: &When, assignment: &[usize]) -> bool {
    when.iter().any(|conjunction| {
        let mut choices = conjunction.iter();
        choices.all(|(choice, alternatives)| alternatives.contains(&assignment[*choice]))
    })
}

mod tests {
    use super::super::choices::{made, samples};
    use super::*;

    /// The value that the forms have for an assignment.
    fn value(forms: &[(When, TemplateForm)], assignment: &[usize]) -> Option<Value> {
        let (_, form) = forms.iter().find(|(when, _)| holds(when, assignment))?;
        let of = |part: &TemplatePart| {
            let is_there = holds(&part.when, assignment);
            is_there.then(|| value(&part.forms, assignment)).flatten()
        };
        Some(match form {
            TemplateForm::Scalar(value) => value.clone(),
            TemplateForm::Map(fields) => {
                let fields = fields.iter();
                let fields = fields.filter_map(|(key, part)| Some((key.clone(), of(part)?)));
                Value::Object(fields.collect())
            }
            TemplateForm::List(items) => Value::Array(items.iter().filter_map(of).collect()),
        })
    }

    /// The templates are made from a few hundred assignments; here are others, of all that there are.
    #[test]
    fn what_the_templates_ask_gives_the_objects_of_any_choices() {
        let samples = samples();
        let objects: Vec<Value> = samples.iter().map(|sample| made(sample)).collect();
        let pairs: Vec<_> = samples.iter().zip(&objects).collect();
        let forms = merge("", &pairs);
        let mut state: u64 = 1;
        for _ in 0..300 {
            let mut assignment = Vec::new();
            for choice in CHOICES {
                state = state
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1);
                assignment.push(usize::try_from(state >> 40).unwrap() % choice.alternatives.len());
            }
            assert_eq!(
                value(&forms, &assignment),
                Some(made(&assignment)),
                "{assignment:?}"
            );
        }
    }
}
