//! Blocks of the documentation that show what the program prints, compared with the pages. `UPDATE=1 cargo test -p
//! wva-sim --lib` writes them.

use std::fs;
use std::path::Path;

/// Compares the block that follows a line of a page with what the program prints, or writes it.
pub(crate) fn check_block(file: &str, after: &str, printed: &str) {
    let path = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")).join(file);
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
