//! `ARCHITECTURE.md` names what exists, and modules import one way.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use super::names::{product_sources, types};
use super::root;

fn page() -> String {
    fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap()
}

/// The texts between backticks, outside of fenced blocks.
fn quoted(page: &str) -> Vec<&str> {
    let prose = page.split("```").step_by(2);
    prose.flat_map(|part| part.split('`').skip(1).step_by(2)).collect()
}

#[test]
fn every_path_exists() {
    let page = page();
    let folders = ["src/", "crates/", "tests/", "docs/", "benches/", "charts/", "config/"];
    let paths: BTreeSet<&str> = quoted(&page)
        .into_iter()
        .filter(|text| folders.iter().any(|folder| text.starts_with(folder)))
        .filter(|text| !text.contains(char::is_whitespace))
        .collect();
    let count = paths.len();
    assert!(count > 60, "only {count} paths were found");
    let lost: Vec<&str> = paths.into_iter().filter(|path| !root().join(path).exists()).collect();
    assert_eq!(lost, Vec::<&str>::new());
}

#[test]
fn every_folder_of_the_sources_has_a_row() {
    let page = page();
    let quoted: BTreeSet<&str> = quoted(&page).into_iter().collect();
    let mut lacking = Vec::new();
    let folders = ["src", "crates"].map(|folder| fs::read_dir(root().join(folder)).unwrap());
    for entry in folders.into_iter().flatten() {
        let entry = entry.unwrap();
        let row = format!("{}/", super::names::relative(&entry.path()));
        if entry.path().is_dir() && !quoted.contains(row.as_str()) {
            lacking.push(row);
        }
    }
    assert_eq!(lacking, Vec::<String>::new());
}

/// The third column of the glossary holds types, and paths where a term has no type.
#[test]
fn every_type_of_the_glossary_is_defined() {
    let page = page();
    let glossary = page.split("\n## Glossary\n").nth(1).unwrap();
    let glossary = glossary.split("\n## ").next().unwrap();
    let defined = types(&["", "pub ", "pub(crate) ", "pub(super) "]);
    let mut rows = 0;
    let mut unknown = Vec::new();
    for row in glossary.lines().filter(|line| line.starts_with("| ")) {
        let Some(column) = row.trim_end_matches(" |").rsplit(" | ").next() else {
            continue;
        };
        rows += 1;
        let names = quoted(column).into_iter().filter(|name| !name.contains('/'));
        unknown.extend(names.filter(|name| !defined.contains_key(*name)));
    }
    assert!(rows > 50, "only {rows} rows were found");
    assert_eq!(unknown, Vec::<&str>::new());
}

/// The sources of each crate.
const CRATES: [&str; 7] = [
    "crates/base/src/",
    "crates/policy/src/",
    "crates/recording/src/",
    "crates/settings/src/",
    "crates/sim/src/",
    "crates/supervise/src/",
    "src/",
];

/// Imports between top-level modules that close a circle and stay: crate, module, what it imports.
const CIRCULAR: [(&str, &str, &str); 3] = [
    // Hooks are handed what they change, and stand in what they change.
    ("src/", "hooks", "serve"),
    ("src/", "hooks", "state"),
    // The flags of a running controller are read as its command line is.
    ("src/", "doctor", "cli"),
];

/// The top-level modules of a crate, each with those that it imports.
type Imports = BTreeMap<String, BTreeSet<String>>;

fn imports(folder: &str, sources: &[(String, String)]) -> Imports {
    let place = |path: &str| Some(path.strip_prefix(folder)?.strip_suffix(".rs")?.to_owned());
    let own = sources.iter().filter_map(|(path, text)| Some((place(path)?, text)));
    let own: Vec<(String, &String)> =
        own.filter(|(place, _)| place != "lib" && place != "main").collect();
    let module = |place: &str| place.split('/').next().unwrap().to_owned();
    let mut imports: Imports =
        own.iter().map(|(place, _)| (module(place), BTreeSet::new())).collect();
    for (place, text) in &own {
        let depth = place.split('/').filter(|part| *part != "mod").count();
        let code: Vec<&str> =
            text.lines().filter(|line| !line.trim_start().starts_with("//")).collect();
        let code = code.join("\n");
        let named = ["crate::".to_owned(), "super::".repeat(depth)]
            .iter()
            .flat_map(|root| paths(&code, root))
            .filter(|name| imports.contains_key(*name) && *name != module(place))
            .map(str::to_owned)
            .collect::<Vec<_>>();
        imports.get_mut(&module(place)).unwrap().extend(named);
    }
    imports
}

/// The first names of the paths that begin at `root`.
fn paths<'a>(code: &'a str, root: &str) -> Vec<&'a str> {
    let is_inside =
        |before: &str| before.ends_with(|letter: char| is_name(letter) || letter == ':');
    let found = code.match_indices(root).filter(|(at, _)| !is_inside(&code[..*at]));
    found.flat_map(|(at, _)| heads(&code[at + root.len()..])).collect()
}

fn is_name(letter: char) -> bool {
    letter.is_alphanumeric() || letter == '_'
}

/// The first name of a path, or of each path of a group.
fn heads(path: &str) -> Vec<&str> {
    let head = |path: &str| path.find(|letter: char| !is_name(letter)).unwrap_or(path.len());
    let Some(group) = path.strip_prefix('{') else {
        return vec![&path[..head(path)]];
    };
    let mut heads = Vec::new();
    let mut depth = 1;
    for part in group.split_inclusive(['{', '}', ',']).map(str::trim_start) {
        if depth == 1 {
            heads.push(&part[..head(part)]);
        }
        depth += i32::from(part.ends_with('{')) - i32::from(part.ends_with('}'));
        if depth == 0 {
            break;
        }
    }
    heads
}

fn reaches(imports: &Imports, from: &str, to: &str) -> bool {
    let (mut seen, mut open) = (BTreeSet::new(), vec![from]);
    while let Some(module) = open.pop() {
        if module == to {
            return true;
        }
        if seen.insert(module) {
            open.extend(imports[module].iter().map(String::as_str));
        }
    }
    false
}

#[test]
fn modules_of_a_crate_import_one_way() {
    let sources = product_sources();
    let mut circles = Vec::new();
    for folder in CRATES {
        let mut imports = imports(folder, &sources);
        let count = imports.len();
        assert!(count > 5, "only {count} modules were found in {folder}");
        for (_, module, other) in CIRCULAR.iter().filter(|(of, ..)| *of == folder) {
            assert!(reaches(&imports, other, module), "{module} and {other} form no circle");
            let is_known = imports.get_mut(*module).unwrap().remove(*other);
            assert!(is_known, "{module} does not import {other}");
        }
        for (module, others) in &imports {
            let closing = others.iter().filter(|other| reaches(&imports, other, module));
            circles.extend(closing.map(|other| format!("{folder}: {module} imports {other}")));
        }
    }
    assert_eq!(circles, Vec::<String>::new());
}

#[test]
fn imports_are_read_in_every_form() {
    let read = |path: &str, text: &str| {
        let others = ["crates/x/src/a.rs", "crates/x/src/b/mod.rs", "crates/x/src/c.rs"];
        let empty = others.map(|other| (other.to_owned(), String::new()));
        let mut sources = empty.to_vec();
        sources.push((path.to_owned(), text.to_owned()));
        imports("crates/x/src/", &sources).remove("b").unwrap().into_iter().collect::<Vec<_>>()
    };
    assert_eq!(read("crates/x/src/b/mod.rs", "use super::a::A;"), ["a"]);
    assert_eq!(read("crates/x/src/b/deep.rs", "use super::a::A;"), Vec::<String>::new());
    assert_eq!(read("crates/x/src/b/deep.rs", "use super::super::c;"), ["c"]);
    assert_eq!(read("crates/x/src/b/deep.rs", "let a = crate::a::f();"), ["a"]);
    assert_eq!(
        read("crates/x/src/b/deep.rs", "use crate::{\n    a::{c, d},\n    other::a,\n};"),
        ["a"]
    );
    assert_eq!(read("crates/x/src/b/deep.rs", "// use crate::a;"), Vec::<String>::new());
}
