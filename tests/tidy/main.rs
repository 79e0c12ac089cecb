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

use wva::cluster::kinds::WatchedKind;
use wva::policy::key::{ObjectKey, VariantKey};
use wva::roles::Role;
use wva_supervise::TreeRole as _;

mod architecture;
mod cases;
mod measures;
mod names;
mod words;

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
        "async ",
        "HashMap",
        "HashSet",
        "Instant",
        "SystemTime",
        "std::env",
        "std::fs",
        "TcpListener",
        "TcpStream",
        "UdpSocket",
    ];
    let mut broken = Vec::new();
    for folder in ["crates/base", "crates/policy", "crates/settings"] {
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
    let layers: [(&str, &[&str]); 4] = [
        ("src/signals", &["signals", "policy", "settings"]),
        ("src/api", &["api", "policy"]),
        ("src/cluster", &["cluster", "api", "policy", "settings"]),
        (
            "src/state",
            &["state", "cluster", "metrics", "policy", "settings", "hooks", "roles", "version"],
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
fn the_kit_names_nothing_of_the_controller() {
    let banned = ["kube", "Kube", "wva_policy", "wva_settings", "variant"];
    for (path, text) in sources("crates/supervise") {
        for (number, line) in code(&text) {
            let named = banned.iter().find(|word| line.contains(**word));
            assert_eq!(named, None, "{}:{number}", path.display());
        }
    }
}

#[test]
fn no_file_is_two_nouns() {
    for folder in ["src", "crates", "tests"] {
        for (path, text) in sources(folder) {
            let lines = text.lines().count();
            assert!(lines <= 500, "{} has {lines} lines", path.display());
        }
    }
}

fn all_roles() -> Vec<Role> {
    let mut roles: Vec<Role> = Role::single().collect();
    roles.push(Role::Variant(VariantKey::new("<ns>", "<name>")));
    roles.push(Role::PodAutoscaler(ObjectKey::new("<ns>", "<name>")));
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
    let named: BTreeSet<&str> =
        sections.iter().filter_map(|section| section.split('`').next()).collect();
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
        let Some(body) = text.split("Message {\n").nth(1) else {
            continue;
        };
        let body = body.split("\n}").next().unwrap();
        let role = path
            .file_stem()
            .unwrap()
            .to_string_lossy()
            .replace('_', "-")
            // Two roles have the messages of rounds.
            .replace("rounds", "target-scaler");
        let section = page
            .split("\n### `")
            .find(|section| section.starts_with(&format!("{role}`")))
            .unwrap_or_else(|| panic!("{} has no section in actors.md", path.display()));
        for line in
            body.lines().filter(|line| line.starts_with("    ") && !line.starts_with("     "))
        {
            let name: String =
                line.trim().chars().take_while(|letter| letter.is_alphanumeric()).collect();
            if name.starts_with(char::is_uppercase) {
                seen += 1;
                assert!(
                    section.contains(&format!("`{name}`")),
                    "{role}: message {name} is not named"
                );
            }
        }
    }
    assert!(seen > 15, "only {seen} messages were found; the check looks at the wrong thing");
}

#[test]
fn every_corrected_case_is_listed_for_migration() {
    let page = fs::read_to_string(root().join("docs/development/differences.md")).unwrap();
    let text = fs::read_to_string(root().join("tests/vectors/corrections.yaml")).unwrap();
    let listed: BTreeMap<String, String> = serde_yaml::from_str(&text).unwrap();
    for id in listed.keys() {
        let is_listed = page.contains(&format!("| {id} |"));
        assert!(is_listed, "{id} is not in docs/development/differences.md");
    }
    let cases = listed.len();
    assert!(cases > 70, "only {cases} corrections were found");
}
