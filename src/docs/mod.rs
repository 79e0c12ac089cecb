//! Pages of the documentation that are made from the code, each compared with the file in the
//! repository. `UPDATE=1 cargo test --lib docs` writes them.

use std::fs;
use std::path::Path;

mod crd;
mod events;
mod metrics;
mod queries;

/// Compares a page with its file below the repository, or writes it.
fn check(file: &str, page: &str) {
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
