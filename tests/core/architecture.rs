//! The promises of the layout of both crates: nothing imports in a circle, the core is pure, files are
//! short, folders are small, the map is complete.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use crate::architecture_support::imports::{Modules, Target};
use crate::architecture_support::{circles, page, read, root, roots, source, sources};

/// What the core must not name of the standard library.
const IMPURE_STD: &[&str] = &[
    "std::fs",
    "std::env",
    "std::net",
    "std::process",
    "std::io",
    "std::thread",
    "std::os",
    "std::time::SystemTime",
    "std::time::Instant",
];

/// Macros that the core must not call: they write.
const IMPURE_MACROS: &[&str] = &["print", "println", "eprint", "eprintln", "dbg"];

/// The derives of data types that the core may name of the client's library, which it depends on for them.
const DERIVES: &[&str] = &[
    "kube::KubeSchema",
    "kube::CustomResource",
    "kube::CustomResourceExt",
];

/// Most lines of one file, its tests not counted.
const LONGEST: usize = 400;

/// Most files of one folder beside its `mod.rs`: more do not stay in mind together.
const FULLEST: usize = 14;

/// Folders that may have more, because they are lists: nobody has to know all of it.
const LISTS: &[(&str, &str)] = &[
    ("rules/autoscaling", "one file per rule"),
    ("rules/ippr", "one file per rule"),
];

/// The modules that the maps in both `lib.rs` name: those of the core, then those of the shell.
fn maps() -> [Vec<String>; 2] {
    roots().map(|folder| listed(&read(&folder.join("lib.rs"))))
}

/// The names in the entries of a list: ``//! - [`path`], [`ray`]: ...``
fn listed(text: &str) -> Vec<String> {
    text.lines()
        .filter_map(|line| line.strip_prefix("//! - [`"))
        .filter_map(|entry| entry.split_once("]:"))
        .flat_map(|(names, _)| names.split(", "))
        .map(|name| name.trim_matches(['[', '`', ']']).to_owned())
        .collect()
}

#[test]
fn the_maps_name_every_module() {
    for (folder, map) in roots().iter().zip(maps()) {
        let lib = read(&folder.join("lib.rs"));
        let declared = lib.lines().filter_map(|line| {
            let name = line.trim_start_matches("pub ").strip_prefix("mod ")?;
            name.strip_suffix(';')
        });
        let mut declared: Vec<&str> = declared.collect();
        let mut map: Vec<&str> = map.iter().map(String::as_str).collect();
        assert!(declared.len() > 5, "{declared:?}");
        declared.sort_unstable();
        map.sort_unstable();
        assert_eq!(
            map,
            declared,
            "the map in {}/lib.rs (left)",
            folder.display()
        );
    }
}

/// A file that nothing declares is not compiled, and its tests never run.
#[test]
fn every_file_is_in_the_module_tree() {
    let mut declared = BTreeSet::new();
    for folder in roots() {
        let roots = ["lib.rs", "main.rs"].map(|root| folder.join(root));
        for root in roots.iter().filter(|root| root.exists()) {
            declare(root, &folder, &mut declared);
        }
    }
    for (file, _) in sources() {
        assert!(
            declared.contains(&file),
            "no `mod` declares {}: declare it or remove it",
            file.display()
        );
    }
}

/// Adds a file, and the files of the modules that it declares, which are in `folder`.
fn declare(file: &Path, folder: &Path, declared: &mut BTreeSet<PathBuf>) {
    declared.insert(file.to_owned());
    let file = syn::parse_file(&read(file)).unwrap();
    declare_modules(&file.items, folder, declared);
}

fn declare_modules(items: &[syn::Item], folder: &Path, declared: &mut BTreeSet<PathBuf>) {
    for item in items {
        let syn::Item::Mod(module) = item else {
            continue;
        };
        let inside = folder.join(module.ident.to_string());
        if let Some((_, items)) = &module.content {
            declare_modules(items, &inside, declared);
            continue;
        }
        let beside = inside.with_extension("rs");
        let file = if beside.exists() {
            beside
        } else {
            inside.join("mod.rs")
        };
        declare(&file, &inside, declared);
    }
}

#[test]
fn no_files_import_in_a_circle() {
    let circle = circles::find(&Modules::all().edges());
    let names = circle.map(|circle| circle.iter().map(|path| path.join("::")).collect());
    let names: Vec<String> = names.unwrap_or_default();
    assert!(
        names.is_empty(),
        "these import in a circle, {}: give what two of them need a file below both",
        names.join(" -> ")
    );
}

/// A module here is a folder with everything in it, or a file beside it, but for the settings and reasons of a slice:
/// what the whole planner lists of it lies beside it, and below all others.
#[test]
fn no_modules_import_in_a_circle_at_any_depth() {
    let level = |module: &Vec<String>| {
        let parts: Vec<&str> = module.iter().map(String::as_str).collect();
        match parts[..] {
            ["plan", "slices", slice, file @ ("settings" | "reason")] => {
                ["plan", "values of slices", slice, file]
                    .map(str::to_owned)
                    .into()
            }
            _ => module.clone(),
        }
    };
    let edges = Modules::all().edges();
    let edges: BTreeMap<Vec<String>, BTreeSet<Vec<String>>> = edges
        .iter()
        .map(|(from, to)| (level(from), to.iter().map(level).collect()))
        .collect();
    let deepest = edges.keys().map(Vec::len).max().unwrap();
    for depth in 0..deepest {
        let mut modules: BTreeMap<&[String], BTreeSet<&[String]>> = BTreeMap::new();
        for (from, imported) in &edges {
            for to in imported {
                let is_inside = from.len() > depth && to.len() > depth;
                if is_inside && from[..depth] == to[..depth] && from[depth] != to[depth] {
                    let imported = modules.entry(&from[..=depth]).or_default();
                    imported.insert(&to[..=depth]);
                }
            }
        }
        let circle = circles::find(&modules).unwrap_or_default();
        let names: Vec<String> = circle.iter().map(|path| path.join("::")).collect();
        assert!(
            names.is_empty(),
            "these modules import in a circle, {}: move what one needs of the other below both",
            names.join(" -> ")
        );
    }
}

/// The `mod.rs` of a folder puts together and re-exports what is inside. What modules inside need is in a
/// file below it.
#[test]
fn no_module_imports_from_the_root_of_its_own_folder() {
    let edges = Modules::all().edges();
    let upwards: Vec<String> = edges
        .iter()
        .flat_map(|(from, imported)| {
            let above = imported.iter().filter(|to| from.starts_with(to));
            above.map(|root| format!("{} -> {}", from.join("::"), root.join("::")))
        })
        .collect();
    assert!(
        upwards.is_empty(),
        "give what these need of the mod.rs of their folder a file:\n{}",
        upwards.join("\n")
    );
}

#[test]
fn the_core_is_pure() {
    let [core, _] = maps();
    let modules = Modules::all();
    let is_core = |module: &[String]| core.contains(&module[0]);
    for module in modules.scans.keys().filter(|module| is_core(module)) {
        let name = module.join("::");
        for target in modules.targets(module) {
            // Of the shell, and of the crates that only the shell depends on, the compiler knows nothing here.
            if let Target::Outside(path) = target {
                assert!(
                    is_pure(&path),
                    "{name} is of the pure core and names {}",
                    path.join("::")
                );
            }
        }
        for called in &modules.scans[module].macros {
            assert!(
                !IMPURE_MACROS.contains(&called.as_str()),
                "{name} is of the pure core and calls {called}!"
            );
        }
    }
    for name in &core {
        let exists = modules.scans.keys().any(|module| module[0] == *name);
        assert!(exists, "no file of the module {name}");
    }
}

/// The first of a path that leads out of the crate is a crate.
fn is_pure(path: &[String]) -> bool {
    let whole = path.join("::");
    let begins = |start: &str| {
        whole
            .strip_prefix(start)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with("::"))
    };
    let is_derive = DERIVES.iter().any(|name| begins(name));
    is_derive || !(begins("kube") || IMPURE_STD.iter().any(|name| begins(name)))
}

/// The lines of a file before its tests, which come last.
fn lines_of_code(text: &str) -> usize {
    let lines: Vec<&str> = text.lines().collect();
    let begins_tests = |at: usize| {
        let mut next = lines[at + 1..]
            .iter()
            .skip_while(|line| line.starts_with("//") || line.starts_with("#["));
        lines[at] == "#[cfg(test)]"
            && next.next().is_some_and(|line| {
                line.ends_with('{') && (line.starts_with("mod ") || line.contains(" mod "))
            })
    };
    let code = 0..lines.len();
    code.into_iter()
        .find(|at| begins_tests(*at))
        .unwrap_or(lines.len())
}

/// The most lines of code of the largest folders of both crates and of the others together, without blanks, comments and
/// tests. Lower a number where code goes; to raise one takes a reason that the commit gives.
const BUDGETS: [(&str, usize); 9] = [
    ("plan", 11_208),
    ("simulate", 8_778),
    ("rules", 5_956),
    ("reconcile", 3_826),
    ("controller", 3_532),
    ("cli", 3_701),
    ("snapshot", 2_486),
    ("manifests", 1_461),
    ("", 20_548),
];

#[test]
fn no_folder_grows_beyond_its_budget() {
    let is_test = |path: &Path| {
        let mut parts = path.components().map(std::path::Component::as_os_str);
        parts.any(|part| {
            ["tests", "tests.rs", "interleavings.rs"]
                .iter()
                .any(|name| part == *name)
        })
    };
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for (file, path) in sources() {
        if is_test(&path) {
            continue;
        }
        let text = read(&file);
        let lines = text.lines().take(lines_of_code(&text)).map(str::trim);
        let count = lines
            .filter(|line| !line.is_empty() && !line.starts_with("//"))
            .count();
        let folder = BUDGETS.iter().find(|(folder, _)| path.starts_with(folder));
        *counts
            .entry(folder.map_or("", |(folder, _)| folder))
            .or_default() += count;
    }
    let over = BUDGETS
        .iter()
        .filter(|(folder, most)| counts[folder] > *most);
    let over: Vec<_> = over
        .map(|(folder, most)| (folder, counts[folder], most))
        .collect();
    assert!(
        over.is_empty(),
        "folder, lines, budget: {over:?} of {counts:?}"
    );
}

#[test]
fn no_file_is_too_long_to_read() {
    for (path, _) in sources() {
        let lines = lines_of_code(&read(&path));
        assert!(
            lines <= LONGEST,
            "{} has {lines} lines: split it by idea",
            path.display()
        );
    }
}

#[test]
fn no_folder_has_too_many_files_to_keep_in_mind() {
    let mut folders: BTreeMap<&Path, usize> = BTreeMap::new();
    let files = sources();
    for (_, file) in files.iter().filter(|(file, _)| !file.ends_with("mod.rs")) {
        *folders.entry(file.parent().unwrap()).or_default() += 1;
    }
    for (name, reason) in LISTS {
        let count = folders.get(Path::new(name)).copied().unwrap_or_default();
        assert!(
            count > FULLEST,
            "{name} ({reason}) has {count} files and needs no exception"
        );
    }
    let is_list = |folder: &Path| LISTS.iter().any(|(name, _)| folder == Path::new(name));
    for (folder, count) in folders {
        // The top is the map in lib.rs.
        if folder != Path::new("") && !is_list(folder) {
            assert!(
                count <= FULLEST,
                "{} has {count} files: give those that belong together a folder",
                folder.display()
            );
        }
    }
}

/// The paths in backquotes that a page names below `tests` or another folder at the top, or below a folder of modules.
fn paths(text: &str) -> impl Iterator<Item = &str> {
    let quoted = text.split('`').skip(1).step_by(2);
    quoted.filter(|quoted| {
        let is_path = |c: char| c.is_ascii_alphanumeric() || "/._-".contains(c);
        let top = quoted.split('/').next().unwrap_or_default();
        let is_known = TOPS.contains(&top) || source(top).is_dir();
        quoted.contains('/') && quoted.chars().all(is_path) && is_known
    })
}

/// The folders at the top of which the map tells.
const TOPS: [&str; 9] = [
    "crates",
    "src",
    "tests",
    "docs",
    "scripts",
    "manifests",
    "benches",
    "fuzz",
    "proto",
];

#[test]
fn the_map_has_every_folder_at_the_top_and_pages_name_what_there_is() {
    let map = read(&root().join("CONTRIBUTING.md"));
    let code = read(&root().join("docs/code.md"));
    for path in paths(&map).chain(paths(&code)) {
        assert!(
            root().join(path).exists() || source(path).exists(),
            "CONTRIBUTING.md or docs/code.md names {path}: there is no such folder or file"
        );
    }
    let files = sources();
    let below = files.iter().map(|(_, below)| below);
    let folders = below.filter(|file| file.components().count() > 1);
    for folder in folders.filter_map(|file| file.iter().next()?.to_str()) {
        assert!(
            map.contains(&format!("`{folder}/`")),
            "CONTRIBUTING.md has no {folder}/ in its map"
        );
    }
}

/// Who is new here reads these pages from top to bottom. An answer that needs more files is a fault of the code.
#[test]
fn pages_for_newcomers_are_short() {
    for page in ["README.md", "CONTRIBUTING.md"] {
        let bytes = read(&root().join(page)).len();
        assert!(bytes <= 10_000, "{page} has {bytes} bytes");
    }
    let glossary = read(&root().join("docs/glossary.md"));
    let terms = glossary.matches("\n- **").count();
    assert!((1..=40).contains(&terms), "docs/glossary.md: {terms} terms");
    let code = read(&root().join("docs/code.md"));
    let answers = code
        .split("\n## ")
        .filter_map(|part| part.split_once("?\n"));
    assert!(answers.clone().count() > 4, "docs/code.md has no answers");
    for (question, answer) in answers {
        let named: BTreeSet<&str> = paths(answer).collect();
        assert!(
            (1..=6).contains(&named.len()),
            "docs/code.md: {question}? names {named:?}"
        );
    }
}

#[test]
fn main_stays_small() {
    let lines = read(&root().join("src/main.rs")).lines().count();
    assert!(lines < 25, "{lines} lines: the library is where things go");
}

/// The names of types that a file makes visible outside of itself.
fn type_names(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter_map(|line| {
        let mut words = line.split_whitespace();
        let visible = words.next()?;
        if visible != "pub" && !visible.starts_with("pub(") {
            return None;
        }
        // `pub(in a::b)` is two words.
        let kind = words.by_ref().find(|word| !word.ends_with(')'))?;
        let is_type = matches!(kind, "struct" | "enum" | "trait" | "type");
        let name = words.next().filter(|_| is_type)?;
        // A macro that declares types has no name for them.
        let name = name.split(|c: char| !c.is_alphanumeric()).next();
        name.filter(|name| !name.is_empty())
    })
}

#[test]
fn no_two_types_have_one_name() {
    let mut known: BTreeMap<String, PathBuf> = BTreeMap::new();
    for (path, _) in sources() {
        for name in type_names(&read(&path)) {
            let other = known.insert(name.to_owned(), path.clone());
            assert!(
                other.is_none(),
                "{} and {} both have a type {name}: both can be in one sentence",
                path.display(),
                other.unwrap_or_default().display()
            );
        }
    }
}

/// Folders whose modules the page on the architecture names, beside those at the top.
const DRAWN: &[&str] = &["", "plan", "reconcile", "controller"];

#[test]
fn the_page_on_the_architecture_names_what_there_is() {
    let text = read(&root().join("docs/architecture.md"));
    let names = page::Names::of(&text);
    let exists = |name: &str| source(name).exists() || source(format!("{name}.rs")).exists();
    let top = |name: &str| name.split('/').next().is_some_and(exists);
    let drawn = names.drawn.iter().filter(|name| name.contains('/'));
    let quoted = names
        .quoted
        .iter()
        .filter(|name| name.contains('/') && top(name));
    for name in drawn.chain(quoted) {
        assert!(
            exists(name),
            "docs/architecture.md names {name}: there is no such folder or file"
        );
    }
    for above in DRAWN {
        let folders = roots().map(|folder| folder.join(above));
        for entry in folders
            .iter()
            .filter_map(|folder| std::fs::read_dir(folder).ok())
            .flatten()
        {
            let path = entry.unwrap().path();
            let mut below = roots()
                .into_iter()
                .filter_map(|root| path.strip_prefix(root).ok());
            let name = below.next().unwrap().to_str().unwrap();
            assert!(
                !path.is_dir() || names.drawn.contains(name) || names.quoted.contains(name),
                "docs/architecture.md does not name {name}"
            );
        }
    }
}

/// A comment begins with a noun or a verb, not with a clause that stands for one.
#[test]
fn no_comment_begins_with_a_headless_clause() {
    let headless = [
        "What ", "For how ", "How ", "Who ", "Whose ", "Which ", "When ", "Where ", "Why ",
        "That ", "Those ",
    ];
    let mut found = Vec::new();
    for (path, _) in sources() {
        let text = read(&path);
        let mut begins = true;
        for (number, line) in text.lines().enumerate() {
            let comment = line.trim_start().strip_prefix("//");
            let comment = comment.map(|comment| comment.trim_start_matches(['/', '!']).trim());
            if let Some(comment) = comment.filter(|_| begins)
                && headless.iter().any(|clause| comment.starts_with(clause))
            {
                found.push(format!("{}:{}: {comment}", path.display(), number + 1));
            }
            begins = comment.is_none_or(str::is_empty);
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}
