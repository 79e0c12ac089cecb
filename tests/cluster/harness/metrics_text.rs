//! Reading a page in Prometheus' text format, as far as a test needs it.
#![allow(
    dead_code,
    reason = "the first cases prove the servers; the controller's cases use this"
)]

use std::collections::BTreeMap;

use super::fault::{Fault, Result};

/// One line of a metrics page.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Series {
    pub(crate) name: String,
    pub(crate) labels: BTreeMap<String, String>,
    pub(crate) value: f64,
}

impl Series {
    /// Whether it has this name and, among others, these labels.
    pub(crate) fn matches(&self, name: &str, labels: &[(&str, &str)]) -> bool {
        self.name == name
            && labels
                .iter()
                .all(|(label, value)| self.labels.get(*label).is_some_and(|found| found == value))
    }
}

pub(crate) fn parse(page: &str) -> Result<Vec<Series>> {
    let lines = page
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines
        .map(|line| series(line).ok_or_else(|| Fault::new(format!("not a series: {line}"))))
        .collect()
}

fn series(line: &str) -> Option<Series> {
    let name_end = line.find(['{', ' '])?;
    let (name, mut rest) = line.split_at(name_end);
    let mut labels = BTreeMap::new();
    if let Some(body) = rest.strip_prefix('{') {
        rest = body;
        while !rest.starts_with('}') {
            let (label, quoted) = rest.split_once("=\"")?;
            let (value, after) = unquote(quoted)?;
            labels.insert(label.trim().to_owned(), value);
            rest = after.strip_prefix(',').unwrap_or(after);
        }
        rest = rest.strip_prefix('}')?;
    }
    let value = rest.split_whitespace().next()?.parse().ok()?;
    Some(Series {
        name: name.to_owned(),
        labels,
        value,
    })
}

/// A label value up to its closing quote, and what follows.
fn unquote(text: &str) -> Option<(String, &str)> {
    let mut value = String::new();
    let mut characters = text.char_indices();
    while let Some((at, character)) = characters.next() {
        match character {
            '"' => return Some((value, text.get(at + 1..)?)),
            '\\' => match characters.next()?.1 {
                'n' => value.push('\n'),
                escaped => value.push(escaped),
            },
            plain => value.push(plain),
        }
    }
    None
}
