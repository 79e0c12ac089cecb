//! Words that the project does not use: counted for each file, and the counts only fall.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;

use super::names::{product_sources, relative};
use super::{root, sources};

/// In pages, in the comments of all sources, and in the string literals of the product, which are messages.
/// Matched as whole words, in any case, over line breaks. The last two are left by a merge.
const WORDS: [&str; 19] = [
    "told", "tell", "tells", "heard", "hear", "hears", "whoever", "nobody", "somebody", "of late",
    "beside", "asks for", "comes to", "dearest", "say of", "says of", "such", "<<<<<<<", ">>>>>>>",
];

/// The counts that are left: a path and a number in each line.
const TABLE: &str = "tests/tidy/words.txt";

fn is_word_part(letter: Option<char>) -> bool {
    letter.is_some_and(|letter| letter.is_alphanumeric() || letter == '_')
}

fn count(text: &str) -> usize {
    let words: Vec<&str> = text.split_whitespace().collect();
    let text = words.join(" ").to_ascii_lowercase();
    let is_whole = |at: usize, word: &str| {
        let before = text[..at].chars().next_back();
        let after = text[at + word.len()..].chars().next();
        !is_word_part(before) && !is_word_part(after)
    };
    let of_word = |word: &&str| {
        let places = text.match_indices(*word);
        places.filter(|&(at, found)| is_whole(at, found)).count()
    };
    WORDS.iter().map(of_word).sum()
}

/// What follows a literal that `text` begins with, and what the literal holds; escapes count as spaces.
fn plain_literal(text: &str) -> (String, &str) {
    let mut held = String::new();
    let mut letters = text.char_indices();
    while let Some((at, letter)) = letters.next() {
        match letter {
            '"' => return (held, &text[at + 1..]),
            '\\' => {
                letters.next();
                held.push(' ');
            }
            _ => held.push(letter),
        }
    }
    (held, "")
}

/// The same of a raw literal, from its hashes on; `None` if there is none.
fn raw_literal(text: &str) -> Option<(String, &str)> {
    let inner = text.trim_start_matches('#');
    let hashes = &text[..text.len() - inner.len()];
    let inner = inner.strip_prefix('"')?;
    let end = format!("\"{hashes}");
    let (held, rest) = inner.split_once(&*end).unwrap_or((inner, ""));
    Some((held.to_owned(), rest))
}

/// What follows a character between apostrophes; of a lifetime, what follows its apostrophe.
fn after_apostrophe(text: &str) -> &str {
    let mut letters = text.chars();
    let (first, second) = (letters.next(), letters.next());
    let end = match (first, second) {
        (Some('\\'), Some(escaped)) => {
            let start = 1 + escaped.len_utf8();
            text[start..].find('\'').map(|length| start + length)
        }
        (Some(letter), Some('\'')) => Some(letter.len_utf8()),
        _ => None,
    };
    end.map_or(text, |end| &text[end + 1..])
}

/// The string literals of a source, and its comments, each on lines of its own.
fn literals_and_comments(source: &str) -> [String; 2] {
    let (mut literals, mut comments) = (String::new(), String::new());
    let mut rest = source;
    let mut before = None;
    while let Some(letter) = rest.chars().next() {
        let after = &rest[letter.len_utf8()..];
        let is_raw = letter == 'r' && (before == Some('b') || !is_word_part(before));
        let raw = raw_literal(after).filter(|_| is_raw);
        let literal = if letter == '"' { Some(plain_literal(after)) } else { raw };
        before = Some(letter);
        rest = if let Some((held, after)) = literal {
            before = None;
            literals.push_str(&held);
            literals.push('\n');
            after
        } else if rest.starts_with("//") {
            let (comment, after) = rest.split_at(rest.find('\n').unwrap_or(rest.len()));
            comments.push_str(comment.trim_start_matches(['/', '!']));
            comments.push('\n');
            after
        } else if letter == '\'' {
            after_apostrophe(after)
        } else {
            after
        };
    }
    [literals, comments]
}

/// The pages below a folder.
fn pages(folder: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(root().join(folder)).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(pages(&relative(&path)));
        } else if path.extension().is_some_and(|extension| extension == "md") {
            found.push(path);
        }
    }
    found
}

/// Every file that holds one of the words, and how many of them.
fn counted() -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    let top = ["README.md", "CONTRIBUTING.md", "ARCHITECTURE.md", "actors.md"]
        .map(|page| root().join(page));
    for path in top.into_iter().chain(pages("docs")) {
        let text = fs::read_to_string(&path).unwrap();
        counts.insert(relative(&path), count(&text));
    }
    for (path, text) in product_sources() {
        counts.insert(path, count(&literals_and_comments(&text)[0]));
    }
    for (path, text) in ["src", "crates", "tests", "benches"].into_iter().flat_map(sources) {
        *counts.entry(relative(&path)).or_default() += count(&literals_and_comments(&text)[1]);
    }
    counts.retain(|_, count| *count > 0);
    counts
}

fn budgets() -> BTreeMap<String, usize> {
    let table = fs::read_to_string(root().join(TABLE)).unwrap();
    let mut budgets = BTreeMap::new();
    for line in table.lines() {
        let (path, budget) = line.rsplit_once(' ').unwrap();
        budgets.insert(path.to_owned(), budget.parse::<usize>().unwrap());
    }
    budgets
}

/// `UPDATE=1 cargo test --test tidy words` lowers the table, and never raises it.
#[test]
fn words_that_are_not_used_only_become_fewer() {
    let counted = counted();
    let mut budgets = budgets();
    if std::env::var_os("UPDATE").is_some() {
        budgets.retain(|path, budget| {
            let count = counted.get(path).copied().unwrap_or(0);
            *budget = count.min(*budget);
            *budget > 0
        });
        let lines: Vec<String> =
            (budgets.iter()).map(|(path, budget)| format!("{path} {budget}\n")).collect();
        fs::write(root().join(TABLE), lines.concat()).unwrap();
    }
    let paths: BTreeSet<&String> = counted.keys().chain(budgets.keys()).collect();
    let of = |table: &BTreeMap<String, usize>, path: &String| table.get(path).copied().unwrap_or(0);
    let broken: Vec<String> = paths
        .into_iter()
        .filter_map(|path| match (of(&counted, path), of(&budgets, path)) {
            (count, budget) if count > budget => Some(format!(
                "{path} has {count} of the words {WORDS:?}, and {budget} are allowed: use others"
            )),
            (count, budget) if count < budget => Some(format!(
                "{path} has {count}, and {TABLE} says {budget}: lower it, or run with UPDATE=1"
            )),
            _ => None,
        })
        .collect();
    assert_eq!(broken, Vec::<String>::new());
}

#[test]
fn whole_words_are_counted_over_line_breaks() {
    for (text, expected) in [
        ("Nobody is told.", 2),
        ("of\n  late", 1),
        ("wva_actor_told besides", 0),
        ("It asks for more and comes to rest.", 2),
        ("untold, toldyou, tell-tale", 1),
    ] {
        assert_eq!(count(text), expected, "{text}");
    }
}

#[test]
fn literals_and_comments_are_found_in_code() {
    for (source, expected) in [
        ("let a = \"nobody\"; // \"told\" and told", [1, 2]),
        ("let a = '\"'; let told = 'b'; let c = \"told\\\"told\";", [2, 0]),
        ("let a = r#\"tell \"somebody\"\"#; fn tell<'a>() {}", [2, 0]),
        ("let a = '\\''; let b = \"x\\nnobody\";", [1, 0]),
        ("for_\"nobody\"; var\"told\"", [2, 0]),
        ("/// It asks\n    /// for \"such\nfn told() {}\n//! of late", [0, 3]),
        ("let a = \"// such\"; // such", [1, 1]),
    ] {
        assert_eq!(literals_and_comments(source).map(|part| count(&part)), expected, "{source}");
    }
}
