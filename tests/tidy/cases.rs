//! Published cases: each is accounted for, and how many passed.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use super::root;

/// What became of a published case of which there may be several parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Fate<'a> {
    NotApplicable,
    Passed,
    /// Why the expected value is another one.
    Corrected(&'a str),
}

/// The family and the number of a published id; none of one of our own. What follows the number
/// distinguishes parts of a case.
fn published(id: &str) -> Option<(String, u32)> {
    let family: String =
        id.chars().take_while(|letter| !matches!(letter, '-' | '0'..='9')).collect();
    let family = match id.strip_prefix(&*family)?.strip_prefix(|digit: char| digit.is_ascii_digit())
    {
        // A digit within the name, as in SAT1A-01.
        Some(_) if id.contains('-') && family != "N" => id.split('-').next()?.to_owned(),
        _ => family,
    };
    let rest = id.strip_prefix(&*family)?.trim_start_matches('-');
    let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
    let is_name =
        family.chars().all(|letter| letter.is_ascii_uppercase() || letter.is_ascii_digit());
    let is_own = matches!(&*family, "OURS" | "OWN");
    (is_name && !is_own && !family.is_empty()).then_some((family, digits.parse().ok()?))
}

/// Every case of a document with its fate.
fn fates<'a>(document: &'a serde_yaml::Value, found: &mut Vec<(String, Fate<'a>)>) {
    if let Some(list) = document.as_sequence() {
        for one in list {
            fates(one, found);
        }
    }
    let Some(fields) = document.as_mapping() else {
        return;
    };
    if let Some(id) = document.get("id").and_then(serde_yaml::Value::as_str) {
        let corrected = document.get("corrected");
        let fate = match corrected.and_then(serde_yaml::Value::as_str) {
            Some(why) => Fate::Corrected(why),
            None if document.get("not_applicable").is_some() => Fate::NotApplicable,
            None => Fate::Passed,
        };
        found.push((id.to_owned(), fate));
        return;
    }
    for (key, value) in fields {
        let fate = match key.as_str() {
            Some("not_applicable") => Some(Fate::NotApplicable),
            Some("proven") => Some(Fate::Passed),
            _ => None,
        };
        match value.as_mapping().zip(fate) {
            Some((named, fate)) => {
                let ids = named.keys().filter_map(serde_yaml::Value::as_str);
                found.extend(ids.map(|id| (id.to_owned(), fate)));
            }
            _ => fates(value, found),
        }
    }
}

fn vectors() -> Vec<(String, serde_yaml::Value)> {
    let mut vectors = Vec::new();
    for entry in fs::read_dir(root().join("tests/vectors")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "yaml") {
            let name = path.file_stem().unwrap().to_string_lossy().into_owned();
            let text = fs::read_to_string(&path).unwrap();
            vectors.push((name, serde_yaml::from_str(&text).unwrap()));
        }
    }
    vectors.sort_by(|one, other| one.0.cmp(&other.0));
    vectors
}

/// The list of corrected cases, by its name.
const CORRECTIONS: &str = "corrections";

/// Corrected cases that stand in no table: one of the chart, which
/// `tests/cluster/cases/install/rendering.rs` runs, and rules of what this project does not have.
const WITHOUT_A_TABLE: [&str; 9] =
    ["CHT-01", "CHT-03", "CHT-13", "CM-21", "EXE-01", "EXE-03", "EXE-05", "N257", "N263"];

#[test]
fn every_listed_correction_is_a_corrected_case_and_every_one_is_listed_with_its_reason() {
    let mut corrected: BTreeMap<String, String> = BTreeMap::new();
    let mut listed: BTreeMap<String, String> = BTreeMap::new();
    for (name, document) in vectors() {
        if name == CORRECTIONS {
            listed = serde_yaml::from_value(document).unwrap();
            continue;
        }
        let mut found = Vec::new();
        fates(&document, &mut found);
        let mut ids = BTreeSet::new();
        for (id, fate) in found {
            assert!(ids.insert(id.clone()), "{id} stands twice in {name}");
            if let Fate::Corrected(why) = fate {
                assert!(!WITHOUT_A_TABLE.contains(&id.as_str()), "{id} is in {name}");
                corrected.insert(id, why.to_owned());
            }
        }
    }
    let without = WITHOUT_A_TABLE.map(|id| (id.to_owned(), listed[id].clone()));
    corrected.extend(without);
    assert_eq!(listed, corrected);
    assert!(listed.values().all(|why| !why.is_empty()));
}

/// `UPDATE=1 cargo test --test tidy published` writes the page anew.
#[test]
fn published_cases_are_counted() {
    let vectors = vectors();
    let mut cases: BTreeMap<(String, u32), Fate<'_>> = BTreeMap::new();
    for (name, document) in &vectors {
        let mut found = Vec::new();
        fates(document, &mut found);
        if let Some(list) = document.as_mapping().filter(|_| name == CORRECTIONS) {
            let ids = list.keys().filter_map(serde_yaml::Value::as_str);
            found.extend(ids.map(|id| (id.to_owned(), Fate::Corrected("listed"))));
        }
        for (id, fate) in found {
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
            Fate::Corrected(_) => 1,
            Fate::NotApplicable => 2,
        };
        counts[place] += 1;
    }
    let mut page = String::from(HEAD);
    let mut sum = [0; 3];
    for (family, counts) in &families {
        page += &row(family, *counts);
        sum.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count);
    }
    page += &row(&format!("all {}", cases.len()), sum);
    let path = root().join("tests/vectors/README.md");
    if std::env::var_os("UPDATE").is_some() {
        fs::write(&path, &page).unwrap();
    }
    assert_eq!(fs::read_to_string(&path).unwrap(), page, "UPDATE=1 writes it anew");
}

fn row(name: &str, [passed, corrected, without]: [usize; 3]) -> String {
    format!("| {name} | {passed} | {corrected} | {without} |\n")
}

const HEAD: &str = "\
# Published cases

Cases of the original and its later versions as data: what is given and what must come out. Unit tests
run each table and fail by the id of a case. `corrected` cases hold another value than the published one,
with the reason; docs/development/differences.md lists them. What says nothing about this project is `not_applicable`,
with the reason. Ids without a number of the catalogue are our own and are not counted. A case of several
parts counts once, as corrected if any part of it is.

`pod-autoscaler-sequences.json` is what AIBrix's own Go code decided over time by generated inputs: its windows, KPA, APA,
guard of pods on their way, stabilisation and bounds, after release 0.7. Of KPA the tolerance band was added to an earlier
state by the published lines of commit 774f93f8. Every source answers, texts parse, and bounds have no schedule: other quirks
are no arithmetic (Q1 to Q8, Q11, Q13, Q16 to Q19, Q21 to Q23), or of the strategy HPA (Q9), which PA cases have.

Counted from these files by `cargo test --test tidy published_cases_are_counted`; `UPDATE=1` before it
writes the table anew.

| family | passed | corrected | not applicable |
|---|---|---|---|
";
/// Where published cases stand.
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Account {
    /// The last case of each family; numbers are odd.
    published: BTreeMap<String, u32>,
    /// File or folder, and what stands in it.
    proven: BTreeMap<String, (String, String)>,
    not_applicable: BTreeMap<String, String>,
}

impl Account {
    fn ids(&self) -> impl Iterator<Item = String> {
        self.published.iter().flat_map(|(family, last)| {
            let numbers = (1..=*last).step_by(2);
            numbers.map(move |number| match family.as_str() {
                "N" => format!("N{number:03}"),
                _ => format!("{family}-{number:02}"),
            })
        })
    }
}

/// Whether a text names a case, not only the beginning of another one's name.
fn names_case(text: &str, id: &str) -> bool {
    text.match_indices(id).any(|(at, _)| {
        let before = text[..at].chars().next_back();
        let after = text[at + id.len()..].chars().next();
        let is_part = |letter: Option<char>| letter.is_some_and(|one| one.is_ascii_alphanumeric());
        !is_part(before) && before != Some('-') && !is_part(after)
    })
}

#[test]
fn every_published_case_is_accounted_for_once() {
    let mut vectors = String::new();
    let mut account = None;
    for entry in fs::read_dir(root().join("tests/vectors")).unwrap() {
        let path = entry.unwrap().path();
        let text = fs::read_to_string(&path).unwrap();
        if path.ends_with("accounted.yaml") {
            account = Some(serde_yaml::from_str::<Account>(&text).unwrap());
        } else {
            vectors.push_str(&text);
        }
    }
    let account = account.unwrap();
    let mut broken = Vec::new();
    let mut ids = BTreeSet::new();
    for id in account.ids() {
        let places = [
            names_case(&vectors, &id),
            account.proven.contains_key(&id),
            account.not_applicable.contains_key(&id),
        ];
        match places.iter().filter(|proven| **proven).count() {
            0 => broken.push(format!("{id} is proven nowhere")),
            1 => {}
            _ => broken.push(format!("{id} is proven more than once: {places:?}")),
        }
        ids.insert(id);
    }
    for (id, (place, name)) in &account.proven {
        let is_there =
            texts_of(&root().join(place)).iter().any(|text| text.contains(name.as_str()));
        if !is_there {
            broken.push(format!("{id}: {name} is not in {place}"));
        }
    }
    let known = account.proven.keys().chain(account.not_applicable.keys());
    broken.extend(known.filter(|id| !ids.contains(*id)).map(|id| format!("{id} is no case")));
    assert_eq!(broken, Vec::<String>::new());
    assert!(ids.len() > 700, "only {} cases", ids.len());
}

/// The text of a file, or of every file of a folder.
fn texts_of(place: &Path) -> Vec<String> {
    if place.is_file() {
        return vec![fs::read_to_string(place).unwrap()];
    }
    let entries = fs::read_dir(place).unwrap();
    entries.flat_map(|entry| texts_of(&entry.unwrap().path())).collect()
}
