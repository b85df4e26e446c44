//! Which module imports which, each name followed to the file in which it stands.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::LazyLock;

use super::scan::{Path, Scan};
use super::{read, sources};

/// The modules of both crates, by their paths. Those that are only there for tests are not among them.
pub(crate) struct Modules {
    /// What each of them names.
    pub(crate) scans: BTreeMap<Path, Scan>,
    /// The file of each.
    pub(crate) files: BTreeMap<Path, PathBuf>,
    /// What each name in each of them stands for, from the root of the crate or of another one.
    names: BTreeMap<Path, BTreeMap<String, Path>>,
    /// What each of them takes everything of.
    globs: BTreeMap<Path, Vec<Path>>,
}

/// Where a path leads.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Target {
    /// To one of our modules.
    Module(Path),
    /// Out of the crate, or to the language.
    Outside(Path),
}

impl Modules {
    /// All of them.
    pub(crate) fn all() -> &'static Self {
        static MODULES: LazyLock<Modules> = LazyLock::new(Modules::read);
        &MODULES
    }

    /// Reads all of them. The crate's root and its program are not among them: they only put
    /// together.
    fn read() -> Self {
        let mut modules = Self {
            scans: BTreeMap::new(),
            files: BTreeMap::new(),
            names: BTreeMap::new(),
            globs: BTreeMap::new(),
        };
        for (file, below) in sources() {
            let mut path: Path = below
                .with_extension("")
                .iter()
                .map(|part| part.to_str().unwrap().to_owned())
                .collect();
            path.pop_if(|last| last == "mod");
            if path != ["lib"] && path != ["main"] {
                modules.scans.insert(path.clone(), Scan::of(&read(&file)));
                modules.files.insert(path, file);
            }
        }
        modules.forget_tests();
        modules.name();
        modules
    }

    fn forget_tests(&mut self) {
        let tests: Vec<Path> = self
            .scans
            .iter()
            .flat_map(|(path, scan)| {
                let tests = scan.tests.iter();
                tests.map(|name| [&path[..], std::slice::from_ref(name)].concat())
            })
            .collect();
        let is_kept = |path: &Path| !tests.iter().any(|test| path.starts_with(test));
        self.scans.retain(|path, _| is_kept(path));
        self.files.retain(|path, _| is_kept(path));
    }

    fn name(&mut self) {
        for (module, scan) in &self.scans {
            let mut names = BTreeMap::new();
            let mut globs = Vec::new();
            for import in scan
                .imports
                .iter()
                .filter(|import| import.inside.is_empty())
            {
                let path = self.rooted(module, &[], &import.path);
                if import.name == "*" {
                    globs.push(path);
                } else {
                    names.insert(import.name.clone(), path);
                }
            }
            self.names.insert(module.clone(), names);
            self.globs.insert(module.clone(), globs);
        }
    }

    fn is_module(&self, path: &[String]) -> bool {
        self.scans.contains_key(path)
    }

    /// A path of `module` from the root: `crate` stands before those of ours.
    fn rooted(&self, module: &[String], inside: &[String], path: &[String]) -> Path {
        let mut base = [module, inside].concat();
        let mut rest = path;
        match path.first().map(String::as_str) {
            // No module of the core has the name of one of the shell, so both are in one tree.
            Some("crate" | "rayfit_core") => {
                base.clear();
                rest = &path[1..];
            }
            Some("self" | "super") => {
                while let Some(step @ ("self" | "super")) = rest.first().map(String::as_str) {
                    if step == "super" {
                        base.pop();
                    }
                    rest = &rest[1..];
                }
            }
            Some(first) => {
                let child = [module, &[first.to_owned()]].concat();
                if !self.is_module(&child) {
                    return path.to_vec();
                }
                base = module.to_vec();
            }
            None => {}
        }
        [&["crate".to_owned()], &base[..], rest].concat()
    }

    /// Follows a path of `module` to the module in which its last name stands.
    fn follow(&self, module: &[String], inside: &[String], path: &[String]) -> Target {
        let named = path
            .first()
            .and_then(|first| self.names.get(module)?.get(first));
        match named {
            Some(named) => self.target([&named[..], &path[1..]].concat(), 0),
            None => self.target(self.rooted(module, inside, path), 0),
        }
    }

    fn target(&self, path: Path, depth: usize) -> Target {
        if path.first().is_none_or(|first| first != "crate") {
            return Target::Outside(path);
        }
        let path = &path[1..];
        let length = (0..=path.len())
            .rev()
            .find(|length| *length == 0 || self.is_module(&path[..*length]))
            .unwrap();
        let (module, rest) = path.split_at(length);
        let passed_on = rest.first().filter(|_| depth < 16).and_then(|first| {
            let stands_here = self.scans.get(module)?.items.contains(first);
            if stands_here {
                return None;
            }
            let named = self.names.get(module)?.get(first);
            named
                .map(|named| [&named[..], &rest[1..]].concat())
                .or_else(|| {
                    let mut globs = self.globs.get(module)?.iter();
                    let from = globs.find(|from| {
                        from.first().is_some_and(|first| first == "crate")
                            && self
                                .scans
                                .get(&from[1..])
                                .is_some_and(|scan| scan.items.contains(first))
                    })?;
                    Some([&from[..], rest].concat())
                })
        });
        match passed_on {
            Some(path) => self.target(path, depth + 1),
            None => Target::Module(module.to_vec()),
        }
    }

    /// Where everything leads that `module` names.
    pub(crate) fn targets(&self, module: &Path) -> Vec<Target> {
        let scan = &self.scans[module];
        let imports = scan.imports.iter().map(|import| {
            let path = self.rooted(module, &import.inside, &import.path);
            // A name that is imported here must not be followed from its own import.
            let is_own = path[0] == "crate" || import.path.first() == Some(&import.name);
            if is_own {
                self.target(path, 0)
            } else {
                self.follow(module, &import.inside, &import.path)
            }
        });
        let paths = scan.paths.iter();
        imports
            .chain(paths.map(|(inside, path)| self.follow(module, inside, path)))
            .collect()
    }

    /// Which modules each of them imports. What a `mod.rs` takes from inside its folder is not among
    /// it: a root puts together and passes on.
    pub(crate) fn edges(&self) -> BTreeMap<Path, BTreeSet<Path>> {
        self.scans
            .keys()
            .map(|module| {
                let targets = self.targets(module).into_iter();
                let imported = targets.filter_map(|target| match target {
                    Target::Module(other) if !other.starts_with(module) => Some(other),
                    _ => None,
                });
                let imported = imported.filter(|other| !other.is_empty());
                (module.clone(), imported.collect())
            })
            .collect()
    }
}
