//! Figures of the repository itself that docs/development/measures.md states.

use std::fs;

use super::names::product_sources;
use super::root;

/// A figure of the page is written anew once it is off by one in so many.
const TOLERANCE: usize = 50;

/// The second figure of the row that begins with a name: what was measured last.
fn stated(page: &str, name: &str) -> usize {
    let row = page.lines().find(|line| line.starts_with(&format!("| {name} |")));
    let row = row.unwrap_or_else(|| panic!("measures.md has no row {name:?}"));
    let cell = row.split('|').nth(3).unwrap();
    let digits: String = cell.chars().filter(char::is_ascii_digit).collect();
    digits.parse().unwrap_or_else(|_| panic!("{cell:?} of {name:?} is no figure"))
}

fn words_below(folder: &str) -> usize {
    let entries = fs::read_dir(root().join(folder)).unwrap().map(|entry| entry.unwrap().path());
    let counts = entries.map(|path| match path.extension() {
        _ if path.is_dir() => words_below(path.to_str().unwrap()),
        Some(extension) if extension == "md" => words_of(path.to_str().unwrap()),
        _ => 0,
    });
    counts.sum()
}

fn words_of(file: &str) -> usize {
    fs::read_to_string(root().join(file)).unwrap().split_whitespace().count()
}

#[test]
fn the_measures_of_the_repository_are_those_of_the_page() {
    let page = fs::read_to_string(root().join("docs/development/measures.md")).unwrap();
    let lines: usize = product_sources().iter().map(|(_, text)| text.lines().count()).sum();
    let pages = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "actors.md"];
    let words = words_below("docs") + pages.into_iter().map(words_of).sum::<usize>();
    let chaos = words_of("docs/development/chaos.md");
    for (name, counted) in [
        ("lines of Rust without tests", lines),
        ("words of documentation", words),
        ("words of chaos.md", chaos),
    ] {
        let stated = stated(&page, name);
        let is_true = stated.abs_diff(counted) * TOLERANCE <= counted;
        assert!(is_true, "{name}: {counted} and not {stated}; write it anew");
    }
}
