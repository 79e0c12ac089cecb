//! Rules about the sources themselves.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs,
    reason = "test code"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use wva::kit::{Role, WatchedKind};
use wva::policy::key::VariantKey;

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn sources(folder: &str) -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    let mut folders = vec![root().join(folder)];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = fs::read_to_string(&path).unwrap();
                found.push((path, text));
            }
        }
    }
    assert!(!found.is_empty(), "no sources below {folder}");
    found.sort();
    found
}

/// Without test modules, comments and strings that tests hold.
fn code(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.lines()
        .enumerate()
        .take_while(|(_, line)| {
            !line.starts_with("#[cfg(test)]") && !line.starts_with("#[cfg(all(test")
        })
        .filter(|(_, line)| !line.trim_start().starts_with("//"))
        .map(|(number, line)| (number + 1, line))
}

fn is_test(path: &Path) -> bool {
    let path = path.to_string_lossy();
    path.contains("/tests/") || path.ends_with("tests.rs")
}

#[test]
fn the_decision_core_is_pure() {
    let banned = [
        "tokio",
        "ractor",
        "kube::",
        "k8s_openapi",
        "tracing",
        "async ",
        ".await",
        "HashMap",
        "HashSet",
        "Instant",
        "SystemTime",
        "std::env",
        "std::fs",
        "TcpListener",
        "TcpStream",
        "UdpSocket",
        "reqwest",
        "DashMap",
        "fastrand",
    ];
    let mut broken = Vec::new();
    for folder in ["src/policy", "src/settings"] {
        for (path, text) in sources(folder).iter().filter(|(path, _)| !is_test(path)) {
            for (number, line) in code(text) {
                for word in banned.iter().filter(|word| line.contains(**word)) {
                    broken.push(format!("{}:{number}: {word}", path.display()));
                }
            }
        }
    }
    assert_eq!(broken, Vec::<String>::new());
}

#[test]
fn dependencies_point_downwards() {
    // Each layer with what it may name of ours.
    let layers: [(&str, &[&str]); 6] = [
        ("src/policy", &["policy", "settings"]),
        ("src/settings", &["policy", "settings"]),
        ("src/kit", &["kit", "policy", "settings", "env"]),
        ("src/signals", &["signals", "policy", "settings"]),
        ("src/api", &["api", "policy"]),
        (
            "src/cluster",
            &[
                "cluster", "api", "policy", "settings", "kit", "claim", "env",
            ],
        ),
    ];
    let mut broken = Vec::new();
    for (folder, allowed) in layers {
        for (path, text) in sources(folder).iter().filter(|(path, _)| !is_test(path)) {
            for (number, line) in code(text) {
                for part in line.split("crate::").skip(1) {
                    let module: String = part
                        .chars()
                        .take_while(|letter| letter.is_alphanumeric() || *letter == '_')
                        .collect();
                    if !module.is_empty() && !allowed.contains(&&*module) {
                        broken.push(format!("{}:{number}: crate::{module}", path.display()));
                    }
                }
            }
        }
    }
    assert_eq!(broken, Vec::<String>::new());
}

#[test]
fn only_the_kit_names_ractor() {
    for (path, text) in sources("src") {
        if !path.to_string_lossy().contains("/kit/") {
            for (number, line) in code(&text) {
                // The log filter names it as a target.
                let named = line.contains("ractor::") || line.contains("use ractor");
                assert!(!named, "{}:{number}", path.display());
            }
        }
    }
}

#[test]
fn no_file_is_two_nouns() {
    for folder in ["src", "tests"] {
        for (path, text) in sources(folder) {
            let lines = text.lines().count();
            assert!(lines <= 500, "{} has {lines} lines", path.display());
        }
    }
}

fn all_roles() -> Vec<Role> {
    let mut roles = vec![
        Role::Root,
        Role::Config,
        Role::Leadership,
        Role::Egress,
        Role::Emitter,
        Role::StatusWriter,
        Role::EventRecorder,
        Role::Engine,
        Role::Collector,
        Role::Optimizer,
        Role::Variants,
        Role::Variant(VariantKey::new("<ns>", "<name>")),
        Role::Ingress,
        Role::ScaleReader,
        Role::Http,
    ];
    roles.extend(WatchedKind::ALL.into_iter().map(Role::Watcher));
    roles
}

#[test]
fn actors_md_shows_every_role_in_the_tree_and_no_other() {
    let page = fs::read_to_string(root().join("actors.md")).unwrap();
    let tree = page.split("```").nth(1).unwrap();
    let shown: BTreeSet<&str> = tree
        .lines()
        .filter_map(|line| line.split("─ ").nth(1))
        .filter_map(|line| line.split_whitespace().next())
        .collect();
    let names: Vec<String> = all_roles().iter().map(ToString::to_string).collect();
    let expected: BTreeSet<&str> = names.iter().map(|name| &**name).collect();
    assert_eq!(shown, expected);
}

#[test]
fn actors_md_has_one_section_per_role_in_the_fixed_form() {
    let page = fs::read_to_string(root().join("actors.md")).unwrap();
    let sections: Vec<&str> = page.split("\n### `").skip(1).collect();
    let named: BTreeSet<&str> = sections
        .iter()
        .filter_map(|section| section.split('`').next())
        .collect();
    let roles = all_roles();
    let labels: BTreeSet<&str> = roles.iter().map(Role::label).collect();
    assert_eq!(named, labels);
    let supervisors = ["root", "egress", "engine", "ingress"];
    for section in sections {
        let name = section.split('`').next().unwrap();
        let mut wanted = vec!["- Owns:", "- Restart policy:", "- Its death costs:"];
        if !supervisors.contains(&name) {
            wanted.extend(["- Reads:", "- Writes:", "- Messages:"]);
        }
        for part in wanted {
            assert!(section.contains(part), "section {name} lacks {part:?}");
        }
    }
}

#[test]
fn actors_md_names_every_message() {
    let page = fs::read_to_string(root().join("actors.md")).unwrap();
    let mut seen = 0;
    for (path, text) in sources("src/actors") {
        let Some(body) = text.split("pub enum Message {").nth(1) else {
            continue;
        };
        let body = body.split("\n}").next().unwrap();
        let role = path
            .file_stem()
            .unwrap()
            .to_string_lossy()
            .replace('_', "-");
        let section = page
            .split("\n### `")
            .find(|section| section.starts_with(&format!("{role}`")))
            .unwrap_or_else(|| panic!("{} has no section in actors.md", path.display()));
        for line in body
            .lines()
            .filter(|line| line.starts_with("    ") && !line.starts_with("     "))
        {
            let name: String = line
                .trim()
                .chars()
                .take_while(|letter| letter.is_alphanumeric())
                .collect();
            if name.starts_with(char::is_uppercase) {
                seen += 1;
                assert!(
                    section.contains(&format!("`{name}`")),
                    "{role}: message {name} is not named"
                );
            }
        }
    }
    assert!(
        seen > 15,
        "only {seen} messages were found; the check looks at the wrong thing"
    );
}

#[test]
fn every_corrected_case_is_told_to_those_who_migrate() {
    let page = fs::read_to_string(root().join("docs/differences.md")).unwrap();
    let mut cases = 0;
    for entry in fs::read_dir(root().join("tests/vectors")).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if !name.starts_with("corrections") {
            continue;
        }
        let text = fs::read_to_string(&path).unwrap();
        let document: serde_yaml::Value = serde_yaml::from_str(&text).unwrap();
        let listed = document
            .get("corrections")
            .and_then(|list| list.as_sequence());
        let ids: Vec<String> = if let Some(list) = listed {
            let id = |case: &serde_yaml::Value| case["id"].as_str().unwrap().to_owned();
            list.iter().map(id).collect()
        } else {
            let map = document.as_mapping().unwrap();
            map.keys()
                .map(|id| id.as_str().unwrap().to_owned())
                .collect()
        };
        for id in ids {
            cases += 1;
            assert!(
                page.contains(&format!("| {id} |")),
                "{name}: {id} is not in docs/differences.md"
            );
        }
    }
    assert!(cases > 30, "only {cases} corrections were found");
}

/// What became of a published case of which there may be several parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Fate {
    NotApplicable,
    Passed,
    Corrected,
}

/// The family and the number of a published id; none of one of our own. What follows the number tells
/// parts of a case apart.
fn published(id: &str) -> Option<(String, u32)> {
    let family: String = id
        .chars()
        .take_while(|letter| !matches!(letter, '-' | '0'..='9'))
        .collect();
    let family = match id
        .strip_prefix(&*family)?
        .strip_prefix(|digit: char| digit.is_ascii_digit())
    {
        // A digit within the name, as in SAT1A-01.
        Some(_) if id.contains('-') && family != "N" => id.split('-').next()?.to_owned(),
        _ => family,
    };
    let rest = id.strip_prefix(&*family)?.trim_start_matches('-');
    let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
    let is_name = family
        .chars()
        .all(|letter| letter.is_ascii_uppercase() || letter.is_ascii_digit());
    let is_own = matches!(&*family, "OURS" | "OWN");
    (is_name && !is_own && !family.is_empty()).then_some((family, digits.parse().ok()?))
}

/// Every case of a document with its fate.
fn fates(document: &serde_yaml::Value, found: &mut Vec<(String, Fate)>) {
    if let Some(list) = document.as_sequence() {
        list.iter().for_each(|one| fates(one, found));
    }
    let Some(fields) = document.as_mapping() else {
        return;
    };
    if let Some(id) = document.get("id").and_then(serde_yaml::Value::as_str) {
        let fate = match document {
            case if case.get("corrected").is_some() => Fate::Corrected,
            case if case.get("not_applicable").is_some() => Fate::NotApplicable,
            _ => Fate::Passed,
        };
        found.push((id.to_owned(), fate));
        return;
    }
    for (key, value) in fields {
        match value.as_mapping() {
            Some(left_out) if key.as_str() == Some("not_applicable") => {
                let ids = left_out.keys().filter_map(serde_yaml::Value::as_str);
                found.extend(ids.map(|id| (id.to_owned(), Fate::NotApplicable)));
            }
            _ => fates(value, found),
        }
    }
}

fn vectors() -> Vec<(String, serde_yaml::Value)> {
    let mut vectors = Vec::new();
    for entry in fs::read_dir(root().join("tests/vectors")).unwrap() {
        let path = entry.unwrap().path();
        if path
            .extension()
            .is_some_and(|extension| extension == "yaml")
        {
            let name = path.file_stem().unwrap().to_string_lossy().into_owned();
            let text = fs::read_to_string(&path).unwrap();
            vectors.push((name, serde_yaml::from_str(&text).unwrap()));
        }
    }
    vectors.sort_by(|one, other| one.0.cmp(&other.0));
    vectors
}

/// The cases that functions test instead of tables, each in a file that names it.
#[test]
fn cases_without_a_table_are_named_where_they_are_tested() {
    let named = vectors()
        .into_iter()
        .find(|(name, _)| name == "unit")
        .unwrap()
        .1;
    for case in named.as_sequence().unwrap() {
        let Some(file) = case["file"].as_str() else {
            assert!(case["not_applicable"].is_string(), "{case:?}: why?");
            continue;
        };
        let text = fs::read_to_string(root().join(file))
            .unwrap()
            .to_uppercase();
        let id = case["id"].as_str().unwrap();
        assert!(text.contains(id), "{file} does not name {id}");
    }
}

/// `UPDATE=1 cargo test --test tidy published` writes the page anew.
#[test]
fn published_cases_are_counted() {
    let mut cases: BTreeMap<(String, u32), Fate> = BTreeMap::new();
    for (name, document) in vectors() {
        let mut found = Vec::new();
        let is_list = name.starts_with("corrections");
        fates(&document, &mut found);
        if let Some(list) = document.as_mapping().filter(|_| is_list) {
            let ids = list.keys().filter_map(serde_yaml::Value::as_str);
            found.extend(ids.map(|id| (id.to_owned(), Fate::Corrected)));
        }
        for (id, fate) in found {
            let fate = if is_list { Fate::Corrected } else { fate };
            if let Some(case) = published(&id) {
                let known = cases.entry(case).or_insert(fate);
                *known = fate.max(*known);
            }
        }
    }
    let mut families: BTreeMap<&str, [usize; 3]> = BTreeMap::new();
    for ((family, _), fate) in &cases {
        let counts = families.entry(family).or_default();
        let place = match fate {
            Fate::Passed => 0,
            Fate::Corrected => 1,
            Fate::NotApplicable => 2,
        };
        counts[place] += 1;
    }
    let mut page = String::from(HEAD);
    let mut sum = [0; 3];
    for (family, counts) in &families {
        page += &row(family, *counts);
        sum.iter_mut()
            .zip(counts)
            .for_each(|(sum, count)| *sum += count);
    }
    page += &row(&format!("all {}", cases.len()), sum);
    let path = root().join("tests/vectors/README.md");
    if std::env::var_os("UPDATE").is_some() {
        fs::write(&path, &page).unwrap();
    }
    assert_eq!(
        fs::read_to_string(&path).unwrap(),
        page,
        "UPDATE=1 writes it anew"
    );
}

fn row(name: &str, [passed, corrected, without]: [usize; 3]) -> String {
    format!("| {name} | {passed} | {corrected} | {without} |\n")
}

const HEAD: &str = "\
# Published cases

Cases of the original and its later versions as data: what is given and what must come out. Unit tests
run each table and fail by the id of a case. `corrected` cases hold another value than the published one,
with the reason; docs/differences.md lists them. What says nothing about this project is `not_applicable`,
with the reason. Ids without a number of the catalogue are our own and are not counted. A case of several
parts counts once, as corrected if any part of it is.

Counted from these files by `cargo test --test tidy published_cases_are_counted`; `UPDATE=1` before it
writes the table anew.

| family | passed | corrected | not applicable |
|---|---|---|---|
";
