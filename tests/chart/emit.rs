//! Merged objects as the text of a template.

use serde_json::Value;

use super::choices::{CHOICES, LISTS, TOKENS};
use super::grafts::{GRAFTS, Graft};
use super::merge::{Conjunction, TemplateForm, TemplatePart, When};
use rayfit_core::manifests::names::CONTROLLER;

/// The template of an object.
pub(super) fn document(object: &TemplatePart) -> String {
    let mut emitter = Emitter::default();
    emitter.within(&object.when, |emitter| {
        for (when, form) in &object.forms {
            emitter.within(when, |emitter| emitter.object(form));
        }
    });
    emitter.text
}

/// The kind of an object.
pub(super) fn kind(object: &TemplatePart) -> String {
    let form = object.forms.first();
    form.map(|(_, form)| title(form).0).unwrap_or_default()
}

/// The kind of an object, and the name in front of its values: that of its Deployment.
fn title(form: &TemplateForm) -> (String, &'static str) {
    let kind = text_at(form, &["kind"]).unwrap_or_default();
    let name = text_at(form, &["metadata", "name"]).unwrap_or_default();
    let of = if name.starts_with(CONTROLLER) {
        "controller"
    } else {
        "webhook"
    };
    (kind, of)
}

fn text_at(form: &TemplateForm, path: &[&str]) -> Option<String> {
    match (form, path) {
        (TemplateForm::Scalar(Value::String(text)), []) => Some(text.clone()),
        (TemplateForm::Map(fields), [key, rest @ ..]) => {
            let (_, part) = fields.iter().find(|(name, _)| name == key)?;
            text_at(&part.forms.first()?.1, rest)
        }
        _ => None,
    }
}

#[derive(Default)]
struct Emitter {
    text: String,
    kind: String,
    /// The name in front of the values of the object's Deployment.
    of: &'static str,
}

impl Emitter {
    fn object(&mut self, form: &TemplateForm) {
        (self.kind, self.of) = title(form);
        // In each of the namespaces that the values name.
        let is_in_each = text_at(form, &["metadata", "namespace"]).as_deref() == Some("<<only>>");
        if is_in_each {
            self.line(0, "{{- range $each := $.Values.onlyNamespaces }}");
        }
        self.line(0, "---");
        self.form(form, 0, "");
        if is_in_each {
            self.line(0, "{{- end }}");
            self.text = self.text.replace("<<only>>", "{{ $each }}");
        }
    }

    fn line(&mut self, indent: usize, text: &str) {
        self.text.push_str(&" ".repeat(indent));
        self.text.push_str(text);
        self.text.push('\n');
    }

    /// What is there under a condition.
    fn within(&mut self, when: &When, inside: impl FnOnce(&mut Self)) {
        match expression(when) {
            Some(condition) => {
                self.line(0, &format!("{{{{- if {condition} }}}}"));
                inside(self);
                self.line(0, "{{- end }}");
            }
            None => inside(self),
        }
    }

    fn form(&mut self, form: &TemplateForm, indent: usize, path: &str) {
        match form {
            TemplateForm::Scalar(value) => self.line(indent, &scalar(value)),
            TemplateForm::Map(fields) => {
                for (key, part) in fields {
                    self.field(key, part, indent, &format!("{path}/{key}"));
                }
            }
            TemplateForm::List(items) => {
                for item in items {
                    self.within(&item.when, |emitter| {
                        for (when, form) in &item.forms {
                            emitter.within(when, |emitter| emitter.item(form, indent, path));
                        }
                    });
                }
            }
        }
        self.append(indent, path);
    }

    fn field(&mut self, key: &str, part: &TemplatePart, indent: usize, path: &str) {
        let value = self.graft(path);
        self.within(&part.when, |emitter| match value {
            Some(Graft::Replace(value)) => {
                emitter.line(indent, &listed(key, &emitter.value(value), indent));
            }
            Some(Graft::Prefer(value)) => {
                let value = emitter.value(value);
                emitter.line(0, &format!("{{{{- if {value} }}}}"));
                emitter.line(indent, &listed(key, &value, indent));
                emitter.line(0, "{{- else }}");
                emitter.forms(key, part, indent, path);
                emitter.line(0, "{{- end }}");
            }
            Some(Graft::Scalar(value)) => {
                let value = emitter.value(value);
                emitter.line(indent, &format!("{key}: {{{{ {value} }}}}"));
            }
            _ => emitter.forms(key, part, indent, path),
        });
    }

    fn forms(&mut self, key: &str, part: &TemplatePart, indent: usize, path: &str) {
        let key = if is_plain(key) {
            key.to_owned()
        } else {
            quoted(key)
        };
        for (when, form) in &part.forms {
            self.within(when, |emitter| match form {
                TemplateForm::Scalar(value) => {
                    emitter.line(indent, &format!("{key}: {}", scalar(value)));
                }
                TemplateForm::Map(_) => {
                    emitter.line(indent, &format!("{key}:"));
                    emitter.form(form, indent + 2, path);
                }
                TemplateForm::List(_) => {
                    emitter.line(indent, &format!("{key}:"));
                    emitter.form(form, indent, path);
                }
            });
        }
    }

    /// An item of a list: one for each element of a list of values that it stands for.
    fn item(&mut self, form: &TemplateForm, indent: usize, path: &str) {
        let mut inside = Self {
            text: String::new(),
            kind: self.kind.clone(),
            of: self.of,
        };
        let path = format!("{path}/*");
        let item = match form {
            TemplateForm::Scalar(value) => format!("- {}\n", joined(scalar(value))),
            TemplateForm::Map(_) | TemplateForm::List(_) => {
                inside.form(form, indent + 2, &path);
                let (first, rest) = inside.text.split_once('\n').unwrap_or_default();
                match first.strip_prefix(&*" ".repeat(indent + 2)) {
                    // A dash stands before a key that is always there.
                    Some(first) if !first.starts_with("{{-") => format!("- {first}\n{rest}"),
                    _ => format!("-\n{}", inside.text),
                }
            }
        };
        let mut item = format!("{}{item}", " ".repeat(indent));
        let of_list = LISTS.iter().find(|(token, ..)| item.contains(token));
        let Some((_, list, _)) = of_list else {
            self.text.push_str(&item);
            return;
        };
        for (token, of, element) in LISTS {
            if of == list {
                item = item.replace(token, element);
            }
        }
        self.line(0, &format!("{{{{- range $each := $.Values.{list} }}}}"));
        self.text.push_str(&item);
        self.line(0, "{{- end }}");
    }

    fn graft(&self, path: &str) -> Option<Graft> {
        let mut all = GRAFTS.iter();
        let found = all.find(|(kind, at, _)| *kind == self.kind && *at == path);
        found.map(|(_, _, graft)| *graft)
    }

    /// What values add to a map or a list.
    fn append(&mut self, indent: usize, path: &str) {
        for (kind, at, graft) in GRAFTS {
            if (*kind != self.kind && !kind.is_empty()) || *at != path {
                continue;
            }
            match graft {
                Graft::Extend(value) => {
                    let value = self.value(value);
                    let lines = format!(
                        "{{{{- with {value} }}}}\n{}{{{{- toYaml . | nindent {indent} }}}}\n{{{{- end }}}}",
                        " ".repeat(indent)
                    );
                    self.line(0, &lines);
                }
                Graft::Add(key, value) => {
                    let value = self.value(value);
                    self.line(0, &format!("{{{{- if {value} }}}}"));
                    self.line(indent, &listed(key, &value, indent));
                    self.line(0, "{{- end }}");
                }
                Graft::Lines(lines) => {
                    for line in lines.lines() {
                        let indent = if line.starts_with("{{-") { 0 } else { indent };
                        self.line(indent, &line.replace("<<of>>", self.of));
                    }
                }
                Graft::Replace(_) | Graft::Prefer(_) | Graft::Scalar(_) => {}
            }
        }
    }

    fn value(&self, value: &str) -> String {
        format!("$.Values.{}", value.replace("<<of>>", self.of))
    }
}

/// `key: VALUE`, with a value of several lines.
fn listed(key: &str, value: &str, indent: usize) -> String {
    format!("{key}: {{{{- toYaml {value} | nindent {} }}}}", indent + 2)
}

/// A text that has all elements of a list in it, as arguments do.
fn joined(text: String) -> String {
    let whole = text.trim_matches('"');
    match LISTS
        .iter()
        .find(|(token, ..)| text.contains(token) && whole != *token)
    {
        Some((token, list, _)) => {
            text.replace(token, &format!("{{{{ join \",\" $.Values.{list} }}}}"))
        }
        None => text,
    }
}

/// A scalar as YAML, with what stands for its tokens. Texts with tokens are quoted, whatever the values are.
fn scalar(value: &Value) -> String {
    match value {
        Value::String(text) if is_plain(text) => text.clone(),
        Value::String(text) => quoted(text),
        Value::Number(number) => {
            let text = number.to_string();
            let token = TOKENS.iter().find(|(token, _)| *token == text);
            token.map_or(text, |(_, template)| (*template).to_owned())
        }
        other => other.to_string(),
    }
}

fn quoted(text: &str) -> String {
    // JSON's texts are YAML's.
    let mut quoted = Value::from(text).to_string();
    for (token, template) in TOKENS {
        // A number of three digits may be part of any text.
        if token.len() > 3 {
            quoted = quoted.replace(token, template);
        }
    }
    quoted
}

/// Whether a text needs no quotes, and stays as it is.
fn is_plain(text: &str) -> bool {
    const WORDS: [&str; 9] = ["true", "false", "null", "yes", "no", "on", "off", "y", "n"];
    text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '/')
        && text
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "/._-".contains(c))
        && !WORDS.contains(&&*text.to_ascii_lowercase())
}

/// What a template asks for; `None` if it is always so.
fn expression(when: &When) -> Option<String> {
    let each: Option<Vec<String>> = when.iter().map(all_of).collect();
    let mut each = each?;
    each.dedup();
    Some(match &*each {
        [one] => one.clone(),
        several => format!("or {}", in_parentheses(several)),
    })
}

fn all_of(conjunction: &Conjunction) -> Option<String> {
    let each: Vec<String> = conjunction
        .iter()
        .filter_map(|(choice, alternatives)| {
            let choice = CHOICES.get(*choice)?;
            let names = alternatives
                .iter()
                .filter_map(|at| choice.alternatives.get(*at));
            let names: Vec<String> = names.map(|(name, _)| format!("{name:?}")).collect();
            let asked = choice.expression;
            Some(match &*names {
                _ if choice.alternatives.len() == 2 && alternatives.contains(&1) => {
                    asked.to_owned()
                }
                _ if choice.alternatives.len() == 2 => format!("not {}", in_parentheses(&[asked])),
                [name] => format!("eq ({asked}) {name}"),
                several => format!("has ({asked}) (list {})", several.join(" ")),
            })
        })
        .collect();
    match &*each {
        [] => None,
        [one] => Some(one.clone()),
        several => Some(format!("and {}", in_parentheses(several))),
    }
}

fn in_parentheses<T: AsRef<str>>(expressions: &[T]) -> String {
    let each = expressions.iter().map(AsRef::as_ref).map(|each: &str| {
        if each.contains(' ') {
            format!("({each})")
        } else {
            each.to_owned()
        }
    });
    each.collect::<Vec<_>>().join(" ")
}
