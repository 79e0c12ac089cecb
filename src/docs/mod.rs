//! Pages of the documentation that are made from the code, and blocks of others that show what the
//! program prints, each compared with the file in the repository. `UPDATE=1 cargo test --lib docs`
//! writes them.

use std::fs;
use std::path::Path;

mod crd;
mod decisions;
mod events;
mod metrics;
mod queries;
mod settling;

/// Compares a page with its file below the repository, or writes it.
pub(crate) fn check(file: &str, page: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(file);
    if std::env::var_os("UPDATE").is_some() {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, page).unwrap();
    }
    let written = fs::read_to_string(&path).unwrap_or_default();
    assert!(written == page, "{file} is out of date: run with UPDATE=1");
}

/// A row of a table; a bar in a cell would end it.
fn row(cells: &[String]) -> String {
    let cells: Vec<String> = cells.iter().map(|cell| cell.replace('|', "\\|")).collect();
    format!("| {} |\n", cells.join(" | "))
}

fn code(text: &str) -> String {
    format!("`{text}`")
}

/// Compares the block that follows a line of a page with what the program prints, or writes it.
pub(crate) fn check_block(file: &str, after: &str, printed: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(file);
    let page = fs::read_to_string(&path).unwrap();
    let at = page.find(after).unwrap_or_else(|| panic!("{file}: {after}"));
    let opening = at + page[at..].find("```").unwrap();
    let begin = opening + page[opening..].find('\n').unwrap() + 1;
    let end = begin + page[begin..].find("```").unwrap();
    let lines: Vec<&str> = printed.lines().map(str::trim_end).collect();
    let printed = lines.join("\n") + "\n";
    if std::env::var_os("UPDATE").is_some() {
        let updated = [&page[..begin], &printed, &page[end..]].concat();
        fs::write(&path, updated).unwrap();
        return;
    }
    assert_eq!(
        &page[begin..end],
        printed,
        "the block after {after:?} of {file} is out of date: run with UPDATE=1"
    );
}
