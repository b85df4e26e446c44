//! What one file names: its items, its imports and every path in its code. Tests are passed over.

use syn::buffer::Cursor;
use syn::visit::{self, Visit};
use syn::{Attribute, ImplItem, Item, ItemMod, ItemUse, Meta, UseTree, Visibility};

/// The segments of a path, as written.
pub(crate) type Path = Vec<String>;

/// A name that a file imports.
#[derive(Debug)]
pub(crate) struct Import {
    /// What it is called here; `*` for everything.
    pub(crate) name: String,
    /// What is imported, as written.
    pub(crate) path: Path,
    /// It can be imported from here in turn.
    pub(crate) is_passed_on: bool,
    /// The modules within the file around it.
    pub(crate) inside: Vec<String>,
}

/// What one file names.
#[derive(Debug, Default)]
pub(crate) struct Scan {
    /// Its imports.
    pub(crate) imports: Vec<Import>,
    /// Every other path, with the modules within the file around it.
    pub(crate) paths: Vec<(Vec<String>, Path)>,
    /// The macros that are called.
    pub(crate) macros: Vec<String>,
    /// The items that stand in it.
    pub(crate) items: Vec<String>,
    /// The modules in files of their own that are only there for tests.
    pub(crate) tests: Vec<String>,
    inside: Vec<String>,
}

impl Scan {
    /// Reads a file's text.
    pub(crate) fn of(text: &str) -> Self {
        let mut scan = Self::default();
        let file = syn::parse_file(text).unwrap();
        scan.visit_file(&file);
        scan
    }

    fn add(&mut self, path: Path) {
        self.paths.push((self.inside.clone(), path));
    }

    fn import(&mut self, tree: &UseTree, before: &[String], is_passed_on: bool) {
        let (name, last) = match tree {
            UseTree::Path(path) => {
                let before = [before, &[path.ident.to_string()]].concat();
                return self.import(&path.tree, &before, is_passed_on);
            }
            UseTree::Group(group) => {
                for tree in &group.items {
                    self.import(tree, before, is_passed_on);
                }
                return;
            }
            UseTree::Name(name) => (name.ident.to_string(), name.ident.to_string()),
            UseTree::Rename(rename) => (rename.rename.to_string(), rename.ident.to_string()),
            UseTree::Glob(_) => ("*".to_owned(), "*".to_owned()),
        };
        let (mut name, mut path) = (name, before.to_vec());
        if last == "self" {
            if name == "self" {
                name.clone_from(before.last().unwrap());
            }
        } else if last != "*" {
            path.push(last);
        }
        self.imports.push(Import {
            name,
            path,
            is_passed_on,
            inside: self.inside.clone(),
        });
    }

    /// The paths among the tokens of a macro or an attribute, which have no syntax of Rust's own.
    fn tokens(&mut self, mut at: Cursor<'_>, texts: bool) {
        let mut path = Path::new();
        while !at.eof() {
            if at.ident().is_none() && !path.is_empty() {
                self.add(std::mem::take(&mut path));
            }
            if let Some((ident, next)) = at.ident() {
                path.push(ident.to_string());
                if let Some(behind) = colons(next) {
                    at = behind;
                    continue;
                }
                self.add(std::mem::take(&mut path));
                if next
                    .punct()
                    .is_some_and(|(punct, _)| punct.as_char() == '!')
                {
                    self.macros.push(ident.to_string());
                }
                at = next;
            } else if let Some((inner, _, _, next)) = at.any_group() {
                self.tokens(inner, texts);
                at = next;
            } else if let (true, Some((literal, next))) = (texts, at.literal()) {
                let text = literal.to_string();
                if let Ok(path) = syn::parse_str::<syn::Path>(text.trim_matches('"')) {
                    self.add(segments(&path));
                }
                at = next;
            } else {
                at = at.token_tree().unwrap().1;
            }
        }
    }
}

/// Behind `::`, if that is here.
fn colons(at: Cursor<'_>) -> Option<Cursor<'_>> {
    let (first, at) = at.punct()?;
    let (second, at) = at.punct()?;
    (first.as_char() == ':' && second.as_char() == ':').then_some(at)
}

fn segments(path: &syn::Path) -> Path {
    let segments = path.segments.iter();
    segments.map(|segment| segment.ident.to_string()).collect()
}

/// It is only there for tests.
pub(crate) fn is_for_tests(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| match &attribute.meta {
        Meta::List(list) => list.path.is_ident("cfg") && list.tokens.to_string() == "test",
        _ => false,
    })
}

pub(crate) fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(item) => &item.attrs,
        Item::Enum(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Macro(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Static(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Trait(item) => &item.attrs,
        Item::Type(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        _ => &[],
    }
}

/// The name of an item, if it has one that can be imported.
fn name(item: &Item) -> Option<String> {
    let ident = match item {
        Item::Const(item) => &item.ident,
        Item::Enum(item) => &item.ident,
        Item::Fn(item) => &item.sig.ident,
        Item::Macro(item) => item.ident.as_ref()?,
        Item::Mod(item) if item.content.is_some() => &item.ident,
        Item::Static(item) => &item.ident,
        Item::Struct(item) => &item.ident,
        Item::Trait(item) => &item.ident,
        Item::Type(item) => &item.ident,
        _ => return None,
    };
    Some(ident.to_string())
}

impl<'ast> Visit<'ast> for Scan {
    fn visit_item(&mut self, item: &'ast Item) {
        if is_for_tests(attributes(item)) {
            if let Item::Mod(item) = item {
                self.tests.push(item.ident.to_string());
            }
            return;
        }
        if self.inside.is_empty() {
            self.items.extend(name(item));
        }
        visit::visit_item(self, item);
    }

    fn visit_impl_item(&mut self, item: &'ast ImplItem) {
        match item {
            ImplItem::Fn(function) if is_for_tests(&function.attrs) => {}
            _ => visit::visit_impl_item(self, item),
        }
    }

    fn visit_item_mod(&mut self, item: &'ast ItemMod) {
        self.inside.push(item.ident.to_string());
        visit::visit_item_mod(self, item);
        self.inside.pop();
    }

    fn visit_item_use(&mut self, item: &'ast ItemUse) {
        let is_passed_on = !matches!(item.vis, Visibility::Inherited);
        self.import(&item.tree, &[], is_passed_on);
    }

    fn visit_visibility(&mut self, _: &'ast Visibility) {}

    fn visit_attribute(&mut self, attribute: &'ast Attribute) {
        if let Meta::List(list) = &attribute.meta {
            let tokens = syn::buffer::TokenBuffer::new2(list.tokens.clone());
            self.tokens(tokens.begin(), true);
        }
    }

    fn visit_macro(&mut self, call: &'ast syn::Macro) {
        let path = segments(&call.path);
        self.macros.extend(path.last().cloned());
        self.add(path);
        let tokens = syn::buffer::TokenBuffer::new2(call.tokens.clone());
        self.tokens(tokens.begin(), false);
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        self.add(segments(path));
        visit::visit_path(self, path);
    }
}
