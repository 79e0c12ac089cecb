//! One public name, one type.

use std::collections::BTreeMap;
use std::path::Path;

use super::{is_test, root, sources};

/// Modules that only tests have and whose path does not say so.
const TEST_MODULES: [&str; 8] = [
    "crates/sim/src/cli/demo/sample.rs",
    "src/cli/plan/cases.rs",
    "src/cli/vectors.rs",
    "src/cluster/fake.rs",
    "src/docs/",
    "crates/sim/src/documents.rs",
    "crates/settings/src/docs.rs",
    "crates/settings/src/vectors/",
];

/// Types of one build whose other build has them under the same names.
const OTHER_BUILD: &str = "crates/supervise/src/hooks/empty.rs";

/// A path as people write it: from the root of the repository, with slashes.
pub(super) fn relative(path: &Path) -> String {
    let below = path.strip_prefix(root()).unwrap_or(path);
    below.to_string_lossy().replace('\\', "/")
}

/// The files of `src/` and `crates/` that are compiled into the program, each with its text but for the test modules in it.
pub(super) fn product_sources() -> Vec<(String, String)> {
    let all = ["src", "crates"].into_iter().flat_map(sources);
    let found = all.filter_map(|(path, text)| {
        let name = relative(&path);
        let is_left_out =
            is_test(&path) || TEST_MODULES.iter().any(|module| name.starts_with(module));
        let is_left_out = is_left_out || name == OTHER_BUILD;
        (!is_left_out).then(|| (name, without_tests(&text)))
    });
    found.collect()
}

#[derive(Clone, Copy)]
enum Place {
    Product,
    /// After the attribute, before the item that it belongs to.
    TestItem,
    TestBlock,
}

/// A source without its items under `#[cfg(test)]`, by the layout of rustfmt.
fn without_tests(text: &str) -> String {
    let mut kept = String::new();
    let mut place = Place::Product;
    for line in text.lines() {
        place = match place {
            Place::Product
                if line.starts_with("#[cfg(test)]") || line.starts_with("#[cfg(all(test") =>
            {
                Place::TestItem
            }
            Place::Product => {
                kept.push_str(line);
                kept.push('\n');
                Place::Product
            }
            Place::TestItem if line.ends_with(';') => Place::Product,
            Place::TestItem if line.ends_with('{') => Place::TestBlock,
            Place::TestBlock if line == "}" => Place::Product,
            other => other,
        };
    }
    kept
}

/// The type that a line defines, if it does; with `visibility` before its keyword.
fn defined<'a>(line: &'a str, visibility: &str) -> Option<&'a str> {
    let item = line.trim_start().strip_prefix(visibility)?;
    let keywords = ["struct ", "enum ", "trait ", "type "];
    let name = keywords.iter().find_map(|keyword| item.strip_prefix(keyword))?;
    let is_part = |letter: char| letter.is_alphanumeric() || letter == '_';
    let end = name.find(|letter: char| !is_part(letter)).unwrap_or(name.len());
    Some(&name[..end])
}

/// Types by name, each with the places that define it.
pub(super) fn types(visibilities: &[&str]) -> BTreeMap<String, Vec<String>> {
    let mut types: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (path, text) in product_sources() {
        for line in text.lines() {
            let names = visibilities.iter().filter_map(|visibility| defined(line, visibility));
            for name in names {
                types.entry(name.to_owned()).or_default().push(path.clone());
            }
        }
    }
    types
}

#[test]
fn public_types_have_names_of_their_own() {
    let types = types(&["pub ", "pub(crate) "]);
    let count = types.len();
    assert!(count > 500, "only {count} public types were found");
    let repeated: BTreeMap<&String, &Vec<String>> =
        types.iter().filter(|(_, places)| places.len() > 1).collect();
    assert!(repeated.is_empty(), "one name for several types: {repeated:#?}");
}
