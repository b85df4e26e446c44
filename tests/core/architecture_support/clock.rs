//! Where the code of tests waits for time to pass, or asks how much has passed, while time is real.

use std::collections::BTreeSet;

use syn::buffer::{Cursor, TokenBuffer};
use syn::punctuated::Punctuated;
use syn::visit::{self, Visit};
use syn::{Attribute, BinOp, Block, Expr, Item, Lit, Local, Meta, Pat, Token, UseTree};

use super::scan::{attributes, is_for_tests};

/// A wait that is shorter is a pause between two looks at a condition.
const LONG_NS: u128 = 100_000_000;

/// Functions that wait for time to pass.
const WAITS: [&str; 3] = ["sleep", "sleep_until", "park_timeout"];

/// Methods that say how much time lies between two moments.
const MEASURES: [&str; 4] = [
    "elapsed",
    "duration_since",
    "saturating_duration_since",
    "checked_duration_since",
];

/// Whether a text names anything of that, so that there is something to read.
pub(crate) fn is_named(text: &str) -> bool {
    let names = WAITS.iter().chain(&MEASURES).chain(&["Instant::now"]);
    names.into_iter().any(|name| text.contains(name))
}

/// What one file does by the clock.
pub(crate) struct ByTheClock {
    /// Each with the name of the function in which it stands.
    pub(crate) found: Vec<String>,
    /// The code is that of tests.
    is_test: bool,
    /// Here time is paused. It is everywhere in a file if it is in all of its asynchronous tests, which are those that call
    /// the functions.
    is_paused: bool,
    /// `Instant` is that of the standard library, which is never paused.
    is_std_instant: bool,
    /// Constants that are shorter than what is long.
    short: BTreeSet<String>,
    /// Variables with moments of the standard library's clock.
    std_moments: BTreeSet<String>,
    function: String,
}

impl ByTheClock {
    /// Reads a file's text, all of which is a test's, or only what is marked so.
    pub(crate) fn of(text: &str, is_test: bool) -> Vec<String> {
        let file = syn::parse_file(text).unwrap();
        let mut tests = Tests::default();
        tests.visit_file(&file);
        let mut scan = Self {
            found: Vec::new(),
            is_test,
            is_paused: tests.paused > 0 && tests.others == 0,
            is_std_instant: false,
            short: BTreeSet::new(),
            std_moments: BTreeSet::new(),
            function: String::new(),
        };
        scan.items(&file.items);
        scan.found
    }

    /// The items of a file or module.
    fn items(&mut self, items: &[Item]) {
        let outside = self.is_std_instant;
        let uses = items.iter().filter_map(|item| match item {
            Item::Use(item) => Some(&item.tree),
            _ => None,
        });
        let uses: Vec<_> = uses.flat_map(|tree| names(tree, &[])).collect();
        let of_std = uses.iter().find(|path| path.last().unwrap() == "Instant");
        let is_taken_over = uses.iter().any(|path| path[..] == ["super", "*"]);
        self.is_std_instant = match of_std {
            Some(path) => path[0] == "std",
            None => outside && is_taken_over,
        };
        for item in items {
            if let Item::Const(item) = item {
                self.visit_item_const(item);
            }
        }
        for item in items {
            self.visit_item(item);
        }
        self.is_std_instant = outside;
    }

    fn function(&mut self, name: String, attributes: &[Attribute], block: &Block) {
        let outside = (
            self.is_test,
            self.is_paused,
            std::mem::replace(&mut self.function, name),
            std::mem::take(&mut self.std_moments),
        );
        let (test, mut pauses) = (kind(attributes), Pauses(false));
        pauses.visit_block(block);
        self.is_test |= is_for_tests(attributes);
        self.is_paused &= test != Some(Kind::Synchronous);
        self.is_paused |= test == Some(Kind::Paused) || pauses.0;
        visit::visit_block(self, block);
        (
            self.is_test,
            self.is_paused,
            self.function,
            self.std_moments,
        ) = outside;
    }

    fn add(&mut self, what: &str) {
        if self.is_test {
            self.found.push(format!("{} {what}", self.function));
        }
    }

    fn is_short(&self, time: &Expr) -> bool {
        match time {
            Expr::Paren(inner) => self.is_short(&inner.expr),
            Expr::Path(path) => path
                .path
                .get_ident()
                .is_some_and(|name| self.short.contains(&name.to_string())),
            Expr::Call(call) => {
                let unit = match last(&call.func).as_deref() {
                    Some("from_millis") => 1_000_000,
                    Some("from_micros") => 1_000,
                    Some("from_nanos") => 1,
                    _ => return false,
                };
                let Some(Expr::Lit(number)) = call.args.first() else {
                    return false;
                };
                let Lit::Int(number) = &number.lit else {
                    return false;
                };
                let number = number.base10_parse::<u128>().unwrap();
                number * unit < LONG_NS
            }
            _ => false,
        }
    }

    /// It is `Instant::now()` of the standard library.
    fn is_std_now(&self, value: &Expr) -> bool {
        is_now(value) && {
            let path = path(value);
            path.len() > 2 && path[0] == "std" || path.len() == 2 && self.is_std_instant
        }
    }

    /// Notes which variables have moments of the standard library's clock.
    fn note(&mut self, pattern: &Pat, value: &Expr) {
        match (pattern, value) {
            (Pat::Tuple(patterns), Expr::Tuple(values)) => {
                for (pattern, value) in patterns.elems.iter().zip(&values.elems) {
                    self.note(pattern, value);
                }
            }
            (Pat::Ident(name), value) if self.is_std_now(value) => {
                self.std_moments.insert(name.ident.to_string());
            }
            _ => {}
        }
    }

    /// What stands in a macro that cannot be read as Rust: the names alone count.
    fn tokens(&mut self, mut at: Cursor<'_>) {
        while !at.eof() {
            if let Some((name, next)) = at.ident() {
                let name = name.to_string();
                let is_call = next.any_group().is_some();
                if is_call && !self.is_paused {
                    if WAITS.contains(&name.as_str()) {
                        self.add("sleeps in a macro");
                    } else if MEASURES.contains(&name.as_str()) {
                        self.add("measures time in a macro");
                    }
                }
                at = next;
            } else if let Some((inner, _, _, next)) = at.any_group() {
                self.tokens(inner);
                at = next;
            } else {
                at = at.token_tree().unwrap().1;
            }
        }
    }
}

impl<'ast> Visit<'ast> for ByTheClock {
    fn visit_item(&mut self, item: &'ast Item) {
        let outside = self.is_test;
        self.is_test |= is_for_tests(attributes(item));
        visit::visit_item(self, item);
        self.is_test = outside;
    }

    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        if let Some((_, items)) = &item.content {
            self.items(items);
        }
    }

    fn visit_item_const(&mut self, item: &'ast syn::ItemConst) {
        if self.is_short(&item.expr) {
            self.short.insert(item.ident.to_string());
        }
    }

    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        self.function(item.sig.ident.to_string(), &item.attrs, &item.block);
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        self.function(item.sig.ident.to_string(), &item.attrs, &item.block);
    }

    fn visit_local(&mut self, local: &'ast Local) {
        if let Some(value) = &local.init {
            self.note(&local.pat, &value.expr);
        }
        visit::visit_local(self, local);
    }

    fn visit_expr_call(&mut self, call: &'ast syn::ExprCall) {
        let called = path(&call.func);
        let is_wait = called.last().is_some_and(|name| WAITS.contains(&&**name));
        let of_thread = called.iter().any(|name| name == "thread");
        let is_long = !call.args.first().is_some_and(|time| self.is_short(time));
        if is_wait && is_long && (of_thread || !self.is_paused) {
            self.add("sleeps for 100 ms or more, or for a time that is not written there");
        }
        visit::visit_expr_call(self, call);
    }

    fn visit_expr_method_call(&mut self, call: &'ast syn::ExprMethodCall) {
        let is_measure = MEASURES.iter().any(|name| call.method == name);
        let is_epoch = |value: &Expr| last(value).as_deref() == Some("UNIX_EPOCH");
        if is_measure && !is_epoch(&call.receiver) && !call.args.iter().any(is_epoch) {
            let of_std = self.is_std_now(&call.receiver)
                || last(&call.receiver).is_some_and(|name| self.std_moments.contains(&name));
            if of_std || !self.is_paused {
                self.add("measures how much time has passed");
            }
        }
        visit::visit_expr_method_call(self, call);
    }

    fn visit_expr_binary(&mut self, both: &'ast syn::ExprBinary) {
        let compares = matches!(
            both.op,
            BinOp::Lt(_) | BinOp::Le(_) | BinOp::Gt(_) | BinOp::Ge(_) | BinOp::Sub(_)
        );
        let now = [&both.left, &both.right];
        let is_real = now
            .iter()
            .any(|side| is_now(side) && (!self.is_paused || self.is_std_now(side)));
        if compares && is_real {
            self.add("compares a moment with now");
        }
        visit::visit_expr_binary(self, both);
    }

    fn visit_macro(&mut self, call: &'ast syn::Macro) {
        let expressions = Punctuated::<Expr, Token![,]>::parse_terminated;
        if let Ok(expressions) = call.parse_body_with(expressions) {
            for expression in &expressions {
                self.visit_expr(expression);
            }
        } else if let Ok(file) = call.parse_body::<syn::File>() {
            self.items(&file.items);
        } else if let Ok(statements) = call.parse_body_with(Block::parse_within) {
            for statement in &statements {
                self.visit_stmt(statement);
            }
        } else {
            self.tokens(TokenBuffer::new2(call.tokens.clone()).begin());
        }
    }
}

/// How a test runs.
#[derive(PartialEq)]
enum Kind {
    Synchronous,
    /// In real time.
    Real,
    Paused,
}

fn kind(attributes: &[Attribute]) -> Option<Kind> {
    attributes.iter().find_map(|attribute| {
        let last = attribute.path().segments.last()?;
        if last.ident != "test" {
            return None;
        }
        if attribute.path().get_ident().is_some() {
            return Some(Kind::Synchronous);
        }
        Some(match &attribute.meta {
            Meta::List(with) if with.tokens.to_string().contains("start_paused = true") => {
                Kind::Paused
            }
            _ => Kind::Real,
        })
    })
}

/// How many asynchronous tests run in paused time, and how many do not.
#[derive(Default)]
struct Tests {
    paused: usize,
    others: usize,
}

impl<'ast> Visit<'ast> for Tests {
    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        match kind(&item.attrs) {
            Some(Kind::Paused) => self.paused += 1,
            Some(Kind::Real) => self.others += 1,
            Some(Kind::Synchronous) | None => {}
        }
    }
}

/// Whether time is paused here: `tokio::time::advance` panics where it is not.
struct Pauses(bool);

impl<'ast> Visit<'ast> for Pauses {
    fn visit_expr_call(&mut self, call: &'ast syn::ExprCall) {
        let called = path(&call.func);
        let is = |name: &str| called.ends_with(&["time".to_owned(), name.to_owned()]);
        self.0 |= is("pause") || is("advance");
        visit::visit_expr_call(self, call);
    }
}

/// It is `Instant::now()`.
fn is_now(value: &Expr) -> bool {
    let path = path(value);
    matches!(value, Expr::Call(_)) && path.ends_with(&["Instant".to_owned(), "now".to_owned()])
}

/// The names of a path, or of what is called, or of the last field.
fn path(value: &Expr) -> Vec<String> {
    match value {
        Expr::Paren(inner) => path(&inner.expr),
        Expr::Reference(inner) => path(&inner.expr),
        Expr::Call(call) => path(&call.func),
        Expr::Field(field) => match &field.member {
            syn::Member::Named(name) => vec![name.to_string()],
            syn::Member::Unnamed(_) => Vec::new(),
        },
        Expr::Path(value) => {
            let segments = value.path.segments.iter();
            segments.map(|segment| segment.ident.to_string()).collect()
        }
        _ => Vec::new(),
    }
}

fn last(value: &Expr) -> Option<String> {
    path(value).pop()
}

/// The paths that a `use` names.
fn names(tree: &UseTree, before: &[String]) -> Vec<Vec<String>> {
    let with = |name: String| [before, &[name]].concat();
    match tree {
        UseTree::Path(path) => names(&path.tree, &with(path.ident.to_string())),
        UseTree::Group(group) => {
            let trees = group.items.iter();
            trees.flat_map(|tree| names(tree, before)).collect()
        }
        UseTree::Name(name) => vec![with(name.ident.to_string())],
        UseTree::Rename(name) => vec![with(name.rename.to_string())],
        UseTree::Glob(_) => vec![with("*".to_owned())],
    }
}
