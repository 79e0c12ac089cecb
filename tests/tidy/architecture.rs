//! `ARCHITECTURE.md` names what exists.

use std::collections::BTreeSet;
use std::fs;

use super::names::types;
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
